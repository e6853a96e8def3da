import NighCore

/// The subjects of a realm, under which its sessions publish.
///
/// All begin with the realm and the version 1. A subject for one session has its identity in front, so a broker can
/// allow each user to subscribe to those of that user's programs and to no others:
///
/// | subject | what is published there |
/// | --- | --- |
/// | `REALM.1.SERVICE.here` | announcements of those who advertise the service |
/// | `REALM.1.SERVICE.who` | questions who advertises the service |
/// | `REALM.1.to.IDENTITY.PEER.SERVICE` | requests for pipes to a session |
/// | `REALM.1.at.IDENTITY.NONCE.TOKEN` | answers to this session, and the packets of its pipes |
struct BrokerSubjects {
    private let prefix: String

    init(realm: String) { prefix = "\(realm).1" }

    func here(_ service: ServiceName) -> String { "\(prefix).\(service).here" }
    func who(_ service: ServiceName) -> String { "\(prefix).\(service).who" }
    func to(_ address: BrokerAddress) -> String { "\(prefix).to.\(address)" }
    func at(_ replyAddress: BrokerReplyAddress, _ token: String) -> String {
        "\(prefix).at.\(replyAddress).\(token)"
    }

    /// The token for the end of a pipe with that number.
    static func token(of number: UInt64) -> String { String(number, radix: 36) }

    /// The number of the pipe's end that a subject belongs to; 0, which no end has, if there is none.
    static func number(at subject: String) -> UInt64 {
        let text = subject.utf8
        let start = text.lastIndex(of: UInt8(ascii: ".")).map(text.index(after:)) ?? text.startIndex
        return UInt64(subject[start...], radix: 36) ?? 0
    }

    /// Returns whether `text` has `count` tokens of 1 to 64 characters, and no wildcard.
    static func isTokens(_ text: String, count: Int) -> Bool {
        let tokens = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return tokens.count == count
            && tokens.allSatisfy { (1...64).contains($0.count) && $0.allSatisfy(isPlain) }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

/// Where a session takes requests for pipes: its identity, its peer and its service, as tokens.
struct BrokerAddress: Hashable, Sendable, CustomStringConvertible {
    let description: String

    init(identity: String, peer: String, service: ServiceName) {
        description = "\(identity).\(peer).\(service)"
    }

    /// Parses what another session has written; nil if it is no address.
    init?(_ text: String) {
        guard BrokerSubjects.isTokens(text, count: 3) else { return nil }
        description = text
    }

    /// Parses an address of a person, who may write the PeerID of an identity alone.
    init?(_ text: String, service: ServiceName?) {
        if let service, BrokerSubjects.isTokens(text, count: 1) {
            self.init(identity: text, peer: text, service: service)
        } else {
            self.init(text)
        }
    }
}

/// The address at which a session receives answers and the packets of its pipes: its identity, and a random number that
/// nobody can guess.
struct BrokerReplyAddress: Hashable, Sendable, CustomStringConvertible {
    let description: String

    init(identity: String, nonce: String) { description = "\(identity).\(nonce)" }

    /// Parses what another session has written; nil if it is no reply address.
    init?(_ text: String) {
        guard BrokerSubjects.isTokens(text, count: 2) else { return nil }
        description = text
    }
}
