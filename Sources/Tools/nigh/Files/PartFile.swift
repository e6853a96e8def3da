import Glibc
import NighCore

/// A file that is not all there yet: its bytes under `NAME.part`, whose it is under `NAME.part.nigh`. It becomes `NAME` when it is.
///
/// It is locked while it is open, so that two programs do not write to the same. No name is followed through a symbolic link, and
/// nothing is opened that was not made by this user as a file of its own.
final class PartFile: ReceivedFile {
    private let folder: ReceivingFolder
    private let name: SafeFileName
    private let descriptor: OpenDescriptor
    private let running = RunningHash()
    private(set) var count = 0
    private let replaces: Bool
    /// Whether what there is has become something else: the file, or nothing.
    private var isOver = false

    init(_ descriptor: OpenDescriptor, _ name: SafeFileName, in folder: ReceivingFolder, replacing: Bool) {
        self.descriptor = descriptor
        self.name = name
        self.folder = folder
        replaces = replacing
    }

    deinit { if !isOver, length == 0 { remove() } }

    var label: String { name.text }
    var hash: [UInt8] { running.value }
    var remains: String? { !isOver && length > 0 ? folder.path(of: name.part) : nil }

    private var length: Int {
        var about = stat()
        return fstat(descriptor.number, &about) == 0 ? Int(about.st_size) : 0
    }

    /// Takes in the next bytes of what an earlier program has left; false when all of it is taken in.
    func readBack() throws(FileFailure) -> Bool {
        let length = 1 << 20
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
        defer { buffer.deallocate() }
        let read = descriptor.read(into: buffer, at: count)
        guard read >= 0 else { throw .system("reading \(name.part)") }
        running.update(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
        count += read
        return read > 0
    }

    func resume(at offset: Int) throws(FileFailure) {
        if offset == 0, count > 0 {
            running.reset()
            count = 0
        }
        guard ftruncate(descriptor.number, count) == 0, lseek(descriptor.number, count, SEEK_SET) == count
        else { throw .system("writing \(name.part)") }
    }

    func append(_ bytes: ByteSlice) throws(FileFailure) {
        let isWritten = bytes.withUnsafeBytes { raw in descriptor.write(raw) }
        guard isWritten else { throw .system("writing \(name.part)") }
        bytes.withUnsafeBytes { raw in running.update(raw) }
        count += bytes.count
    }

    func keep() throws(FileFailure) -> String? {
        guard fsync(descriptor.number) == 0 else { throw .system("writing \(name.part)") }
        let kept = try folder.rename(name, replacing: replaces)
        isOver = true
        folder.remove(name.note)
        folder.sync()
        return folder.path(of: kept.text)
    }

    func discard() { remove() }

    private func remove() {
        guard !isOver else { return }
        isOver = true
        folder.remove(name.part)
        folder.remove(name.note)
    }
}
