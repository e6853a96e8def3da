/// Why a link could not be made secure, or is not secure any more.
public enum SecurityFault: Hashable, Sendable {
    /// The other side showed no certificate, or has none of the only kind that counts, Ed25519.
    case noCertificate
    /// The other side showed a chain of this many certificates where one is due.
    case severalCertificates(Int)
    /// The other side's certificate was valid once.
    case certificateExpired
    /// The other side's certificate will be valid some day.
    case certificateNotYetValid
    /// The key in the other side's certificate is of this kind.
    case wrongKeyKind(String)
    /// The other side's certificate names somebody else as its issuer, or is signed with another kind of key.
    case notSelfSigned
    /// The other side does not speak TLS 1.3.
    case versionTooOld
    /// The other side speaks TLS, but not for Nigh.
    case noCommonProtocol
    /// The other side refused the certificate of this one, as these words say.
    case certificateRefused(String)
    /// The other side broke the handshake or the link off, as these words say.
    case refused(String)
    /// The other side's hello names this PeerID, which is not that of its key.
    case claimsAnotherPeer(PeerID)
    /// What the two sides said to each other before the link was secure was changed on the way.
    case prefaceChanged
    /// Bytes were changed, left out or repeated on the way, or sent by somebody else.
    case damaged
    /// The other side broke TLS's own rules.
    case malformed(String)
}

extension SecurityFault: CustomStringConvertible {
    /// The fault in words.
    public var description: String {
        switch self {
        case .noCertificate: "the other side showed no Ed25519 certificate"
        case .severalCertificates(let count): "the other side showed \(count) certificates instead of one"
        case .certificateExpired: "the other side's certificate has expired"
        case .certificateNotYetValid: "the other side's certificate is not valid yet"
        case .wrongKeyKind(let kind): "the other side's key is not Ed25519 but \(kind)"
        case .notSelfSigned: "the other side's certificate is not one it has made itself"
        case .versionTooOld: "the other side does not speak TLS 1.3"
        case .noCommonProtocol: "the other side speaks TLS, but not for Nigh"
        case .certificateRefused(let words): "the other side refused our certificate: \(words)"
        case .refused(let words): "the other side broke off: \(words)"
        case .claimsAnotherPeer(let peer):
            "the other side calls itself \(peer.short), which its key does not prove"
        case .prefaceChanged: "somebody on the way changed what the two sides would accept"
        case .damaged: "bytes were changed on the way, or are not the other side's"
        case .malformed(let words): "the other side broke the rules of TLS: \(words)"
        }
    }

    /// The fault without its particulars: what statistics count under.
    var label: String {
        switch self {
        case .noCertificate: "no certificate"
        case .severalCertificates: "several certificates"
        case .certificateExpired: "certificate expired"
        case .certificateNotYetValid: "certificate not yet valid"
        case .wrongKeyKind: "wrong kind of key"
        case .notSelfSigned: "certificate not self-signed"
        case .versionTooOld: "TLS too old"
        case .noCommonProtocol: "no common application protocol"
        case .certificateRefused: "own certificate refused"
        case .refused: "TLS refused"
        case .claimsAnotherPeer: "claimed another PeerID"
        case .prefaceChanged: "preface changed"
        case .damaged: "TLS damaged"
        case .malformed: "TLS malformed"
        }
    }

    /// What the person in front of it can do, where there is something.
    var advice: String? {
        switch self {
        case .certificateExpired, .certificateNotYetValid: "check the clocks of both devices"
        case .noCertificate, .wrongKeyKind, .severalCertificates, .notSelfSigned:
            "the other side needs one self-signed Ed25519 certificate"
        case .versionTooOld, .noCommonProtocol: "check that the other program speaks Nigh"
        case .prefaceChanged: "do not use this network for what matters"
        case .certificateRefused, .refused, .claimsAnotherPeer, .damaged, .malformed: nil
        }
    }
}
