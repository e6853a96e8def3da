import Glibc

/// The note of an incomplete transfer, which says whose it is and which of its files are whole. It is locked while it
/// is open, so that two programs do not continue the same transfer.
final class TransferNote {
    private(set) var content: NoteContent
    private let file: OpenDescriptor
    private let path: String
    /// The end of the last whole line.
    private var end: Int

    /// The name of the note in the folder of the transfer.
    static let name = "note"
    /// A longer note is not read.
    private static let longest = 256 << 20

    private init(_ content: NoteContent, _ file: OpenDescriptor, end: Int, path: String) {
        self.content = content
        self.file = file
        self.end = end
        self.path = path
    }

    // A process that was started meanwhile may have the file open for another moment.
    deinit { flock(file.number, LOCK_UN) }

    /// Reads the note in a folder without locking it. Returns nil if there is none.
    static func content(in folder: OpenFolder) throws(FileFailure) -> NoteContent? {
        try openPlainFile(in: folder, O_RDONLY).flatMap(read)?.content
    }

    /// Opens and locks the note in a folder. Returns nil if there is none, or if another program uses it.
    static func open(in folder: OpenFolder) throws(FileFailure) -> TransferNote? {
        guard let file = try openPlainFile(in: folder, O_RDWR), lock(file, in: folder),
            let (content, end) = read(file)
        else { return nil }
        return TransferNote(content, file, end: end, path: folder.path(of: name))
    }

    /// Creates the note in a folder and locks it. A note that a program left before its header was whole is written
    /// anew. Returns nil if there is a note already, or something else that has its name.
    static func create(_ header: NoteContent.Header, in folder: OpenFolder) throws(FileFailure)
        -> TransferNote?
    {
        let path = folder.path(of: name)
        guard let file = try openPlainFile(in: folder, O_RDWR | O_CREAT) else {
            let failure = FileFailure.system("creating \(path)")
            if folder.has(name) { return nil }
            throw failure
        }
        guard lock(file, in: folder), read(file) == nil, isBegun(file) else { return nil }
        let text = Array(NoteContent.text(header).utf8)
        let isWritten = ftruncate(file.number, 0) == 0 && text.withUnsafeBytes { file.write($0, at: 0) }
        guard isWritten else {
            let failure = FileFailure.system("writing \(path)")
            folder.remove(name)
            throw failure
        }
        return TransferNote(NoteContent(header), file, end: text.count, path: path)
    }

    /// Returns whether a file is empty, or begins as a note does. A file of another program stays as it is.
    private static func isBegun(_ file: OpenDescriptor) -> Bool {
        let beginning = Array(NoteContent.explanation.utf8)
        var bytes = [UInt8](repeating: 0, count: beginning.count)
        let count = bytes.withUnsafeMutableBytes { file.fill($0, at: 0) }
        return count >= 0 && beginning.starts(with: bytes.prefix(count))
    }

    /// Opens a plain file of this user that has no other name.
    private static func openPlainFile(
        in folder: OpenFolder, _ flags: Int32
    ) throws(FileFailure) -> OpenDescriptor? {
        guard let file = try folder.open(name, flags), let status = file.status, status.kind == S_IFREG,
            status.st_nlink == 1, status.st_uid == geteuid()
        else { return nil }
        return file
    }

    /// Locks the note, unless another program has it, or has just removed it.
    private static func lock(_ file: OpenDescriptor, in folder: OpenFolder) -> Bool {
        flock(file.number, LOCK_EX | LOCK_NB) == 0 && folder.leads(name, to: file)
    }

    private static func read(_ file: OpenDescriptor) -> (content: NoteContent, end: Int)? {
        guard let status = file.status, status.st_size <= longest else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { file.fill($0, at: 0) }
        // A program that was killed may have left half a line.
        guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: "\n")).map({ $0 + 1 }),
            let content = NoteContent(bytes[..<end])
        else { return nil }
        return (content, end)
    }

    /// Adds a line. Writes over half a line that is behind the last whole one.
    func append(_ line: NoteContent.Line) throws(FileFailure) {
        let text = Array(NoteContent.text(line).utf8)
        let isWritten =
            ftruncate(file.number, end) == 0 && text.withUnsafeBytes { file.write($0, at: end) }
        guard isWritten else { throw .system("writing \(path)") }
        end += text.count
        content.add(line)
    }

    /// Flushes the note to the disk.
    func sync() throws(FileFailure) {
        guard fsync(file.number) == 0 else { throw .system("writing \(path)") }
    }
}
