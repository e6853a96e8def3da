import Glibc
import NighCore
import NighSystem

/// A pipe, or a file of an unknown size, that is being sent. It can be read only once, from its beginning.
final class SequentialFile: SourceFile {
    let isSeekable = false
    private let file: OpenDescriptor
    private let label: String
    /// How long to wait for a program that opens a named pipe for writing; nil if it is no named pipe.
    private var giveUp: Duration?
    /// When that time is over; nil until it is waited for.
    private var deadline: Moment?
    /// A byte that was read already.
    private var first: UInt8?
    private var position = 0

    init(_ file: OpenDescriptor, label: String, waitingForWriter giveUp: Duration?) {
        self.file = file
        self.label = label
        self.giveUp = giveUp
    }

    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        guard offset == position else {
            throw FileFailure("\(label) cannot be read again from its beginning")
        }
        guard !bytes.isEmpty else { return 0 }
        if let first {
            self.first = nil
            bytes[0] = first
            position += 1
            return 1
        }
        let count = try next(into: bytes)
        guard count >= 0 else { throw .system("reading \(label)") }
        position += count
        return count
    }

    private func next(into bytes: UnsafeMutableRawBufferPointer) throws(FileFailure) -> Int {
        while true {
            let count = file.readNext(into: bytes)
            if count < 0, errno == EAGAIN {
                giveUp = nil
                _ = isReadable(within: -1)
                continue
            }
            // A named pipe that no program has opened for writing reads as if it had ended.
            guard count == 0, position == 0, let giveUp else { return count }
            let time = deadline.map { $0 - LoopThread.now } ?? Moment.Span(giveUp)
            self.giveUp = nil
            if isReadable(within: Int32(clamping: max(time.nanoseconds, 0) / 1_000_000)) { continue }
            // A program may have opened the pipe without writing yet; that shows as `EAGAIN`.
            let late = file.readNext(into: bytes)
            guard late != 0 else {
                throw FileFailure(
                    "nobody has written into \(label) for \(Moment.Span(giveUp))", .cancelled,
                    other: "nobody has written into the pipe that was to be sent")
            }
            if late > 0 { return late }
        }
    }

    var awaited: AwaitedInput? {
        guard !isReadable(within: 0) else { return nil }
        guard position == 0, let giveUp else { return AwaitedInput(file, timeout: nil) }
        let deadline = deadline ?? LoopThread.now + Moment.Span(giveUp)
        self.deadline = deadline
        let left = deadline - LoopThread.now
        if left.nanoseconds > 0 { return AwaitedInput(file, timeout: left.duration) }
        // A program may have opened the pipe without writing yet; that shows as `EAGAIN`.
        var byte: UInt8 = 0
        let count = withUnsafeMutableBytes(of: &byte) { file.readNext(into: $0) }
        if count > 0 { first = byte }
        guard count < 0, errno == EAGAIN else { return nil }
        self.giveUp = nil
        return AwaitedInput(file, timeout: nil)
    }

    /// Waits for data or the end. Returns false if neither comes in time.
    private func isReadable(within milliseconds: Int32) -> Bool {
        var wanted = pollfd(fd: file.number, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, milliseconds) != 0
    }

    func checkUnchanged(_ count: Int) {}
}
