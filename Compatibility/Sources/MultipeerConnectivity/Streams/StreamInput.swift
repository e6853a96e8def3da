import NighCore

/// A buffer of bytes that a stream has received. A task fills it, and the program reads them, on any thread.
///
/// `@unchecked Sendable`: the condition's lock protects everything.
final class StreamInput: @unchecked Sendable {
    private let condition = NSCondition()
    private var pieces: [ByteSlice] = []
    /// How many bytes of the first piece are read.
    private var position = 0
    private var count = 0
    private var isComplete = false
    private var error: MCError?
    private var isClosed = false
    private var filler: CheckedContinuation<Void, Never>?
    private var onChange: @Sendable () -> Void = {}

    /// How many bytes wait here for the program. Beyond that they wait in the stream, and then at its other end.
    private static let limit = 128 << 10

    var view: StreamView {
        condition.withLock { StreamView(isReady: count > 0, isAtEnd: count == 0 && isComplete, error: error) }
    }

    /// Calls this after each change that the program may want to know of.
    func observe(_ onChange: @escaping @Sendable () -> Void) {
        condition.withLock { self.onChange = onChange }
    }

    // MARK: Filling

    /// Takes everything that comes on a stream, until it ends or the program closes this.
    func fill(from stream: ByteStream, rest: [UInt8]) async {
        if !rest.isEmpty { append(ByteSlice(rest)) }
        do throws(NighError) {
            while await waitForRoom(), let piece = try await stream.read() { append(piece) }
            finish()
        } catch {
            fail(MCError(.notConnected, "\(error)"))
        }
        if condition.withLock({ isClosed }) { stream.cancelReading(because: "the program closed the stream") }
    }

    private func append(_ piece: ByteSlice) {
        change {
            guard !isClosed, !piece.isEmpty else { return }
            pieces.append(piece)
            count += piece.count
        }
    }

    private func finish() { change { isComplete = true } }

    func fail(_ reason: MCError) {
        change {
            if !isComplete, error == nil { error = reason }
            resumeFiller()
        }
    }

    private func change(_ body: () -> Void) {
        let onChange = condition.withLock {
            body()
            condition.broadcast()
            return self.onChange
        }
        onChange()
    }

    /// Waits until the program has read enough. Returns false if it reads no more.
    private func waitForRoom() async -> Bool {
        await withCheckedContinuation { continuation in
            let isReady = condition.withLock {
                if count < Self.limit || isClosed || error != nil { return true }
                filler = continuation
                return false
            }
            if isReady { continuation.resume() }
        }
        return condition.withLock { !isClosed && error == nil }
    }

    private func resumeFiller() {
        filler?.resume()
        filler = nil
    }

    // MARK: Reading

    /// Reads bytes. Waits until there are some; returns 0 at the end and -1 after an error.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        condition.lock()
        defer { condition.unlock() }
        while count == 0, !isComplete, error == nil, !isClosed { condition.wait() }
        guard count > 0 else { return error == nil ? 0 : -1 }
        var copied = 0
        while copied < buffer.count, let first = pieces.first {
            let share = min(first.count - position, buffer.count - copied)
            first.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: buffer[copied..<(copied + share)])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + share)]))
            }
            copied += share
            position += share
            if position == first.count {
                pieces.removeFirst()
                position = 0
            }
        }
        count -= copied
        if count < Self.limit { resumeFiller() }
        return copied
    }

    /// The program reads no more.
    func close() {
        condition.withLock {
            isClosed = true
            pieces = []
            count = 0
            onChange = {}
            resumeFiller()
            condition.broadcast()
        }
    }
}
