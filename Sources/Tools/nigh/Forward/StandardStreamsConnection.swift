import Glibc
import NighCore
import NighForwarding
import NighLoop

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
        // Not children of this task: a read of the input ends with the input or the program, and nothing else ends it.
        for direction in [readInput, writeOutput] {
            Task.detached {
                do {
                    try await direction()
                    report.yield(.success(()))
                } catch {
                    report.yield(.failure(error))
                }
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
        while let bytes = try await Self.read() { try await stream.write(bytes) }
        stream.finish()
    }

    /// Reads the next bytes of the input; nil at its end.
    private static func read() async throws -> ByteSlice? {
        let result = await BlockingTask.run { () -> Result<ByteSlice?, InputOutputFault> in
            var bytes = [UInt8](repeating: 0, count: pieceSize)
            while true {
                let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
                if count > 0 { return .success(ByteSlice(bytes[..<count])) }
                if count == 0 { return .success(nil) }
                guard errno == EINTR || errno == EAGAIN else {
                    return .failure(InputOutputFault(what: "reading the standard input", number: errno))
                }
                wait(STDIN_FILENO, for: Int16(POLLIN))
            }
        }
        return try result.get()
    }

    @Sendable private func writeOutput() async throws {
        try await Self.write(early)
        while let bytes = try await stream.read() { try await Self.write(bytes) }
        // The program that reads the output sees its end. The number stays taken.
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        if nothing >= 0 {
            dup2(nothing, STDOUT_FILENO)
            close(nothing)
        }
    }

    private static func write(_ bytes: ByteSlice) async throws {
        guard !bytes.isEmpty else { return }
        let fault = await BlockingTask.run { () -> InputOutputFault? in
            bytes.withUnsafeBytes { bytes -> InputOutputFault? in
                var rest = bytes
                while !rest.isEmpty {
                    let count = Glibc.write(STDOUT_FILENO, rest.baseAddress, rest.count)
                    if count >= 0 {
                        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                    } else {
                        guard errno == EINTR || errno == EAGAIN else {
                            return InputOutputFault(what: "writing the standard output", number: errno)
                        }
                        wait(STDOUT_FILENO, for: Int16(POLLOUT))
                    }
                }
                return nil
            }
        }
        if let fault { throw fault }
    }

    /// Waits for a descriptor that another program has made non-blocking.
    private static func wait(_ descriptor: Int32, for events: Int16) {
        var one = pollfd(fd: descriptor, events: events, revents: 0)
        _ = poll(&one, 1, -1)
    }
}

/// An error of the system on the standard input or output.
private struct InputOutputFault: Error, CustomStringConvertible {
    let what: String
    let number: Int32

    var description: String { "\(what): \(String(cString: strerror(number)))" }
}
