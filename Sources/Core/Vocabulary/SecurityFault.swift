/// Why a link could not be made secure, or is no longer secure.
public enum SecurityFault: Hashable, Sendable {
    /// The other side showed no certificate, or has none with an Ed25519 key, the only kind that is accepted.
    case noCertificate
    /// The other side showed a chain of this many certificates instead of one.
    case severalCertificates(Int)
    /// The other side's certificate has expired.
    case certificateExpired
    /// The other side's certificate is not valid yet.
    case certificateNotYetValid
    /// The key in the other side's certificate is of this kind instead of Ed25519.
    case wrongKeyKind(String)
    /// The other side's certificate names another issuer than itself, or is signed with another kind of key.
    case notSelfSigned
    /// The other side does not speak TLS 1.3.
    case versionTooOld
    /// The other side speaks TLS, but not for Nigh.
    case noCommonProtocol
    /// The other side refused this side's certificate, for the reason in these words.
    case certificateRefused(String)
    /// The other side ended the handshake or the link, for the reason in these words.
    case refused(String)
    /// The other side's hello names this PeerID, which does not belong to its key.
    case claimsAnotherPeer(PeerID)
    /// The other side's hello names an identity that it acts for, and that identity has not signed this.
    case claimsAnotherIdentity
    /// The peer was announced as a session of this identity, and its hello has proven otherwise.
    case falselyAnnounced(as: PeerID)
    /// The prefaces, which are not encrypted, were changed on the way.
    case prefaceChanged
    /// Bytes were changed, left out or repeated on the way, or sent by somebody else.
    case damaged
    /// The other side broke the rules of TLS, as described.
    case malformed(String)
}

extension SecurityFault: CustomStringConvertible {
    /// The fault in words.
    public var description: String { facts.sentence }

    /// How the user can fix it; nil if there is no way.
    var advice: String? { facts.advice }

    private static func sentence(_ what: String, _ reason: String) -> String {
        reason.isEmpty ? what : "\(what): \(reason)"
    }

    /// Everything that a session must know about the fault. Calling again may always help, because the other side
    /// has not proven that it is the peer.
    var facts: CauseFacts {
        switch self {
        case .noCertificate: certFault("no certificate", "the other side showed no Ed25519 certificate")
        case .severalCertificates(let count):
            certFault("several certificates", "the other side showed \(count) certificates instead of one")
        case .certificateExpired: timeFault("certificate expired", "the other side's certificate has expired")
        case .certificateNotYetValid:
            timeFault("certificate not yet valid", "the other side's certificate is not valid yet")
        case .wrongKeyKind(let kind):
            certFault(
                "wrong kind of key",
                "the other side's key is not Ed25519 but \(kind.isEmpty ? "another kind" : kind)")
        case .notSelfSigned:
            certFault("certificate not self-signed", "the other side's certificate is not self-signed")
        case .versionTooOld: tlsFault("TLS too old", "the other side does not speak TLS 1.3")
        case .noCommonProtocol:
            tlsFault("no common application protocol", "the other side speaks TLS, but not for Nigh")
        case .certificateRefused(let reason):
            CauseFacts(
                "own certificate refused", Self.sentence("the other side refused our certificate", reason),
                .mayHelp)
        case .refused(let reason):
            CauseFacts("TLS refused", Self.sentence("the other side ended the link", reason), .mayHelp)
        case .claimsAnotherPeer(let peer):
            CauseFacts(
                "claimed another PeerID",
                "the other side claims to be \(peer.short), but its key does not prove it", .mayHelp)
        case .claimsAnotherIdentity:
            CauseFacts(
                "claimed another identity",
                "the other side claims to act for an identity that has not signed so", .mayHelp)
        case .falselyAnnounced(let identity):
            CauseFacts(
                "announced falsely",
                "it was announced as a session of \(identity.short), and it is not", .never,
                advice: "somebody may be pretending: compare the PeerIDs on both screens")
        case .prefaceChanged:
            CauseFacts(
                "preface changed", "somebody on the way changed what the two sides would accept", .mayHelp,
                advice: "do not use this network for anything important")
        case .damaged:
            CauseFacts("TLS damaged", "bytes were changed on the way, or are not the other side's", .mayHelp)
        case .malformed(let reason):
            CauseFacts(
                "TLS malformed", Self.sentence("the other side broke the rules of TLS", reason), .mayHelp)
        }
    }

    private func certFault(_ label: String, _ sentence: String) -> CauseFacts {
        CauseFacts(
            label, sentence, .mayHelp, advice: "the other side needs one self-signed Ed25519 certificate")
    }

    private func timeFault(_ label: String, _ sentence: String) -> CauseFacts {
        CauseFacts(label, sentence, .mayHelp, advice: "check the clocks of both devices")
    }

    private func tlsFault(_ label: String, _ sentence: String) -> CauseFacts {
        CauseFacts(label, sentence, .mayHelp, advice: "check that the other program speaks Nigh")
    }

    /// One example of every fault, in the order in which a list shows them.
    static let kinds: [SecurityFault] = [
        .noCertificate, .severalCertificates(2), .certificateExpired, .certificateNotYetValid,
        .wrongKeyKind(""), .notSelfSigned, .versionTooOld, .noCommonProtocol, .certificateRefused(""),
        .refused(""), .claimsAnotherPeer(.nobody), .claimsAnotherIdentity, .falselyAnnounced(as: .nobody),
        .prefaceChanged, .damaged, .malformed(""),
    ]
}
