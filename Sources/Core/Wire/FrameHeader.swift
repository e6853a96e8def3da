/// What stands before every frame: 24 bits of payload length, 8 bits of type, in network order.
@usableFromInline
struct FrameHeader: Equatable {
    /// The size of a header on the wire.
    static let byteCount = 4
    /// The longest payload 24 bits can announce; agreed limits are far below.
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

/// The kinds of frames. Types from 0x80 on are optional: who does not know one skips it. An unknown type below 0x80
/// ends the link.
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
    /// A whole reliable message of the main lane; the bulk lane's stands one above, and so below.
    case message = 0x10
    case bulkMessage = 0x11
    /// Announces a message that follows in pieces, and its size.
    case begin = 0x12
    case bulkBegin = 0x13
    /// The next bytes of the message that was begun; may be parsed before it is complete.
    case piece = 0x14
    case bulkPiece = 0x15
    case unreliable = 0x20

    /// From this value on an unknown type is skipped.
    package static let firstOptional: UInt8 = 0x80

    /// The longest payload of a ping that is answered, besides its token.
    package static let pingPayloadLimit = 1_024

    /// Whether a frame of this type is a message by itself.
    @inline(__always)
    static func isWholeMessage(_ type: UInt8) -> Bool {
        type == message.rawValue || type == bulkMessage.rawValue || type == unreliable.rawValue
    }

    static func message(on lane: Lane) -> FrameType { lane == .main ? .message : .bulkMessage }
    static func begin(on lane: Lane) -> FrameType { lane == .main ? .begin : .bulkBegin }
    static func piece(on lane: Lane) -> FrameType { lane == .main ? .piece : .bulkPiece }
}

/// One of the two ordered rows in which reliable messages to a peer wait.
///
/// Within a lane messages arrive in the order they were sent. The lanes take turns on the wire a few kilobytes at a
/// time, so a game's moves on `.main` do not wait behind the file that goes by `.bulk`.
public enum Lane: UInt8, Hashable, Sendable, CaseIterable {
    /// For everything that has no reason to be elsewhere.
    case main = 0
    /// For what is large and may be overtaken.
    case bulk = 1
}

/// Why bytes from the wire are no frame or no field.
package enum WireError: Error, Hashable {
    case oversize(type: UInt8, length: Int, limit: Int)
    case unknownCritical(type: UInt8)
    case malformed(String)

    var asViolation: NighError.Cause { .protocolViolation(words) }

    /// What is wrong, without saying who did it: both sides are told the same.
    package var words: String {
        switch self {
        case .oversize(let type, let length, let limit):
            "a frame of type \(type) announces \(length) bytes, the limit is \(limit)"
        case .unknownCritical(let type): "unknown critical frame type \(type)"
        case .malformed(let what): what
        }
    }
}
