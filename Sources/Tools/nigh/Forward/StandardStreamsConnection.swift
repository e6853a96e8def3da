import Glibc
import NighCore
import NighFiles
import NighForwarding
import NighMemory

/// Carries the standard input to the stream of a forwarded connection, and the stream to the standard output.
struct StandardStreamsConnection: Sendable {
    /// The most bytes that one read takes.
    private static let pieceSize = 64 << 10

    private let stream: ByteStream
    private let early: ByteSlice

    init(_ opened: ForwardingClient.Opened) {
        stream = opened.stream
        early = opened.early
    }

    /// Carries until both directions have ended. Throws if the connection breaks, or if nobody reads the output any
    /// more. A task that is cancelled gives the connection up.
    func run() async throws {
        let (outcomes, report) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        for direction in [readInput, writeOutput] {
            // Not a child of this task: a read of the input ends with the input or the program, and nothing else ends
            // it. It blocks, so each direction has a thread, which ends with it.
            let thread = ThreadEventLoop()
            Task.detached(executorPreference: thread) {
                do {
                    try await direction()
                    report.yield(.success(()))
                } catch {
                    report.yield(.failure(error))
                }
                thread.shutdown()
            }
        }
        var ended = 0
        for await outcome in outcomes {
            do {
                try outcome.get()
            } catch {
                stream.cancel(because: "the program at the other end has given up the connection")
                throw error
            }
            ended += 1
            if ended == 2 { return }
        }
        stream.cancel(because: "the program at the other end was interrupted")
        throw CancellationError()
    }

    @Sendable private func readInput() async throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = try Self.retrying(STDIN_FILENO, POLLIN, "reading the standard input") {
                read(STDIN_FILENO, buffer.baseAddress, buffer.count)
            }
            if count == 0 { return stream.finish() }
            var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            while !rest.isEmpty {
                rest = try UnsafeRawBufferPointer(rebasing: rest[stream.tryWrite(rest)...])
                if !rest.isEmpty { await stream.waitForRoom() }
            }
        }
    }

    @Sendable private func writeOutput() async throws {
        try Self.write(early)
        while let bytes = try await stream.read() { try Self.write(bytes) }
        // The program that reads the output sees its end. The number stays taken.
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        if nothing >= 0 {
            dup2(nothing, STDOUT_FILENO)
            close(nothing)
        }
    }

    private static func write(_ bytes: ByteSlice) throws(FileFailure) {
        try bytes.withUnsafeBytes { bytes throws(FileFailure) in
            var rest = bytes
            while !rest.isEmpty {
                let count = try retrying(STDOUT_FILENO, POLLOUT, "writing the standard output") {
                    Glibc.write(STDOUT_FILENO, rest.baseAddress, rest.count)
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    /// Repeats a system call until it has returned a number of bytes. Waits for the descriptor if another program has
    /// made it non-blocking.
    private static func retrying(
        _ descriptor: Int32, _ events: Int32, _ what: String, _ call: () -> Int
    ) throws(FileFailure) -> Int {
        while true {
            let count = call()
            if count >= 0 { return count }
            guard errno == EINTR || errno == EAGAIN else { throw .system(what) }
            var one = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            _ = poll(&one, 1, -1)
        }
    }
}
