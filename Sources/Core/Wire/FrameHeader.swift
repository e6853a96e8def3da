/// The header of every frame: 24 bits of payload length and 8 bits of type, in network order.
@usableFromInline
struct FrameHeader: Equatable {
    /// The size of a header on the wire.
    static let byteCount = 4
    /// The longest payload that 24 bits can announce. The limits that two sides agree on are far lower.
    static let maximumPayload = 1 << 24 - 1

    let type: UInt8
    let payloadLength: Int

    init(type: FrameType, payloadLength: Int) {
        self.type = type.rawValue
        self.payloadLength = payloadLength
    }

    @inline(__always)
    init(readingFrom bytes: UnsafeRawPointer) {
        let word = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
        type = UInt8(truncatingIfNeeded: word)
        payloadLength = Int(word >> 8)
    }

    @inline(__always)
    func write(to bytes: UnsafeMutableRawPointer) {
        let word = UInt32(truncatingIfNeeded: payloadLength) << 8 | UInt32(type)
        bytes.storeBytes(of: word.bigEndian, as: UInt32.self)
    }
}

/// The types of frames. Types from 0x80 on are optional: a receiver that does not know one skips it. An
/// unknown type below 0x80 ends the link.
package enum FrameType: UInt8, CaseIterable {
    case hello = 0x01
    case close = 0x02
    case ping = 0x03
    case pong = 0x04
    case acknowledge = 0x05
    case invite = 0x06
    case accept = 0x07
    case decline = 0x08
    case resume = 0x09
    case pair = 0x0A
    /// A whole reliable message of the main lane. The type for the bulk lane is one higher, here and below.
    case message = 0x10
    case bulkMessage = 0x11
    /// Announces the size of a message that follows in pieces.
    case begin = 0x12
    case bulkBegin = 0x13
    /// The next bytes of the announced message. They may be parsed before the frame is complete.
    case piece = 0x14
    case bulkPiece = 0x15
    /// A whole message of a kind (``MessageKind``): the kind, then the message.
    case kindMessage = 0x16
    case bulkKindMessage = 0x17
    /// The next bytes of a stream.
    case streamData = 0x18
    /// Opens, ends or releases a stream, or says how many bytes of it may be sent.
    case streamControl = 0x19
    /// The place where the sender takes datagrams: a ``DatagramOffer``.
    case datagrams = 0x1A
    case unreliable = 0x20
    /// The context of the sender's own invitation, which it gives up because it accepts the receiver's.
    case crossed = 0x80
    /// An introducer's token. The sender's invitation follows.
    case introduction = 0x81

    /// The first optional type. Unknown types from here on are skipped.
    package static let firstOptional: UInt8 = 0x80

    /// The longest payload of a ping besides its token. A longer ping is a violation.
    package static let pingPayloadLimit = 1_024

    /// Returns whether a frame of this type is a whole message.
    @inline(__always)
    static func isWholeMessage(_ type: UInt8) -> Bool {
        type == message.rawValue || type == bulkMessage.rawValue || type == unreliable.rawValue
    }

    static func message(on lane: Lane) -> FrameType { lane == .main ? .message : .bulkMessage }
    static func kindMessage(on lane: Lane) -> FrameType { lane == .main ? .kindMessage : .bulkKindMessage }
    static func begin(on lane: Lane) -> FrameType { lane == .main ? .begin : .bulkBegin }
    static func piece(on lane: Lane) -> FrameType { lane == .main ? .piece : .bulkPiece }
}

/// One of the two ordered queues in which reliable messages to a peer wait.
///
/// Within a lane, messages arrive in the order in which they were sent. The lanes take turns on the wire, some
/// kilobytes at a time, so a game's moves on `.main` do not wait behind a file on `.bulk`.
public enum Lane: UInt8, Hashable, Sendable, CaseIterable {
    /// The default lane.
    case main = 0
    /// The lane for large messages that others may overtake.
    case bulk = 1
}

/// Why received bytes are not a valid frame or field.
package enum WireError: Error, Hashable {
    case oversize(type: UInt8, length: Int, limit: Int)
    case unknownCritical(type: UInt8)
    case malformed(String)

    var asViolation: NighError.Cause { .protocolViolation(message) }

    /// The fault, without the side at fault, because both sides get the same text.
    package var message: String {
        switch self {
        case .oversize(let type, let length, let limit):
            "a frame of type \(type) announces \(length) bytes, the limit is \(limit)"
        case .unknownCritical(let type): "unknown critical frame type \(type)"
        case .malformed(let what): what
        }
    }
}
