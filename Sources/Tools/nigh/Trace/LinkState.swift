import NighCore
import NighRecord

/// The state of a link, from the entries about it so far.
struct LinkState {
    /// A ping that waits for its pong.
    struct Ping: Hashable {
        let direction: PacketDirection
        let token: UInt64
    }

    /// A message that is sent in pieces.
    private struct Pieces {
        let number: UInt64?
        let size: Int
        var done = 0
    }

    private struct Row: Hashable {
        let direction: PacketDirection
        let lane: Lane
    }

    var opening: LinkOpening?
    var provenPeer: PeerID?
    var greeting: LinkGreeting?
    /// The times of the pings that have no pong yet.
    var pings: [Ping: Int64] = [:] {
        didSet { if pings.count > Self.pingLimit { pings.removeAll() } }
    }
    /// The number of the next message, if a request or an answer has stated it.
    private var next: [Row: UInt64] = [:]
    private var pieces: [Row: Pieces] = [:]
    /// The conversation that the link carries.
    var conversation: UInt64?
    /// The number of the next frame of streams in each direction, if a request or an answer has stated it.
    private var nextStreamFrame: [PacketDirection: UInt64] = [:]
    /// How many parts have been seen of each message that is sent in several packets.
    private var parts: [LongMessage: Int] = [:] {
        didSet { if parts.count > Self.partLimit { parts.removeAll() } }
    }
    /// The numbers of received packets, by the connection of their path.
    private var packets: [UInt64: PacketNumbers] = [:]
    /// Whether nothing is missing since the link was opened.
    private var isComplete: Bool

    private struct LongMessage: Hashable {
        let direction: PacketDirection
        let number: UInt32
    }

    /// The numbers of the packets that one side has received on a path.
    private struct PacketNumbers {
        let first: UInt64
        /// The highest number, and one.
        var end: UInt64
        var count: UInt64 = 0

        var missing: UInt64 { end &- first &- count }
    }

    /// - Parameter isComplete: whether the link begins now, so that all that passes on it is seen.
    init(isComplete: Bool = false) { self.isComplete = isComplete }

    /// The most messages whose parts are followed: more than any receiver puts together at once.
    private static let partLimit = 1_024

    /// The most pings that are followed: more than any link waits for at once.
    private static let pingLimit = 1_024

    /// The peer at the other end, as far as it is known.
    var peer: PeerID? { greeting?.peer ?? provenPeer }

    /// The name of the other end in a line.
    var label: String {
        if let greeting { return "\(greeting.name) (\(greeting.peer.short))" }
        if let provenPeer { return provenPeer.short }
        return opening?.remoteAddress?.description ?? "?"
    }

    /// One side has stated how many messages it has received, so the number of the other side's next message is known.
    mutating func begin(numberedBy standing: Standing, from direction: PacketDirection) {
        let other: PacketDirection = direction == .incoming ? .outgoing : .incoming
        nextStreamFrame[other] = standing.streamFrames
        for lane in Lane.allCases {
            next[Row(direction: other, lane: lane)] = standing.received[Int(lane.rawValue)] &+ 1
            pieces[Row(direction: other, lane: lane)] = nil
        }
    }

    /// Counts a message, and returns its number if that is known.
    mutating func numberOfNext(_ direction: PacketDirection, _ lane: Lane) -> UInt64? {
        let row = Row(direction: direction, lane: lane)
        guard let number = next[row] else { return nil }
        next[row] = number &+ 1
        return number
    }

    /// Counts a frame of streams, and returns its number in the conversation if that is known.
    mutating func numberOfNextStreamFrame(_ direction: PacketDirection) -> UInt64? {
        guard let number = nextStreamFrame[direction] else { return nil }
        nextStreamFrame[direction] = number &+ 1
        return number
    }

    mutating func began(_ number: UInt64?, of size: Int, _ direction: PacketDirection, _ lane: Lane) {
        pieces[Row(direction: direction, lane: lane)] = Pieces(number: number, size: size)
    }

    /// Adds a piece of `count` bytes to a message, and returns how far the message has come. Returns nil if its
    /// beginning was not seen.
    mutating func piece(
        of count: Int, _ direction: PacketDirection, _ lane: Lane
    ) -> (number: UInt64?, done: Int, size: Int)? {
        let row = Row(direction: direction, lane: lane)
        guard var known = pieces[row] else { return nil }
        known.done += count
        pieces[row] = known.done < known.size ? known : nil
        return (known.number, known.done, known.size)
    }

    /// Counts a part of a message, and returns whether all its parts have been seen.
    mutating func completes(_ fragment: DatagramContent.Fragment, _ direction: PacketDirection) -> Bool {
        let message = LongMessage(direction: direction, number: fragment.message)
        let count = (parts[message] ?? 0) + 1
        parts[message] = count < Int(fragment.count) ? count : nil
        return count >= Int(fragment.count)
    }

    /// Counts a packet that was received. Returns how much the number of those that are missing grew: the packets
    /// between the highest number before and this one, or -1 if it is one of them and came late.
    mutating func received(packet number: UInt64, connection: UInt64) -> Int {
        let start = isComplete ? 0 : number
        // A link has one path. Only a made-up record has more.
        if packets.count >= 16, packets[connection] == nil { packets = [:] }
        var numbers = packets[connection] ?? PacketNumbers(first: start, end: start)
        let before = numbers.missing
        // One from before a gap in the record is not missing behind the gap.
        guard number >= numbers.first else { return 0 }
        numbers.end = max(numbers.end, number &+ 1)
        numbers.count &+= 1
        packets[connection] = numbers
        return Int(truncatingIfNeeded: numbers.missing &- before)
    }

    /// Forgets all counts, which a gap in the record makes unknown.
    mutating func resetCounts() {
        next = [:]
        nextStreamFrame = [:]
        pieces = [:]
        parts = [:]
        packets = [:]
        isComplete = false
    }
}
