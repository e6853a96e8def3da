import Glibc
import NighCore

/// Finds earlier copies: the files and folders whose names this transfer would use, if they were free.
///
/// Only files with equal content count. To learn that, the receiver asks for the hash of the sender's file, or receives
/// the whole file: a receiver that sent the hash of a file that the sender has only named would reveal its content.
extension PartFolder {
    /// Returns the folders that were there before, each in the place of an offered folder.
    func earlierFolders(_ names: some Collection<String>) throws(FileFailure) -> [Final] {
        let inner = names.dropFirst().map { SafeFileName($0, mayBeHidden: true).text }
        var folders: [Final] = []
        for number in 1..<number {
            let names = [base.numbered(number).text] + inner
            guard let folder = try destination.folder(at: names) else { continue }
            folders.append(Final(folder: folder, path: names.joined(separator: "/")))
        }
        return folders
    }

    /// Returns a file that was there before, in the place of an offered file and with the content of `file`, which has
    /// this hash.
    func earlierCopy(
        of file: OpenDescriptor, _ names: [String], _ hash: [UInt8]
    ) throws(FileFailure) -> Final? {
        for (other, final) in try earlierFiles(names, size: Int(file.status?.st_size ?? -1))
        where Self.isCopy(other, of: file, hash) && fsync(other.number) == 0 {
            return final
        }
        return nil
    }

    /// Returns the files that were there before, in the place of an offered file and with its size.
    func earlierFiles(_ names: [String], size: Int) throws(FileFailure) -> [(file: OpenDescriptor, Final)] {
        let places =
            names.count < 2
            ? (1..<number).map { (Final(folder: destination, path: ""), base.numbered($0).text) }
            : try earlierFolders(names.dropLast()).map {
                ($0, SafeFileName(names.last ?? "", mayBeHidden: true).text)
            }
        var files: [(file: OpenDescriptor, Final)] = []
        for (outer, name) in places {
            guard let file = try outer.folder.open(name, O_RDONLY), let status = file.status,
                status.kind == S_IFREG, status.st_size == size
            else { continue }
            files.append((file, Final(folder: outer.folder, path: outer.path(of: name))))
        }
        return files
    }

    private static func isCopy(_ other: OpenDescriptor, of file: OpenDescriptor, _ hash: [UInt8]) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 << 20, alignment: 16)
        defer { buffer.deallocate() }
        let first = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(1 << 20)])
        let second = UnsafeMutableRawBufferPointer(rebasing: buffer[(1 << 20)...])
        let running = RunningHash()
        var offset = 0
        while true {
            let count = other.fill(first, at: offset)
            // Most files of one size differ early.
            guard count >= 0, file.fill(second, at: offset) == count,
                count == 0 || memcmp(first.baseAddress!, second.baseAddress!, count) == 0
            else { return false }
            guard count > 0 else { return running.value == hash }
            running.update(UnsafeRawBufferPointer(rebasing: first[..<count]))
            offset += count
        }
    }
}
