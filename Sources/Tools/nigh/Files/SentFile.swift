import Glibc
import NighCore

/// What is sent: a file, or what comes from the standard input or another pipe. Reads block, so it is for a thread that may.
///
/// `@unchecked Sendable`: `next` of a stream runs on another thread than the rest, which waits for it.
final class SentFile: @unchecked Sendable {
    /// What it is called over there.
    let name: String
    /// What a person knows it by here.
    let label: String
    /// Nil where only its end will tell.
    let size: Int?
    /// How much of it was read, or does not have to be.
    private(set) var position = 0

    private let descriptor: OpenDescriptor
    private let running = RunningHash()
    private let before: stat

    static let standardInput = "-"

    /// Opens the file at `path`, or takes the standard input. Fails for what cannot be sent.
    init(_ path: String, as name: String?) throws(FileFailure) {
        let isInput = path == Self.standardInput
        let number = isInput ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard number >= 0 else {
            throw .system(isInput ? "the standard input cannot be read" : "\(path) cannot be read")
        }
        descriptor = OpenDescriptor(number)
        label = isInput ? "the standard input" : path
        self.name = name ?? (isInput ? "stdin" : Self.lastComponent(of: path))
        var about = stat()
        guard fstat(number, &about) == 0 else { throw .system("\(label) cannot be read") }
        before = about
        switch about.st_mode & S_IFMT {
        case S_IFDIR:
            throw FileFailure(
                "\(path) is a directory: tar -c \(path) | nigh send PEER - --as \(self.name).tar sends all of it"
            )
        case S_IFREG where lseek(number, 0, SEEK_CUR) == 0: size = Int(about.st_size)
        default: size = nil
        }
    }

    private static func lastComponent(of path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Whether what was sent can be read once more.
    var isSeekable: Bool { size != nil }

    /// The hash of what was read.
    var hash: [UInt8] { running.value }

    /// Begins anew. What does not know its size can do so only while nothing was read.
    func restart() -> Bool {
        guard isSeekable || position == 0 else { return false }
        running.reset()
        position = 0
        return true
    }

    /// Reads on without sending, towards `offset`; false once there, or where the file has ended before.
    func skip(towards offset: Int) throws(FileFailure) -> Bool {
        let length = min(1 << 20, offset - position)
        guard length > 0 else { return false }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
        defer { buffer.deallocate() }
        let count = descriptor.read(into: buffer, at: position)
        guard count >= 0 else { throw .system("reading \(label)") }
        running.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        position += count
        return count > 0
    }

    /// The next bytes as a message to send; nil at the end.
    func next() throws(FileFailure) -> ByteSlice? {
        let wanted = size.map { min($0 - position, FileMessage.mostData) } ?? FileMessage.mostData
        guard wanted > 0 else { return nil }
        let chunk = Chunk(capacity: wanted + 1)
        let room = UnsafeMutableRawBufferPointer(start: chunk.base + 1, count: wanted)
        let count = isSeekable ? descriptor.read(into: room, at: position) : descriptor.readNext(into: room)
        guard count >= 0 else { throw .system("reading \(label)") }
        guard count > 0 else { return nil }
        chunk.claim(count + 1).storeBytes(of: FileMessage.dataMark, as: UInt8.self)
        running.update(UnsafeRawBufferPointer(rebasing: room[..<count]))
        position += count
        return chunk.slice(from: 0)
    }

    /// Why what was read is not one and the same file, if it is not.
    func change() -> FileFailure? {
        guard let size else { return nil }
        var after = stat()
        let isSame =
            fstat(descriptor.number, &after) == 0 && after.st_size == before.st_size && position == size
            && after.st_mtim.tv_sec == before.st_mtim.tv_sec
            && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec
        guard !isSame else { return nil }
        return FileFailure(
            "\(label) changed while it was sent; send it again once it stays as it is", .changed,
            other: "the file changed while it was sent")
    }
}
