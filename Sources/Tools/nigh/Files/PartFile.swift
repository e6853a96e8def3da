import Glibc
import NighCore

/// A file that is not complete yet: its bytes are in `NAME.part`, and `NAME.part.nigh` says whose it is. It becomes
/// `NAME` when it is complete.
///
/// The file is locked while it is open, so that two programs do not write to it. Symbolic links are not followed, and
/// only a plain file is opened that belongs to this user and has no other name. The names serve only to resume a
/// transfer: in the end the open file gets the final name, whatever `NAME.part` leads to by then.
final class PartFile: ReceivedFile {
    private let folder: ReceivingFolder
    private let name: SafeFileName
    private let note: PartNote
    private let file: OpenDescriptor
    private let lease: FileLease
    private let running = RunningHash()
    private(set) var count = 0
    private let replaces: Bool
    /// Whether the part has become the complete file, or was removed.
    private var isOver = false

    init(
        _ file: OpenDescriptor, _ name: SafeFileName, _ note: PartNote, in folder: ReceivingFolder,
        replacing: Bool
    ) {
        self.file = file
        self.name = name
        self.note = note
        self.folder = folder
        replaces = replacing
        lease = FileLease(of: file)
    }

    deinit { if !isOver, length == 0 { remove() } }

    var label: String { name.text }
    var hash: [UInt8] { running.value }
    var isUntouched: Bool { lease.isHeld() }

    var remains: String? {
        guard !isOver, length > 0, folder.isInPlace, folder.leads(name.part, to: file),
            folder.has(note, of: name)
        else { return nil }
        return folder.path(of: name.part)
    }

    private var length: Int {
        var about = stat()
        return fstat(file.number, &about) == 0 ? Int(about.st_size) : 0
    }

    /// Reads and hashes the next bytes of what is there. Returns false when all of it is read.
    func readBack() throws(FileFailure) -> Bool {
        let length = 1 << 20
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
        defer { buffer.deallocate() }
        let read = file.read(into: buffer, at: count)
        guard read >= 0 else { throw .system("reading \(name.part)") }
        running.update(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
        count += read
        return read > 0
    }

    /// Resets the hash and the count, so that `readBack` begins at the start.
    func rewind() {
        running.reset()
        count = 0
    }

    func resume(at offset: Int) throws(FileFailure) {
        if offset == 0, count > 0 { rewind() }
        guard ftruncate(file.number, count) == 0, lseek(file.number, count, SEEK_SET) == count
        else { throw .system("writing \(name.part)") }
    }

    func append(_ bytes: ByteSlice) throws(FileFailure) {
        let isWritten = bytes.withUnsafeBytes { raw in file.write(raw) }
        guard isWritten else { throw .system("writing \(name.part)") }
        bytes.withUnsafeBytes { raw in running.update(raw) }
        count += bytes.count
    }

    func keep() throws(FileFailure) -> String? {
        guard fsync(file.number) == 0 else { throw .system("writing \(name.part)") }
        let kept = try folder.keep(file, as: name, replacing: replaces)
        remove()
        folder.sync()
        return folder.path(of: kept.text)
    }

    func discard() { remove() }

    /// Removes the names that still belong to this file.
    private func remove() {
        guard !isOver else { return }
        isOver = true
        lease.release()
        if folder.leads(name.part, to: file) { folder.remove(name.part) }
        if folder.has(note, of: name) { folder.remove(name.note) }
    }
}
