import Nigh
import NighCalls
import NighCore
import Synchronization

/// A sequence of values that a peer sends to this program.
///
/// `@unchecked Sendable`: the stream is found under the lock; one task reads it.
final class IncomingStream: @unchecked Sendable {
    private enum State {
        case expected([UInt64: CheckedContinuation<Void, Never>])
        case open(ByteStream)
        case failed(NighError)
    }

    private let state = Mutex(State.expected([:]))
    private let waiters = Atomic<UInt64>(0)
    private var parser = StreamMessageParser()

    init() {}

    init(_ stream: ByteStream) { state.withLock { $0 = .open(stream) } }

    /// The peer has opened the stream.
    func open(_ stream: ByteStream) { become(.open(stream)) }

    /// The stream will not come.
    func fail(_ error: NighError) { become(.failed(error)) }

    private func become(_ next: State) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard case .expected(let waiting) = state else { return [] }
            state = next
            return Array(waiting.values)
        }
        for waiter in waiting { waiter.resume() }
    }

    /// The next value, encoded; nil after the last.
    func next(_ system: ActorSystem) async throws -> ByteSlice? {
        let stream = try await stream()
        while true {
            if let record = try parser.next(limit: system.messageLimit) {
                guard let kind = record.withUnsafeBytes({ $0.first }).flatMap(OutgoingStream.Kind.init)
                else { continue }
                let content = record[1..<record.count]
                switch kind {
                case .value: return content
                case .failure:
                    let peer = system.session.peer(stream.peer)
                    throw system.errors.decode(content, from: peer, of: "a sequence")
                }
            }
            guard let bytes = try await stream.read() else { return nil }
            parser.append(bytes)
        }
    }

    /// Waits until the peer has opened the stream.
    private func stream() async throws(NighError) -> ByteStream {
        while true {
            switch state.withLock(\.self) {
            case .open(let stream): return stream
            case .failed(let error): throw error
            case .expected: break
            }
            if Task.isCancelled { throw NighError(.calling, .cancelled) }
            await wait()
        }
    }

    private func wait() async {
        let number = waiters.wrappingAdd(1, ordering: .relaxed).newValue
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard case .expected(var waiting) = state, !Task.isCancelled else { return true }
                    waiting[number] = continuation
                    state = .expected(waiting)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                guard case .expected(var waiting) = state else { return nil }
                let waiter = waiting.removeValue(forKey: number)
                state = .expected(waiting)
                return waiter
            }
            waiter?.resume()
        }
    }
}
