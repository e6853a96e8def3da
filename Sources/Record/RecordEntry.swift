import NighCore

/// One thing that is told of a link in a record: what it was, on which link, and when. docs/nigh/trace.md has the bytes.
public struct RecordEntry: Equatable, Sendable {
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var time: Int64
    /// The link's number in the session that was recorded; 0 for a gap.
    public var link: UInt64
    /// What happened.
    public var content: Content

    /// What an entry can tell.
    public enum Content: Equatable, Sendable {
        /// A pipe was open.
        case opened(LinkOpening)
        /// The other side has proven its key.
        case secured(PeerID, wasResumed: Bool)
        /// The hellos were exchanged.
        case greeted(LinkGreeting)
        /// The first eight bytes in one direction.
        case preface(PacketDirection, ByteSlice)
        /// One frame.
        case frame(RecordedFrame)
        /// The link was over.
        case ended(LinkEnding)
        /// Here so many entries are missing, with so many bytes of links in them.
        case gap(entries: UInt64, bytes: UInt64)
    }

    /// An entry.
    public init(time: Int64, link: UInt64, _ content: Content) {
        self.time = time
        self.link = link
        self.content = content
    }
}

/// Which way something went, seen from the session that was recorded.
public enum PacketDirection: UInt8, Hashable, Sendable, CaseIterable {
    /// It came.
    case incoming = 0
    /// It was sent.
    case outgoing = 1
}

/// A frame, or as much of it as was recorded.
public struct RecordedFrame: Equatable, Sendable {
    /// Which way it went.
    public var direction: PacketDirection
    /// Its type, as in docs/PROTOCOL.md, 2.3.
    public var type: UInt8
    /// How many bytes of payload its header says it has.
    public var length: Int
    /// The payload, or how it begins.
    public var payload: ByteSlice
    /// Whether the link ended in the middle of it.
    public var isCutOff: Bool

    /// Whether all of the payload is there.
    public var isWhole: Bool { payload.count == length }

    /// A frame.
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
