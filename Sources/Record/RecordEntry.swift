import NighCore

/// One event of a link in a record: what happened, on which link, and when. docs/reference/nigh/trace.md describes the
/// bytes.
public struct RecordEntry: Equatable, Sendable {
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var time: Int64
    /// The link's number in the recorded session; 0 for a gap.
    public var link: UInt64
    /// The content of the entry.
    public var content: Content

    /// The content of an entry.
    public enum Content: Equatable, Sendable {
        /// A pipe opened.
        case opened(LinkOpening)
        /// The other side has proven its key.
        case secured(PeerID, wasResumed: Bool)
        /// The hellos were exchanged.
        case greeted(LinkGreeting)
        /// The first eight bytes in one direction.
        case preface(PacketDirection, ByteSlice)
        /// One frame.
        case frame(RecordedFrame)
        /// One packet of the link's datagram path.
        case packet(RecordedPacket)
        /// The link ended.
        case ended(LinkEnding)
        /// This many entries are missing here, with this many bytes of links in them.
        case gap(entries: UInt64, bytes: UInt64)
    }

    /// Creates an entry.
    public init(time: Int64, link: UInt64, _ content: Content) {
        self.time = time
        self.link = link
        self.content = content
    }
}

/// The direction of bytes, seen from the recorded session.
public enum PacketDirection: UInt8, Hashable, Sendable, CaseIterable {
    /// The session received them.
    case incoming = 0
    /// The session sent them.
    case outgoing = 1
}

/// A frame, or the part of it that was recorded.
public struct RecordedFrame: Equatable, Sendable {
    /// The direction of the frame.
    public var direction: PacketDirection
    /// The type of the frame, as in docs/reference/PROTOCOL.md, 2.3.
    public var type: UInt8
    /// How many bytes the payload has, according to the frame's header.
    public var length: Int
    /// The payload, or its beginning.
    public var payload: ByteSlice
    /// Whether the link ended in the middle of the frame.
    public var isCutOff: Bool

    /// Whether the whole payload is there.
    public var isWhole: Bool { payload.count == length }

    /// Creates a frame.
    public init(
        direction: PacketDirection, type: UInt8, length: Int, payload: ByteSlice, isCutOff: Bool = false
    ) {
        self.direction = direction
        self.type = type
        self.length = length
        self.payload = payload
        self.isCutOff = isCutOff
    }
}

/// A packet of a link's datagram path, or the part of it that was recorded: before it is sealed, or after it was
/// opened.
public struct RecordedPacket: Equatable, Sendable {
    /// The direction of the packet.
    public var direction: PacketDirection
    /// The connection of the receiver: how all packets to it on this path begin.
    public var connection: UInt64
    /// The number of the packet, among those of its sender on this path.
    public var number: UInt64
    /// How many bytes the content has.
    public var length: Int
    /// The content, or its beginning. Its first byte is the kind of the packet, as in docs/reference/PROTOCOL.md, 4.7.
    public var content: ByteSlice

    /// Whether the whole content is there.
    public var isWhole: Bool { content.count == length }

    /// Creates a packet.
    public init(
        direction: PacketDirection, connection: UInt64, number: UInt64, length: Int, content: ByteSlice
    ) {
        self.direction = direction
        self.connection = connection
        self.number = number
        self.length = length
        self.content = content
    }
}
