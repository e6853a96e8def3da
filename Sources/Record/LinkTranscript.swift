import NighCore

/// Makes entries from the events of a `LinkObserver`: cuts the bytes of each link into frames, takes packets as they
/// are, and converts moments to calendar time. A value for one session; used on its loop only.
public struct LinkTranscript {
    private let headLimit: Int
    private let wallClock: () -> Int64
    private var origin: (moment: Moment, time: Int64)?
    private var links: [UInt64: (incoming: FrameCutter, outgoing: FrameCutter)] = [:]

    /// - Parameters:
    ///   - headLimit: how many bytes of each payload go into the entries. The payload of a packet follows its kind.
    ///   - wallClock: returns the time in nanoseconds since 1970. Called once; after that the session's own clock
    ///     counts, which nobody sets.
    public init(headLimit: Int = .max, wallClock: @escaping () -> Int64) {
        self.headLimit = headLimit
        self.wallClock = wallClock
    }

    /// Passes the entries that follow from `event` to `body`, usually one or none.
    public mutating func convert(
        _ event: LinkEvent, on link: UInt64, at moment: Moment, _ body: (RecordEntry) -> Void
    ) {
        let time = time(of: moment)
        switch event {
        case .opened(let opening):
            links[link] = (
                FrameCutter(.incoming, headLimit: headLimit), FrameCutter(.outgoing, headLimit: headLimit)
            )
            body(RecordEntry(time: time, link: link, .opened(opening)))
        case .secured(let peer, let wasResumed):
            body(RecordEntry(time: time, link: link, .secured(peer, wasResumed: wasResumed)))
        case .greeted(let greeting): body(RecordEntry(time: time, link: link, .greeted(greeting)))
        case .received(let bytes):
            links[link]?.incoming.feed(bytes) { body(Self.entry(of: $0, .incoming, time, link)) }
        case .sent(let bytes):
            links[link]?.outgoing.feed(bytes) { body(Self.entry(of: $0, .outgoing, time, link)) }
        case .packetReceived(let bytes): convert(packet: bytes, .incoming, time, link, body)
        case .packetSent(let bytes): convert(packet: bytes, .outgoing, time, link, body)
        case .ended(let ending):
            if let cutters = links.removeValue(forKey: link) {
                for cutter in [cutters.incoming, cutters.outgoing] {
                    if let rest = cutter.rest() {
                        body(RecordEntry(time: time, link: link, .frame(rest)))
                    }
                }
            }
            body(RecordEntry(time: time, link: link, .ended(ending)))
        }
    }

    /// Makes the entry of a packet. Its kind goes into the entry regardless of the limit, as the type of a frame does.
    private func convert(
        packet: ByteSlice, _ direction: PacketDirection, _ time: Int64, _ link: UInt64,
        _ body: (RecordEntry) -> Void
    ) {
        let header = DatagramPacket.headerByteCount
        guard packet.count >= header else { return }
        let (connection, number) = packet.withUnsafeBytes {
            (DatagramPacket.connection(of: $0) ?? 0, DatagramPacket.number(of: $0))
        }
        let length = packet.count - header
        let content = packet[header..<header + (length - 1 < headLimit ? length : headLimit + 1)]
        body(
            RecordEntry(
                time: time, link: link,
                .packet(
                    RecordedPacket(
                        direction: direction, connection: connection, number: number, length: length,
                        content: content))))
    }

    /// Returns the calendar time of `moment`.
    public mutating func time(of moment: Moment) -> Int64 {
        let origin = origin ?? (moment, wallClock())
        self.origin = origin
        return origin.time &+ (moment - origin.moment).nanoseconds
    }

    private static func entry(
        of piece: FrameCutter.Piece, _ direction: PacketDirection, _ time: Int64, _ link: UInt64
    ) -> RecordEntry {
        switch piece {
        case .preface(let bytes): RecordEntry(time: time, link: link, .preface(direction, bytes))
        case .frame(let frame): RecordEntry(time: time, link: link, .frame(frame))
        }
    }
}
