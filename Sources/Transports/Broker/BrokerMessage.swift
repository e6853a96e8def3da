import NighCore

/// A message of a session, besides the packets of its pipes.
///
/// Anybody with access to the broker may publish anything, so a message is a hint: the handshake on a pipe proves the
/// peer at its other end.
enum BrokerMessage: Hashable {
    /// A session advertises, and announces so again within this time.
    case here(BrokerAddress, again: Duration, Advertisement)
    /// A session advertises no more.
    case gone(BrokerAddress)
    /// A session asks who advertises; answers go to that address.
    case who(BrokerReplyAddress)
    /// A session asks for a pipe.
    case open(PipeEnd)
    /// The session takes the pipe.
    case opened(PipeEnd)
    /// The session takes no pipe now.
    case refused

    /// One end of a pipe.
    struct PipeEnd: Hashable {
        /// The address for packets to this end.
        var replyAddress: BrokerReplyAddress
        var token: String
        /// The most bytes that this end takes unread.
        var window: UInt32
        /// The length of the longest packet that this end takes.
        var longestPacket: UInt32
    }

    /// Kinds from 16 on, so that they differ from the packets of pipes.
    private enum Kind: UInt8 {
        case here = 16
        case gone = 17
        case who = 18
        case open = 19
        case opened = 20
        case refused = 21
    }

    var bytes: [UInt8] {
        var writer = FieldWriter()
        switch self {
        case .here(let address, let again, let advertisement):
            writer.write(Kind.here.rawValue)
            writer.write(short: "\(address)")
            writer.write(UInt16(clamping: again.components.seconds))
            writer.write(raw: advertisement.bytes)
        case .gone(let address):
            writer.write(Kind.gone.rawValue)
            writer.write(short: "\(address)")
        case .who(let replyAddress):
            writer.write(Kind.who.rawValue)
            writer.write(short: "\(replyAddress)")
        case .open(let end): Self.write(end, .open, &writer)
        case .opened(let end): Self.write(end, .opened, &writer)
        case .refused: writer.write(Kind.refused.rawValue)
        }
        return writer.bytes
    }

    private static func write(_ end: PipeEnd, _ kind: Kind, _ writer: inout FieldWriter) {
        writer.write(kind.rawValue)
        writer.write(short: "\(end.replyAddress)")
        writer.write(short: end.token)
        writer.write(end.window)
        writer.write(end.longestPacket)
    }

    /// Parses a message; nil if it is none, or one of a later version.
    init?(_ bytes: ByteSlice) {
        let message = bytes.withUnsafeBytes { bytes -> BrokerMessage? in
            var reader = FieldReader(bytes)
            return try? Self.message(&reader)
        }
        guard let message else { return nil }
        self = message
    }

    private static func message(_ reader: inout FieldReader) throws(WireError) -> BrokerMessage? {
        switch Kind(rawValue: try reader.number(UInt8.self, "kind")) {
        case .here:
            guard let address = BrokerAddress(try reader.shortText("address")) else { return nil }
            let again = Duration.seconds(try reader.number(UInt16.self, "interval"))
            let rest = Array(try reader.take(reader.remaining, "advertisement"))
            return Advertisement(bytes: rest).map { .here(address, again: again, $0) }
        case .gone: return BrokerAddress(try reader.shortText("address")).map { .gone($0) }
        case .who: return BrokerReplyAddress(try reader.shortText("place")).map { .who($0) }
        case .open: return try end(&reader).map { .open($0) }
        case .opened: return try end(&reader).map { .opened($0) }
        case .refused: return .refused
        case nil: return nil
        }
    }

    private static func end(_ reader: inout FieldReader) throws(WireError) -> PipeEnd? {
        let replyAddress = BrokerReplyAddress(try reader.shortText("place"))
        let token = try reader.shortText("token")
        let window = try reader.number(UInt32.self, "window")
        let longest = try reader.number(UInt32.self, "longest packet")
        guard let replyAddress, BrokerSubjects.isTokens(token, count: 1), longest >= 64 else { return nil }
        return PipeEnd(replyAddress: replyAddress, token: token, window: window, longestPacket: longest)
    }
}
