import Glibc
import NighCore

/// The source of a file that is sent: a file, the standard input or another pipe. Reading blocks, so it runs on a
/// thread that may block.
///
/// `@unchecked Sendable`: `next` of a pipe runs on another thread than the other methods, which wait for it.
final class SentFile: @unchecked Sendable {
    /// The name that the receiver gets.
    let name: String
    /// The name that a person sees here.
    let label: String
    /// Nil if the size is known only at the end.
    let size: Int?
    /// The number of bytes that were read, or do not have to be.
    private(set) var position = 0

    private let descriptor: OpenDescriptor
    private let running = RunningHash()
    private let before: stat
    /// Whether it is a named pipe. Perhaps no program ever writes to it.
    private let isNamedPipe: Bool

    static let standardInput = "-"

    /// Opens the file at `path`, or the standard input. Throws if it cannot be sent.
    init(_ path: String, as name: String?) throws(FileFailure) {
        let isInput = path == Self.standardInput
        let number = isInput ? dup(STDIN_FILENO) : Self.open(path)
        guard number >= 0 else {
            throw .system(isInput ? "the standard input cannot be read" : "\(path) cannot be read")
        }
        descriptor = OpenDescriptor(number)
        label = isInput ? "the standard input" : path
        self.name = name ?? (isInput ? "stdin" : Self.lastComponent(of: path))
        var about = stat()
        guard fstat(number, &about) == 0 else { throw .system("\(label) cannot be read") }
        before = about
        isNamedPipe = !isInput && about.st_mode & S_IFMT == S_IFIFO
        switch about.st_mode & S_IFMT {
        case S_IFDIR:
            throw FileFailure(
                "\(path) is a directory: tar -c \(path) | nigh send PEER - --as \(self.name).tar sends all of it"
            )
        case S_IFREG where lseek(number, 0, SEEK_CUR) == 0:
            size = try Self.ends(descriptor, at: Int(about.st_size), label) ? Int(about.st_size) : nil
        default: size = nil
        }
    }

    /// Opens a file without waiting for a writer if it is a pipe.
    private static func open(_ path: String) -> Int32 {
        let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY
        let number = Glibc.open(path, flags | O_NONBLOCK)
        // Another program holds a lease on the file, and gives it up in a moment.
        return number < 0 && errno == EWOULDBLOCK ? Glibc.open(path, flags) : number
    }

    /// Returns whether a file has as many bytes as it reports. Files that the kernel generates when they are read
    /// report 0, or one page.
    private static func ends(
        _ file: OpenDescriptor, at size: Int, _ label: String
    ) throws(FileFailure) -> Bool {
        var byte: UInt8 = 0
        let last = size > 0 ? withUnsafeMutableBytes(of: &byte) { file.read(into: $0, at: size - 1) } : 1
        let next = withUnsafeMutableBytes(of: &byte) { file.read(into: $0, at: size) }
        guard last >= 0, next >= 0 else { throw .system("reading \(label)") }
        return last == 1 && next == 0
    }

    private static func lastComponent(of path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Whether what was sent can be read once more.
    var isSeekable: Bool { size != nil }

    /// The hash of what was read.
    var hash: [UInt8] { running.value }

    /// Starts again at the beginning. Without a known size, this works only while nothing was read.
    func restart() -> Bool {
        guard isSeekable || position == 0 else { return false }
        running.reset()
        position = 0
        return true
    }

    /// Reads on towards `offset` without sending. Returns false once there, or if the file has ended before.
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

    /// Returns the next bytes as a message to send; nil at the end. For a named pipe, a program must have begun to
    /// write within `timeout`.
    func next(within timeout: Duration) throws(FileFailure) -> ByteSlice? {
        let wanted = size.map { min($0 - position, FileMessage.mostData) } ?? FileMessage.mostData
        guard wanted > 0 else { return nil }
        let chunk = Chunk(capacity: wanted + 1)
        let room = UnsafeMutableRawBufferPointer(start: chunk.base + 1, count: wanted)
        let count =
            isSeekable
            ? descriptor.read(into: room, at: position) : try readNext(into: room, within: timeout)
        guard count >= 0 else { throw .system("reading \(label)") }
        guard count > 0 else { return nil }
        chunk.claim(count + 1).storeBytes(of: FileMessage.dataMark, as: UInt8.self)
        running.update(UnsafeRawBufferPointer(rebasing: room[..<count]))
        position += count
        return chunk.slice(from: 0)
    }

    private func readNext(
        into room: UnsafeMutableRawBufferPointer, within timeout: Duration
    ) throws(FileFailure) -> Int {
        // A named pipe that no program has opened for writing reads as if it had ended.
        var mayBegin = isNamedPipe && position == 0
        while true {
            let count = descriptor.readNext(into: room)
            if count < 0, errno == EAGAIN {
                mayBegin = false
                _ = waitUntilReadable(milliseconds: -1)
                continue
            }
            guard count == 0, mayBegin else { return count }
            mayBegin = false
            if waitUntilReadable(milliseconds: Int32(timeout.milliseconds)) { continue }
            // A program may have opened the pipe without writing yet; that shows as `EAGAIN`.
            let late = descriptor.readNext(into: room)
            guard late != 0 else {
                throw FileFailure(
                    "nobody has written into \(label) for \(Moment.Span(timeout)); --give-up sets this time",
                    .cancelled, other: "nobody has written into the pipe that was to be sent")
            }
            if late > 0 { return late }
        }
    }

    /// Waits for data or the end. Returns false if neither comes in time.
    private func waitUntilReadable(milliseconds: Int32) -> Bool {
        var wanted = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, milliseconds) != 0
    }

    /// Returns why what was read is not one unchanged file; nil if it is.
    func change() -> FileFailure? {
        guard let size else { return nil }
        var after = stat()
        let isSame =
            fstat(descriptor.number, &after) == 0 && after.st_size == before.st_size && position == size
            && after.st_mtim.tv_sec == before.st_mtim.tv_sec
            && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec
        guard !isSame else { return nil }
        return FileFailure(
            "\(label) changed while it was sent; send it again once it no longer changes", .changed,
            other: "the file changed while it was sent")
    }
}
