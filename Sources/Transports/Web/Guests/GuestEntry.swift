import NighCore

/// The first message of a guest: its key, and the token of its invitation if it comes for the first time.
package struct GuestEntry: Equatable {
    static let keyLength = 32
    static let tokenLength = 16
    /// The most bytes of the message.
    static let longest = 1 + keyLength + tokenLength
    private static let mark: UInt8 = 1

    package let key: [UInt8]
    package let token: [UInt8]?

    /// Reads the message. Returns nil if it is none.
    package init?(_ bytes: [UInt8]) {
        guard bytes.first == Self.mark, bytes.count == 1 + Self.keyLength || bytes.count == Self.longest
        else {
            return nil
        }
        key = Array(bytes[1...Self.keyLength])
        token = bytes.count == Self.longest ? Array(bytes.suffix(Self.tokenLength)) : nil
    }

    /// The PeerID of the guest with this key: the hash of a label and the key. No key pair has such a PeerID, because
    /// the hashed bytes of one are longer.
    package var peer: PeerID {
        var writer = FieldWriter()
        writer.write(short: "nigh guest 1")
        writer.write(raw: key)
        let hash = writer.bytes.withUnsafeBytes { SHA256.hash($0) }
        guard let id = PeerID(bytes: hash) else { preconditionFailure("a hash of another length") }
        return id
    }
}

/// The answer to a guest's first message.
enum GuestAnswer: Equatable {
    /// The guest may begin its pipe.
    case entered(PeerID, Advertisement)
    case refused(GuestRefusal)

    var bytes: [UInt8] {
        var writer = FieldWriter()
        switch self {
        case .entered(let guest, let advertisement):
            writer.write(UInt8(1))
            writer.write(raw: guest.bytes)
            writer.write(block: advertisement.bytes)
        case .refused(let refusal):
            writer.write(UInt8(2))
            writer.write(refusal.code)
            writer.write(refusal.pause)
            writer.write(short: refusal.words)
        }
        return writer.bytes
    }
}

/// Why a guest is not let in.
package enum GuestRefusal: Equatable {
    /// There was no such token.
    case unknown
    /// Another browser has used the token.
    case used
    /// The time of the token is over.
    case old
    /// The guest's own time is over, or the program was started again.
    case forgotten
    /// There are as many guests as there may be.
    case full
    /// Too many wrong tokens came from there.
    case tooMany(seconds: UInt32)
    /// The person at the program has sent the guest away.
    case revoked

    var code: UInt8 {
        switch self {
        case .unknown, .used, .old, .forgotten: 1
        case .full: 2
        case .tooMany: 3
        case .revoked: 4
        }
    }

    /// The seconds after which the guest may try again; 0 if that is not said.
    var pause: UInt32 { if case .tooMany(let seconds) = self { seconds } else { 0 } }

    /// The reason for the person.
    var words: String {
        switch self {
        case .unknown: "This code is not known here. Scan the code again."
        case .used: "This code was used already. Each code lets in one device: scan a new one."
        case .old: "This code is too old. Scan a new one."
        case .forgotten: "Your visit is over. Scan a new code to come back."
        case .full: "There are as many guests here as there may be. Try again when one has left."
        case .tooMany(let seconds): "Too many wrong codes came from your device. Wait \(seconds) seconds."
        case .revoked: "You were sent away. Ask for a new code."
        }
    }
}
