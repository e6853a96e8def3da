import Glibc
import NighCore

/// A file that is not all there yet: its bytes under `NAME.part`, whose it is under `NAME.part.nigh`. It becomes `NAME` when it is.
///
/// It is locked while it is open, so that two programs do not write to the same. No name is followed through a symbolic link, and
/// nothing is opened that was not made by this user as a file of its own. The names are for resumption alone: what gets the name in the
/// end is the open file, whatever lies under `NAME.part` by then.
final class PartFile: ReceivedFile {
    private let folder: ReceivingFolder
    private let name: SafeFileName
    private let note: PartNote
    private let file: OpenDescriptor
    private let soleUse: SoleUse
    private let running = RunningHash()
    private(set) var count = 0
    private let replaces: Bool
    /// Whether what there is has become something else: the file, or nothing.
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
        soleUse = SoleUse(of: file)
    }

    deinit { if !isOver, length == 0 { remove() } }

    var label: String { name.text }
    var hash: [UInt8] { running.value }
    var isUntouched: Bool { soleUse.holds() }

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

    /// Takes in the next bytes of what is there; false when all of it is taken in.
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

    /// Forgets what was taken in, for `readBack` to begin at the start.
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

    /// Takes the names away that are still this file's.
    private func remove() {
        guard !isOver else { return }
        isOver = true
        soleUse.end()
        if folder.leads(name.part, to: file) { folder.remove(name.part) }
        if folder.has(note, of: name) { folder.remove(name.note) }
    }
}
