import NighCore

/// A buffer of bytes that the program has written to a stream. The program fills it, on any thread, and a task sends
/// them.
///
/// `@unchecked Sendable`: the condition's lock protects everything.
final class StreamOutput: @unchecked Sendable {
    private let condition = NSCondition()
    private var bytes: [UInt8] = []
    private var isClosed = false
    private var error: MCError?
    private var sender: CheckedContinuation<Void, Never>?
    private var onChange: @Sendable () -> Void = {}

    /// While fewer bytes wait here, besides those in the stream itself, a write takes all that it is given: programs
    /// seldom look at how much that was.
    private static let limit = 64 << 10
    /// The most bytes that one write takes.
    private static let writeLimit = 64 << 20

    var view: StreamView {
        condition.withLock { StreamView(isReady: error == nil && bytes.count < Self.limit, error: error) }
    }

    /// Calls this after each change that the program may want to know of.
    func observe(_ onChange: @escaping @Sendable () -> Void) {
        condition.withLock { self.onChange = onChange }
    }

    // MARK: Writing

    /// Writes the bytes, and returns how many of them: all, up to `writeLimit`. Waits until there is room; returns -1
    /// after an error or the end.
    func write(_ buffer: UnsafeRawBufferPointer) -> Int {
        condition.lock()
        defer { condition.unlock() }
        guard !buffer.isEmpty else { return 0 }
        while bytes.count >= Self.limit, error == nil, !isClosed { condition.wait() }
        guard error == nil, !isClosed else { return -1 }
        let count = min(buffer.count, Self.writeLimit)
        bytes.append(contentsOf: buffer[..<count])
        resumeSender()
        return count
    }

    /// The program writes no more. The bytes that it has written are still sent.
    func close() {
        condition.withLock {
            isClosed = true
            onChange = {}
            resumeSender()
            condition.broadcast()
        }
    }

    func fail(_ reason: MCError) {
        let onChange = condition.withLock {
            if error == nil { error = reason }
            bytes = []
            resumeSender()
            condition.broadcast()
            return self.onChange
        }
        onChange()
    }

    private func resumeSender() {
        sender?.resume()
        sender = nil
    }

    // MARK: Sending

    /// Sends the program's bytes until it has closed this, then ends the stream.
    func send(on stream: ByteStream, header: StreamHeader) async {
        do throws(NighError) {
            try await stream.write(header.bytes)
            while let piece = await next() { try await stream.write(piece) }
            if condition.withLock({ error == nil }) {
                stream.finish()
            } else {
                stream.cancelWriting(because: MCError.goneReason)
            }
        } catch {
            fail(MCError(.notConnected, "\(error)"))
        }
    }

    /// Waits for bytes of the program. Returns nil at the end or after an error.
    private func next() async -> ByteSlice? {
        await withCheckedContinuation { continuation in
            let isReady = condition.withLock {
                if !bytes.isEmpty || isClosed || error != nil { return true }
                sender = continuation
                return false
            }
            if isReady { continuation.resume() }
        }
        let (piece, onChange) = condition.withLock { () -> ([UInt8], @Sendable () -> Void) in
            defer { bytes.removeAll(keepingCapacity: bytes.count <= Self.limit) }
            condition.broadcast()
            return (bytes, self.onChange)
        }
        guard !piece.isEmpty else { return nil }
        onChange()
        return ByteSlice(piece)
    }
}
