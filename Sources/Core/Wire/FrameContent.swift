/// The content of one whole frame. Frames of messages and streams, which come most often, a link reads without it.
package enum FrameContent {
    case hello(Hello)
    case close(LinkClose)
    /// A ping or a pong, with its token and the number of bytes behind the token.
    case ping(token: UInt64, extra: Int)
    case pong(token: UInt64, extra: Int)
    case acknowledge(Standing)
    case invite(ConversationRequest)
    case resume(ConversationRequest)
    case accept(ConversationAcceptance)
    case decline(ConversationRefusal)
    case pair(PairingMessage)
    /// A message of `size` bytes, and its kind if it has one.
    case message(Lane, size: Int, MessageKind? = nil)
    /// The beginning of a message of `size` bytes that follows in pieces, and its kind if it has one.
    case begin(Lane, size: Int, MessageKind? = nil)
    case piece(Lane, size: Int)
    case unreliable(size: Int)
    /// The next `size` bytes of a stream.
    case streamData(number: UInt32, size: Int)
    case streamControl(StreamControlFrame)
    case datagrams(DatagramOffer)
    /// The context of an invitation that its sender gives up.
    case crossed(context: [UInt8])
    /// An introducer's token.
    case introduction([UInt8])
    /// A frame type of a later version, which a receiver skips.
    case unknown(type: UInt8)

    /// Reads the payload of a frame of type `type`. Fails if no receiver may accept it.
    package init(type: UInt8, reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard let known = FrameType(rawValue: type) else {
            guard type >= FrameType.firstOptional else { throw .unknownCritical(type: type) }
            self = .unknown(type: type)
            return
        }
        switch known {
        case .hello: self = .hello(try Hello(reading: bytes))
        case .close: self = .close(try LinkClose(reading: bytes))
        case .ping:
            let (token, extra) = try Self.token(bytes, "a ping")
            self = .ping(token: token, extra: extra)
        case .pong:
            let (token, extra) = try Self.token(bytes, "a pong")
            self = .pong(token: token, extra: extra)
        case .acknowledge:
            self = .acknowledge(try Standing(acknowledging: bytes))
        case .invite: self = .invite(try ConversationRequest(reading: bytes))
        case .resume: self = .resume(try ConversationRequest(reading: bytes))
        case .accept: self = .accept(try ConversationAcceptance(reading: bytes))
        case .decline: self = .decline(try ConversationRefusal(reading: bytes))
        case .pair: self = .pair(try PairingMessage(reading: bytes))
        case .message: self = .message(.main, size: bytes.count)
        case .bulkMessage: self = .message(.bulk, size: bytes.count)
        case .begin, .bulkBegin:
            let (size, kind) = try MessageKind.beginning(reading: bytes)
            guard size > 0 else { throw .malformed("a message of no bytes in pieces") }
            self = .begin(known == .begin ? .main : .bulk, size: size, kind)
        case .kindMessage, .bulkKindMessage:
            let kind = try MessageKind(ofMessage: bytes)
            self = .message(
                known == .kindMessage ? .main : .bulk, size: bytes.count - MessageKind.byteCount, kind)
        case .piece, .bulkPiece:
            guard !bytes.isEmpty else { throw .malformed("a piece without bytes") }
            self = .piece(known == .piece ? .main : .bulk, size: bytes.count)
        case .unreliable: self = .unreliable(size: bytes.count)
        case .streamData:
            let number = try StreamData.number(of: bytes)
            self = .streamData(number: number, size: bytes.count - StreamData.numberLength)
        case .streamControl: self = .streamControl(try StreamControlFrame(reading: bytes))
        case .datagrams: self = .datagrams(try DatagramOffer(reading: bytes))
        case .crossed: self = .crossed(context: try ConversationRequest.crossedContext(reading: bytes))
        case .introduction: self = .introduction(try ConversationRequest.introduction(reading: bytes))
        }
    }

    private static func token(_ bytes: UnsafeRawBufferPointer, _ what: String) throws(WireError) -> (
        UInt64, Int
    ) {
        var reader = FieldReader(bytes)
        let token = try reader.number(UInt64.self, "\(what)'s token")
        guard reader.remaining <= FrameType.pingPayloadLimit else {
            throw .malformed("\(what) of \(bytes.count) bytes")
        }
        return (token, reader.remaining)
    }
}

extension FrameType {
    /// Returns the name of a frame type in docs/reference/PROTOCOL.md, as one word. An unknown type is
    /// named by its number, such as `0x93`.
    package static func name(of type: UInt8) -> String {
        switch FrameType(rawValue: type) {
        case .bulkMessage: "message-bulk"
        case .bulkBegin: "begin-bulk"
        case .bulkPiece: "piece-bulk"
        case .kindMessage: "kind-message"
        case .bulkKindMessage: "kind-message-bulk"
        case .streamData: "stream-data"
        case .streamControl: "stream-control"
        case let known?: "\(known)"
        case nil: "0x\(type < 16 ? "0" : "")\(String(type, radix: 16))"
        }
    }
}

extension LinkClose {
    /// Returns the name of a code in docs/reference/PROTOCOL.md. Codes of later versions are named `other`.
    package static func name(of code: UInt16) -> String { "\(Code(rawValue: code) ?? .other)" }
}
