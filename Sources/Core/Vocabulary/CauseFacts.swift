/// Everything that a session must know about one cause. Errors, statistics and the code that calls a peer again use it.
///
/// Each cause has one entry, in `NighError.Cause.facts` or `SecurityFault.facts`, and one place in
/// `NighError.Cause.kinds`. Its explanation for people is in the program `nigh`: `CauseExplanation`.
struct CauseFacts: Sendable {
    /// Whether trying again may help: not if the peer has declined, for example, or if the program has made a mistake.
    enum Retrying {
        /// No. The peer itself gave this answer, or this side caused the error; calling again does not change that.
        case never
        /// Yes. The peer was not reached, or the other side has not proven that it is the peer.
        case mayHelp
        /// Only if the peer named a time after which it may be called again. A refusal without a time is final.
        case afterNamedTime
        /// If it may help after one of the single failures, or if none is listed.
        case ifAnyAttempt
    }

    /// The cause without its details. Statistics count under this label, and programs tell
    /// causes apart by it. It never changes.
    let label: String
    /// The cause with its details, as an error prints it.
    let sentence: String
    let retrying: Retrying
    /// The advice for errors with this cause whose creator has no better advice.
    let advice: String?

    init(_ label: String, _ sentence: String, _ retrying: Retrying = .never, advice: String? = nil) {
        self.label = label
        self.sentence = sentence
        self.retrying = retrying
        self.advice = advice
    }
}

extension NighError {
    /// Whether trying again may help: not if the peer has declined, for example, or if the program has made a mistake.
    public var isRetryable: Bool {
        switch cause.facts.retrying {
        case .never: false
        case .mayHelp: true
        case .afterNamedTime: retryAfter != nil
        case .ifAnyAttempt: attempts.isEmpty || attempts.contains(where: \.isRetryable)
        }
    }
}

extension NighError.Cause: CustomStringConvertible {
    /// The cause without its details. Statistics count under this label, and programs tell
    /// causes apart by it. It never changes.
    public var label: String { facts.label }

    /// The cause alone, in words.
    public var description: String { facts.sentence }

    /// Everything that a session must know about the cause.
    var facts: CauseFacts {
        switch self {
        case .refused: CauseFacts("refused", "nobody listens there", .mayHelp)
        case .unreachable: CauseFacts("unreachable", "the device cannot be reached", .mayHelp)
        case .timedOut: CauseFacts("timed out", "no answer in time", .mayHelp)
        case .cancelled: CauseFacts("cancelled", "cancelled")
        case .linkLost: CauseFacts("link lost", "the link was lost", .mayHelp)
        case .reset: CauseFacts("reset", "the other side reset the connection", .mayHelp)
        case .silent: CauseFacts("silent", "nothing was received any more", .mayHelp)
        case .declined(let reason, _):
            CauseFacts("declined", reason.isEmpty ? "declined" : "declined: \(reason)", .afterNamedTime)
        case .full: CauseFacts("full", "the other side has reached its limit of peers", .afterNamedTime)
        case .busy: CauseFacts("busy", "the other side has too many invitations waiting", .afterNamedTime)
        case .bufferFull(let limit):
            CauseFacts("buffer full", "the send buffer for this peer is full (\(limit) bytes)")
        case .messageTooLarge(let size, let limit):
            CauseFacts("message too large", "the message has \(size) bytes, the limit is \(limit)")
        case .streamCancelled(let reason):
            CauseFacts(
                "stream cancelled",
                reason.isEmpty ? "the stream was cancelled" : "the stream was cancelled: \(reason)")
        case .file(let fault):
            CauseFacts("file", fault.explanation.isEmpty ? "the file did not arrive" : fault.explanation)
        case .answeredWithError:
            CauseFacts("answered with error", "the peer's program answered with an error")
        case .answerLost: CauseFacts("answer lost", "the conversation ended before the answer came")
        case .unsupported(let what):
            CauseFacts("unsupported", "the peer does not support \(what.isEmpty ? "this" : what)")
        case .notConnected: CauseFacts("not connected", "not connected", .mayHelp)
        case .unknownPeer: CauseFacts("unknown peer", "no such peer is known", .mayHelp)
        case .noRoute: CauseFacts("no route", "no transport knows a route to it", .mayHelp)
        case .selfDial: CauseFacts("self-dial", "the address leads back to this session")
        case .sameIdentity: CauseFacts("same identity", "another running program uses the same identity")
        case .wrongPeer(let expected, let found):
            CauseFacts("wrong peer", "\(found.short) answered instead of \(expected.short)", .mayHelp)
        case .wrongService(let name):
            CauseFacts(
                "wrong service",
                name.isEmpty ? "the peer offers another service" : "the peer offers the service \(name)")
        case .restarted: CauseFacts("restarted", "the peer was restarted", .mayHelp)
        case .peerLeft: CauseFacts("peer left", "the peer left", .mayHelp)
        case .left: CauseFacts("left", "this side left")
        case .unknownConversation:
            CauseFacts("unknown conversation", "the other side has ended this conversation", .mayHelp)
        case .superseded: CauseFacts("superseded", "another link took over", .mayHelp)
        case .protocolViolation(let what):
            CauseFacts(
                "protocol violation", what.isEmpty ? "protocol violation" : "protocol violation: \(what)",
                .mayHelp)
        case .contractBroken(let rule, let what):
            CauseFacts(
                "contract broken",
                "the transport broke the rule \"\(rule.rawValue)\"" + (what.isEmpty ? "" : ": \(what)"))
        case .noCommonVersion(let ours, let theirs):
            CauseFacts(
                "no common version",
                "no common protocol version: this side speaks \(ours.lowerBound) to \(ours.upperBound), "
                    + "the other \(theirs.lowerBound) to \(theirs.upperBound)")
        case .noCommonSecurity(let theyEncrypt):
            CauseFacts(
                "no common security",
                theyEncrypt
                    ? "the other side wants an encrypted link, and this session has no encryption"
                    : "the other side offers no encryption that this session accepts")
        case .notPaired: CauseFacts("not paired", "the two devices are not paired")
        case .pairingRefused(let refusal): CauseFacts("pairing refused", refusal.sentence)
        case .insecure(let fault): fault.facts
        case .limit(let name, let value):
            CauseFacts(
                "limit",
                name.isEmpty
                    ? "a limit of \(value) is reached" : "the limit \"\(name)\" of \(value) is reached")
        case .invalid(let what): CauseFacts("invalid", what.isEmpty ? "invalid value" : "invalid \(what)")
        case .unavailable(let what):
            CauseFacts("unavailable", what.isEmpty ? "something is missing here" : what)
        case .closed: CauseFacts("closed", "the session is closed")
        case .system(let number, let message):
            CauseFacts(
                "system", message.isEmpty ? "error \(number) of the system" : "\(message) (\(number))",
                .mayHelp)
        case .allFailed: CauseFacts("all failed", "every attempt failed", .ifAnyAttempt)
        }
    }

    /// One example of every cause, in the order in which a list shows them. A test checks that none is missing.
    package static let kinds: [NighError.Cause] =
        [
            .refused, .unreachable, .timedOut, .cancelled, .linkLost, .reset, .silent, .declined(""), .full,
            .busy, .bufferFull(limit: 0), .messageTooLarge(size: 0, limit: 0),
            .streamCancelled(""), .file(FileFault(.other, "")),
            .answeredWithError([]), .answerLost, .unsupported(""), .notConnected, .unknownPeer,
            .noRoute, .selfDial, .sameIdentity, .wrongPeer(expected: .nobody, found: .nobody),
            .wrongService(""), .restarted, .peerLeft, .left, .unknownConversation, .superseded,
            .protocolViolation(""), .contractBroken(.eventsOnTheLoop, ""),
            .noCommonVersion(ours: 1...1, theirs: 1...1),
            .noCommonSecurity(theyEncrypt: true), .notPaired, .pairingRefused(.declined), .limit("", 0),
            .invalid(""), .unavailable(""), .closed, .system(0, ""), .allFailed,
        ] + SecurityFault.kinds.map { .insecure($0) }
}

extension PeerID {
    /// A placeholder in the causes that name a peer. It is not made from a key, because
    /// every start of `nigh` builds `kinds`.
    static let nobody = PeerID(bytes: [UInt8](repeating: 0, count: byteCount))!
}

extension PairingRefusal {
    fileprivate var sentence: String {
        switch self {
        case .declined: "the other person did not want to be paired"
        case .digitsDiffer: "the digits were not the same on both sides"
        case .busy: "another pairing is in progress"
        case .notNow: "the other side does not accept pairing now"
        case .timedOut: "nobody compared the digits in time"
        }
    }
}
