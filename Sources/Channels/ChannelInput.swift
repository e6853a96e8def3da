import NighCore
import Synchronization

/// Reads the messages of one stream of a channel, and passes them on while the program keeps up.
///
/// `@unchecked Sendable`: everything but `didRead` is called on the loop, and only that touches the variables.
final class ChannelInput: @unchecked Sendable {
    /// A report about the stream.
    enum Outcome {
        case message(Message)
        case ended
    }

    let stream: ByteStream
    private let loop: any EventLoop
    /// The longest message.
    private let limit: Int
    private let report: (Outcome, ChannelInput) -> Void
    private var parser = StreamMessageParser()
    private let unread = Atomic(0)
    private let isPaused = Atomic(false)

    /// The number of bytes that may wait for the program, besides those in the stream.
    private static let unreadLimit = 256 << 10

    init(
        _ stream: ByteStream, on loop: any EventLoop, limit: Int,
        report: @escaping (Outcome, ChannelInput) -> Void
    ) {
        self.stream = stream
        self.loop = loop
        self.limit = limit
        self.report = report
    }

    /// Passes on messages, until the program is behind or none is left.
    func proceed() {
        while true {
            guard unread.load(ordering: .sequentiallyConsistent) < Self.unreadLimit else {
                isPaused.store(true, ordering: .sequentiallyConsistent)
                // The program may have read in between.
                guard unread.load(ordering: .sequentiallyConsistent) < Self.unreadLimit,
                    isPaused.exchange(false, ordering: .sequentiallyConsistent)
                else { return }
                continue
            }
            switch stream.poll() {
            case .bytes(let bytes):
                if !take(bytes) { return }
            case .nothing:
                stream.notify(bytes: true, room: false, on: loop) { [weak self] in self?.proceed() }
                return
            case .end, .failed: return report(.ended, self)
            }
        }
    }

    /// Takes the next bytes. Returns false if the stream is over, because they are no messages.
    private func take(_ bytes: ByteSlice) -> Bool {
        parser.append(bytes)
        do throws(WireError) {
            while let payload = try parser.next(limit: limit) {
                unread.add(Self.cost(of: payload), ordering: .sequentiallyConsistent)
                let origin = MessageOrigin(peer: stream.peer, lane: .main, isReliable: true)
                report(.message(Message(origin: origin, payload: payload)), self)
            }
            return true
        } catch {
            stream.cancelReading(because: error.message)
            report(.ended, self)
            return false
        }
    }

    private static func cost(of payload: ByteSlice) -> Int { payload.count + 64 }

    /// The program has read a message. Callable from any thread.
    func didRead(_ payload: ByteSlice) {
        let cost = Self.cost(of: payload)
        let left = unread.subtract(cost, ordering: .sequentiallyConsistent).newValue
        guard left < Self.unreadLimit / 2, isPaused.exchange(false, ordering: .sequentiallyConsistent) else {
            return
        }
        loop.execute { [self] in proceed() }
    }
}
