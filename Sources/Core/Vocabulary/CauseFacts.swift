/// Everything known about one cause. Errors, statistics, `nigh errors` and the code that calls a peer again use it.
///
/// Each cause has one entry, in `NighError.Cause.facts` or `SecurityFault.facts`, and
/// one place in `NighError.Cause.kinds`.
package struct CauseFacts: Sendable {
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
    package let label: String
    /// The cause with its details, as an error prints it.
    let sentence: String
    let retrying: Retrying
    /// The explanation, for people.
    package let meaning: String
    /// The remedy, for people.
    package let help: String
    /// The advice for errors with this cause whose creator has no better advice.
    let advice: String?

    init(
        _ label: String, _ sentence: String, _ retrying: Retrying = .never, means meaning: String,
        helps help: String, advice: String? = nil
    ) {
        self.label = label
        self.sentence = sentence
        self.retrying = retrying
        self.meaning = meaning
        self.help = help
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

    /// Everything known about the cause.
    package var facts: CauseFacts {
        switch self {
        case .refused:
            CauseFacts(
                "refused", "nobody listens there", .mayHelp,
                means: "The device answers, but no program listens at that port or channel.",
                helps: "Start the program on the other device. Check that it offers the same service, and "
                    + "that no firewall rejects the port.")
        case .unreachable:
            CauseFacts(
                "unreachable", "the device cannot be reached", .mayHelp,
                means: "No network of this device leads there, or no device answers at that address.",
                helps: "Connect both devices to the same network. `nigh doctor --peer` tries each address.")
        case .timedOut:
            CauseFacts(
                "timed out", "no answer in time", .mayHelp,
                means: "No answer came in time: a firewall drops packets, the device sleeps or is out of "
                    + "range, or nobody answered an invitation.",
                helps: "Move nearer and try again. Open the port in the firewall. Allow more time with "
                    + "--timeout.")
        case .cancelled:
            CauseFacts(
                "cancelled", "cancelled",
                means: "It was cancelled, for example with Ctrl-C.", helps: "Nothing is wrong.")
        case .linkLost:
            CauseFacts(
                "link lost", "the link was lost", .mayHelp,
                means: "The connection ended without a goodbye: the remote program was killed, or the "
                    + "network failed.",
                helps: "Usually the session finds another link by itself. `nigh ping` shows how often this "
                    + "happens.")
        case .reset:
            CauseFacts(
                "reset", "the other side reset the connection", .mayHelp,
                means: "The other side reset the connection: its program crashed, or something on the way "
                    + "cuts connections.",
                helps: "Check that the remote program still runs. Try another network or transport.")
        case .silent:
            CauseFacts(
                "silent", "nothing was received any more", .mayHelp,
                means: "Nothing was received for the keep-alive time, although the connection was not "
                    + "closed: the device sleeps, left, or its network is stuck.",
                helps: "Wake the device or move nearer. The session continues to look for it.")
        case .declined(let reason, _):
            CauseFacts(
                "declined", reason.isEmpty ? "declined" : "declined: \(reason)", .afterNamedTime,
                means: "The remote person or program declined.",
                helps: "Ask them. The words after \"declined\" are theirs.")
        case .full:
            CauseFacts(
                "full", "the other side has reached its limit of peers", .afterNamedTime,
                means: "The other side is connected to the greatest number of peers that it accepts.",
                helps: "Try again when a peer has left, or raise the limit of peers in its program.")
        case .busy:
            CauseFacts(
                "busy", "the other side has too many invitations waiting", .afterNamedTime,
                means: "The other side has too many invitations waiting for an answer.",
                helps: "Try again in a moment.")
        case .bufferFull(let limit):
            CauseFacts(
                "buffer full", "the send buffer for this peer is full (\(limit) bytes)",
                means: "Too many bytes already wait for that peer, so no more are accepted. The peer reads "
                    + "too slowly, or its link is too slow.",
                helps: "Wait until there is room. A program that uses `send` instead of `trySend` waits.")
        case .messageTooLarge(let size, let limit):
            CauseFacts(
                "message too large", "the message has \(size) bytes, the limit is \(limit)",
                means: "The message is larger than the limit allows.",
                helps: "Send it in pieces, or raise the limit on both sides.")
        case .streamCancelled(let reason):
            CauseFacts(
                "stream cancelled",
                reason.isEmpty ? "the stream was cancelled" : "the stream was cancelled: \(reason)",
                means: "One of the two programs gave up the stream before it had ended.",
                helps:
                    "The words after \"cancelled\" are those of that program. Open another stream if it is "
                    + "still needed.")
        case .file(let fault):
            CauseFacts(
                "file", fault.explanation.isEmpty ? "the file did not arrive" : fault.explanation,
                means:
                    "A file, or all files of an offer, did not arrive, for the reason that the sentence names.",
                helps: "Remove the reason and send the file again. What has arrived of it is not sent again.")
        case .answeredWithError:
            CauseFacts(
                "answered with error", "the peer's program answered with an error",
                means: "The program that was asked could not answer, or did not want to.",
                helps: "The documentation of that program says which errors it answers with. If it gave no "
                    + "details, its own log may.")
        case .answerLost:
            CauseFacts(
                "answer lost", "the conversation ended before the answer came",
                means:
                    "A question or a call was sent, but its answer did not come. The peer's program may have "
                    + "acted on it, and may have not.",
                helps: "Connect again, and find out whether the peer has acted on it before asking anew.")
        case .unsupported(let what):
            CauseFacts(
                "unsupported", "the peer does not support \(what.isEmpty ? "this" : what)",
                means:
                    "The peer's program is of an earlier version, has this switched off, or was started for "
                    + "something else.",
                helps: "Run what the error names on the other device, or update the program there.")
        case .notConnected:
            CauseFacts(
                "not connected", "not connected", .mayHelp,
                means: "There is no conversation with that peer now.", helps: "Invite it first.")
        case .unknownPeer:
            CauseFacts(
                "unknown peer", "no such peer is known", .mayHelp,
                means: "No peer with that name or PeerID is known.",
                helps: "`nigh discover SERVICE` shows who is there, and what each takes.")
        case .noRoute:
            CauseFacts(
                "no route", "no transport knows a route to it", .mayHelp,
                means: "None of the transports in use leads to that peer or address.",
                helps: "Name the transport with --transport, or wait until the peer is seen.")
        case .selfDial:
            CauseFacts(
                "self-dial", "the address leads back to this session",
                means: "The address leads back to this program.",
                helps: "Give the other device's address.")
        case .sameIdentity:
            CauseFacts(
                "same identity", "another running program uses the same identity",
                means: "Another running program has the same identity, so other peers could not tell the "
                    + "two apart.",
                helps: "End the other program, or start one of them with --identity ephemeral.")
        case .wrongPeer(let expected, let found):
            CauseFacts(
                "wrong peer", "\(found.short) answered instead of \(expected.short)", .mayHelp,
                means: "Another peer answered at that address than the one that was called. The network may "
                    + "have given the address to another device.",
                helps: "Look the peer up again. If it happens again, somebody may be pretending to be it.")
        case .wrongService(let name):
            CauseFacts(
                "wrong service",
                name.isEmpty ? "the peer offers another service" : "the peer offers the service \(name)",
                means: "The peer offers another service than this program.",
                helps: "Name the service with --service. Both sides must name the same.")
        case .restarted:
            CauseFacts(
                "restarted", "the peer was restarted", .mayHelp,
                means: "The peer's program was restarted, so it does not know the earlier conversation.",
                helps: "Invite it again.")
        case .peerLeft:
            CauseFacts(
                "peer left", "the peer left", .mayHelp,
                means: "The peer ended the conversation properly.", helps: "Nothing is wrong.")
        case .left:
            CauseFacts(
                "left", "this side left",
                means: "This side ended the conversation.", helps: "Nothing is wrong.")
        case .unknownConversation:
            CauseFacts(
                "unknown conversation", "the other side has ended this conversation", .mayHelp,
                means: "The other side has ended the conversation, for example after a long time out of "
                    + "reach.",
                helps: "Invite it again.")
        case .superseded:
            CauseFacts(
                "superseded", "another link took over", .mayHelp,
                means: "Another link to the same peer took over.", helps: "Nothing is wrong.")
        case .protocolViolation(let what):
            CauseFacts(
                "protocol violation", what.isEmpty ? "protocol violation" : "protocol violation: \(what)",
                .mayHelp,
                means: "One side sent something that the protocol does not allow: it is another program or "
                    + "another version, or it has a bug.",
                helps: "Look at the traffic with `nigh trace`. Update the older side.")
        case .contractBroken(let rule, let what):
            CauseFacts(
                "contract broken",
                "the transport broke the rule \"\(rule.rawValue)\"" + (what.isEmpty ? "" : ": \(what)"),
                means: "A transport of this program, perhaps a plugin, broke a rule that all transports must "
                    + "keep. It is no longer used.",
                helps: "Report it to the author of the transport, with the rule that is named. Without this "
                    + "transport, the session continues with the others.")
        case .noCommonVersion(let ours, let theirs):
            CauseFacts(
                "no common version",
                "no common protocol version: this side speaks \(ours.lowerBound) to \(ours.upperBound), "
                    + "the other \(theirs.lowerBound) to \(theirs.upperBound)",
                means: "The two programs speak no common version of the protocol.",
                helps: "Update the older one.")
        case .noCommonSecurity(let theyEncrypt):
            CauseFacts(
                "no common security",
                theyEncrypt
                    ? "the other side wants an encrypted link, and this session has no encryption"
                    : "the other side offers no encryption that this session accepts",
                means: "One side wants an encrypted link, the other one without encryption.",
                helps: "Leave out --security on both sides. `none` is for measurements, and both sides must "
                    + "use it.")
        case .notPaired:
            CauseFacts(
                "not paired", "the two devices are not paired",
                means: "One of the two accepts only paired peers, and they are not paired, or no longer.",
                helps: "Run `nigh pair` on both devices.")
        case .pairingRefused(let refusal):
            CauseFacts(
                "pairing refused", refusal.sentence,
                means: "The two were not paired: the other person declined, saw other digits, or took too "
                    + "long, or the remote program does not accept pairing now.",
                helps: "Start `nigh pair` there, then here. If the digits differ, somebody may be between "
                    + "the devices: use another network.")
        case .insecure(let fault): fault.facts
        case .limit(let name, let value):
            CauseFacts(
                "limit",
                name.isEmpty
                    ? "a limit of \(value) is reached" : "the limit \"\(name)\" of \(value) is reached",
                means: "A named limit is reached. docs/reference/LIMITS.md lists all limits.",
                helps: "Raise it, or ask for less.")
        case .invalid(let what):
            CauseFacts(
                "invalid", what.isEmpty ? "invalid value" : "invalid \(what)",
                means: "A value is invalid: an option, a name or a file.",
                helps: "The error says what is wrong with it.")
        case .unavailable(let what):
            CauseFacts(
                "unavailable", what.isEmpty ? "something is missing here" : what,
                means: "This machine or this build lacks something: an adapter, a daemon, a library, a "
                    + "permission.",
                helps: "`nigh doctor` says what is missing, and how to get it.")
        case .closed:
            CauseFacts(
                "closed", "the session is closed",
                means: "The session is already closed.", helps: "Nothing is wrong.")
        case .system(let number, let message):
            CauseFacts(
                "system", message.isEmpty ? "error \(number) of the system" : "\(message) (\(number))",
                .mayHelp,
                means: "The operating system reported this error.",
                helps: "`man 3 errno` explains its number.")
        case .allFailed:
            CauseFacts(
                "all failed", "every attempt failed", .ifAnyAttempt,
                means: "Several addresses or transports were tried, and each failed for its own reason.",
                helps: "Look at the single reasons in the error. The last one often came nearest to success.")
        }
    }

    /// One example of every cause, in the order of `nigh errors`. A test checks that none is missing.
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
