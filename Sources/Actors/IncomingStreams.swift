import Nigh
import NighCalls
import NighCore

/// The streams that peers have opened and that no value names yet, and the named ones that are not open yet. A value.
struct IncomingStreams {
    private struct Key: Hashable {
        let peer: PeerID
        let number: UInt64
    }

    private struct Arrived {
        let stream: ByteStream
        let deadline: Moment
    }

    private struct Expected {
        weak var stream: IncomingStream?
    }

    private var arrived: [Key: Arrived] = [:]
    private var expected: [Key: Expected] = [:]
    /// Whether `takeExpired` is going to be called.
    private var isLookAhead = false

    /// The number of streams of one peer that wait on each side.
    static let limit = 256
    /// How long a stream waits that no value names: the call that it belongs to was cancelled.
    static let patience = Moment.Span.seconds(30)

    /// The number of streams that wait.
    var count: Int { arrived.count + expected.count }

    /// Notes that a value names a stream. Returns nil if too many are named that do not come.
    mutating func expect(_ number: UInt64, of peer: PeerID) -> IncomingStream? {
        let key = Key(peer: peer, number: number)
        if let arrived = arrived.removeValue(forKey: key) { return IncomingStream(arrived.stream) }
        expected = expected.filter { $0.value.stream != nil }
        guard expected[key] == nil, expected.count(where: { $0.key.peer == peer }) < Self.limit else {
            return nil
        }
        let stream = IncomingStream()
        expected[key] = Expected(stream: stream)
        return stream
    }

    /// Takes a stream that has come. Returns the one that waits for it, or a stream that must be cancelled because too
    /// many wait.
    mutating func add(_ stream: ByteStream, now: Moment) -> (expected: IncomingStream?, surplus: ByteStream?)
    {
        guard let number = UInt64(stream.name.dropFirst()) else { return (nil, stream) }
        let key = Key(peer: stream.peer, number: number)
        if let expected = expected.removeValue(forKey: key) { return (expected.stream, nil) }
        guard arrived[key] == nil, arrived.count(where: { $0.key.peer == stream.peer }) < Self.limit else {
            return (nil, stream)
        }
        arrived[key] = Arrived(stream: stream, deadline: now + Self.patience)
        return (nil, nil)
    }

    /// The moment at which the caller must call `takeExpired`. Returns nil if nothing waits, or if that is going to
    /// happen: a peer must not cause a timer with each stream.
    mutating func nextLook() -> Moment? {
        guard !isLookAhead, let next = arrived.values.map(\.deadline).min() else { return nil }
        isLookAhead = true
        return next
    }

    mutating func takeExpired(now: Moment) -> [ByteStream] {
        isLookAhead = false
        let expired = arrived.filter { $0.value.deadline <= now }
        for key in expired.keys { arrived[key] = nil }
        return expired.values.map(\.stream)
    }

    /// Forgets the streams of a peer that has left. Returns those that will not come.
    mutating func removeAll(of peer: PeerID) -> [IncomingStream] {
        arrived = arrived.filter { $0.key.peer != peer }
        let lost = expected.filter { $0.key.peer == peer }
        for key in lost.keys { expected[key] = nil }
        return lost.values.compactMap(\.stream)
    }
}
