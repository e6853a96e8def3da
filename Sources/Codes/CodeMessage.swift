/// A message of a code exchange. On the stream it is its kind as one byte, then its content, whose size follows from
/// the kind.
package enum CodeMessage: Equatable, Sendable {
    /// A share of SPAKE2, and the bytes that identify the link on which its sender computes.
    case share([UInt8], link: [UInt8])
    /// The proof that the sender knows the code.
    case confirmation([UInt8])
    /// The sender computes on another link than the other side: begin anew.
    case again
    /// The code was wrong, or is not valid any more.
    case refused

    static let linkByteCount = 16
    static let confirmationByteCount = 32

    package var bytes: [UInt8] {
        switch self {
        case .share(let share, let link): [1] + share + link
        case .confirmation(let confirmation): [2] + confirmation
        case .again: [3]
        case .refused: [4]
        }
    }

    /// Takes the first message from `bytes`. Nil if it is not complete. Throws for a kind that does not exist.
    package static func take(from bytes: inout [UInt8]) throws(Unknown) -> CodeMessage? {
        guard let kind = bytes.first else { return nil }
        let size =
            switch kind {
            case 1: SPAKE2.shareByteCount + linkByteCount
            case 2: confirmationByteCount
            case 3, 4: 0
            default: throw Unknown(kind: kind)
            }
        guard bytes.count > size else { return nil }
        let content = Array(bytes[1..<(1 + size)])
        bytes.removeFirst(1 + size)
        return switch kind {
        case 1:
            .share(
                Array(content.prefix(SPAKE2.shareByteCount)),
                link: Array(content.dropFirst(SPAKE2.shareByteCount)))
        case 2: .confirmation(content)
        case 3: .again
        default: .refused
        }
    }

    /// A kind of message that no version sends.
    package struct Unknown: Error, Equatable {
        let kind: UInt8
    }
}
