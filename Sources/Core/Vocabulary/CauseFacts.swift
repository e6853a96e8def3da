/// Everything known about one cause. Errors, statistics, `nigh errors` and the code that calls a peer again use it.
///
/// Each cause has one entry, in `NighError.Cause.facts` or `SecurityFault.facts`, and
/// one place in `NighError.Cause.kinds`.
package struct CauseFacts: Sendable {
    /// Whether calling the peer again may help.
    enum Retrying {
        /// No. The peer itself gave this answer, or this side caused the error; calling again does not change that.
        case never
        /// Yes. The peer was not reached, or the other side has not proven that it is the peer.
        case mayHelp
        /// Only if the peer named a time after which it may be called again. A refusal without a time is final.
        case whenNamed
        /// If it may help after one of the single failures, or if none is listed.
        case asAttempts
    }

    /// The cause without its details. Statistics count under this label, and programs tell
    /// causes apart by it. It never changes.
    package let label: String
    /// The cause with its details, as an error prints it.
    let sentence: String
    let retrying: Retrying
    /// What happened, explained to a person.
    package let meaning: String
    /// What the person can do about it.
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
    /// Whether calling the peer again may help.
    package var mayPass: Bool {
        switch cause.facts.retrying {
        case .never: false
        case .mayHelp: true
        case .whenNamed: retryAfter != nil
        case .asAttempts: attempts.isEmpty || attempts.contains(where: \.mayPass)
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
                means: "The device answers, but nobody listens at that port or channel.",
                helps: "Start the program over there; look whether it offers the same service, and whether "
                    + "a firewall rejects the port.")
        case .unreachable:
            CauseFacts(
                "unreachable", "there is no way there", .mayHelp,
                means: "No network of this device leads there.",
                helps: "Bring both devices into the same network; `nigh doctor --peer` tries each address.")
        case .timedOut:
            CauseFacts(
                "timed out", "no answer in time", .mayHelp,
                means: "No answer came in time: a firewall that drops packets, a device that sleeps or is "
                    + "out of range, or nobody who answered an invitation.",
                helps: "Try again nearer to it; let the port through the firewall; give it longer with "
                    + "--timeout.")
        case .cancelled:
            CauseFacts(
                "cancelled", "taken back",
                means: "This side took it back, for example by Ctrl-C.", helps: "Nothing is wrong.")
        case .linkLost:
            CauseFacts(
                "link lost", "the link was lost", .mayHelp,
                means: "The connection ended without a goodbye: the program over there was killed, or the "
                    + "network went away.",
                helps: "As a rule the session finds another link by itself; `nigh ping` shows how often it "
                    + "happens.")
        case .reset:
            CauseFacts(
                "reset", "the other side broke the connection off", .mayHelp,
                means: "The other side broke the connection off: its program crashed, or something on the "
                    + "way cuts connections.",
                helps: "Look whether the program over there still runs; try another network or transport.")
        case .silent:
            CauseFacts(
                "silent", "nothing was heard any more", .mayHelp,
                means: "Nothing was heard for the keep-alive time, though the connection was never closed: "
                    + "the device sleeps, left, or its network is stuck.",
                helps: "Wake the device or come nearer; the session goes on looking for it.")
        case .declined(let words, _):
            CauseFacts(
                "declined", words.isEmpty ? "declined" : "declined: \(words)", .whenNamed,
                means: "The person or program over there said no.",
                helps: "Ask them; the words behind it are theirs.")
        case .full:
            CauseFacts(
                "full", "the other side has all the peers it takes", .whenNamed,
                means: "The other side talks to as many peers as it takes.",
                helps: "Try again when somebody has left, or have its program raise the limit of peers.")
        case .busy:
            CauseFacts(
                "busy", "the other side has too many invitations waiting", .whenNamed,
                means: "The other side has too many invitations waiting for an answer.",
                helps: "Try again in a moment.")
        case .bufferFull(let limit):
            CauseFacts(
                "buffer full", "\(limit) bytes wait for this peer already",
                means: "So many bytes wait for that peer already that no more are taken: it reads, or its "
                    + "link carries, too slowly.",
                helps: "Wait until there is room, as programs do that use `send` instead of `trySend`.")
        case .messageTooLarge(let size, let limit):
            CauseFacts(
                "message too large", "the message has \(size) bytes, the limit is \(limit)",
                means: "The message is larger than the limit allows.",
                helps: "Send it in pieces, or raise the limit on both sides.")
        case .notConnected:
            CauseFacts(
                "not connected", "not connected", .mayHelp,
                means: "There is no conversation with that peer now.", helps: "Invite it first.")
        case .unknownPeer:
            CauseFacts(
                "unknown peer", "no such peer is known", .mayHelp,
                means: "Nobody is known by that name or PeerID.",
                helps: "`nigh discover SERVICE` shows who is there; names are told apart by capitals.")
        case .noRoute:
            CauseFacts(
                "no route", "no transport knows a way there", .mayHelp,
                means: "None of the transports in use leads to that peer or address.",
                helps: "Name the transport with --transport, or wait until the peer is seen.")
        case .selfDial:
            CauseFacts(
                "self-dial", "the address leads back to this very session",
                means: "The address leads back to this very program.",
                helps: "Give the other device's address.")
        case .sameIdentity:
            CauseFacts(
                "same identity", "another running program uses the same identity",
                means: "Another program that runs now has the same identity, so others could not tell the "
                    + "two apart.",
                helps: "End the other program, or start one of them with --identity ephemeral.")
        case .wrongPeer(let expected, let found):
            CauseFacts(
                "wrong peer", "\(found.short) answered instead of \(expected.short)", .mayHelp,
                means: "Somebody else answered at that address than was called; its network may have given "
                    + "the address to another device.",
                helps: "Look the peer up again; if it happens again, somebody may be pretending to be it.")
        case .wrongService(let name):
            CauseFacts(
                "wrong service", "the peer offers the service \(name)",
                means: "The peer offers something else than this program.",
                helps: "Name the service with --service; both sides must name the same.")
        case .restarted:
            CauseFacts(
                "restarted", "the peer was started anew", .mayHelp,
                means: "The peer's program was started anew, so it knows nothing of the conversation that "
                    + "there was.",
                helps: "Invite it again.")
        case .peerLeft:
            CauseFacts(
                "peer left", "the peer left", .mayHelp,
                means: "The peer ended the conversation in good order.", helps: "Nothing is wrong.")
        case .left:
            CauseFacts(
                "left", "this side left",
                means: "This side ended the conversation.", helps: "Nothing is wrong.")
        case .unknownConversation:
            CauseFacts(
                "unknown conversation", "the other side has ended this conversation", .mayHelp,
                means: "The other side has given the conversation up, as after a long time out of reach.",
                helps: "Invite it again.")
        case .superseded:
            CauseFacts(
                "superseded", "another link took over", .mayHelp,
                means: "Another link to the same peer took over.", helps: "Nothing is wrong.")
        case .protocolViolation(let what):
            CauseFacts(
                "protocol violation", "the other side broke the protocol: \(what)", .mayHelp,
                means: "The other side sent something that the protocol does not allow: another program, "
                    + "another version, or a defect.",
                helps: "Look at what passes with `nigh trace`; update the older side.")
        case .contractBroken(let rule, let what):
            CauseFacts(
                "contract broken", "the transport broke the rule \"\(rule.rawValue)\": \(what)",
                means: "A transport of this program, perhaps one that was added to it, does what no "
                    + "transport may do; so it is used no more.",
                helps: "Tell whoever made the transport, with the rule that is named; leave it out, and the "
                    + "session goes on with the others.")
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
                    ? "the other side wants an encrypted link, this session was made without encryption"
                    : "the other side offers no encryption that this session accepts",
                means: "One side wants an encrypted link, the other one without encryption.",
                helps: "Leave --security out on both sides; `none` is for measurements, and both must say "
                    + "so.")
        case .notPaired:
            CauseFacts(
                "not paired", "the two devices are not paired",
                means: "One of the two talks to paired peers only, and they are not paired, or not any more.",
                helps: "`nigh pair` on both devices.")
        case .pairingRefused(let refusal):
            CauseFacts(
                "pairing refused", refusal.sentence,
                means: "There is no pairing: the other person said no, saw other digits, took too long, or "
                    + "its program does not wait for one.",
                helps: "Start `nigh pair` there, then here. If the digits differ, somebody may be in "
                    + "between: use another network.")
        case .insecure(let fault): fault.facts
        case .limit(let name, let value):
            CauseFacts(
                "limit", "the limit \"\(name)\" of \(value) is reached",
                means: "A named limit is reached; docs/LIMITS.md lists them all.",
                helps: "Raise it, or ask for less.")
        case .invalid(let what):
            CauseFacts(
                "invalid", "invalid \(what)",
                means: "A value cannot be what it is: an option, a name, a file.",
                helps: "The words behind it say what is wrong with it.")
        case .unavailable(let what):
            CauseFacts(
                "unavailable", what,
                means: "This machine or this build lacks something: an adapter, a daemon, a library, a "
                    + "permission.",
                helps: "`nigh doctor` says what, and how to bring it.")
        case .closed:
            CauseFacts(
                "closed", "the session is closed",
                means: "The session was closed already.", helps: "Nothing is wrong.")
        case .system(let number, let words):
            CauseFacts(
                "system", "\(words) (\(number))", .mayHelp,
                means: "The operating system said so, in these words.",
                helps: "`man 3 errno` explains the number behind them.")
        case .allFailed:
            CauseFacts(
                "all failed", "every way failed", .asAttempts,
                means: "Several addresses or transports were tried, and each failed for a reason of its own.",
                helps: "Look at the single reasons in the error; the nearest to success is often the last.")
        }
    }

    /// One example of every cause, in the order of `nigh errors`. A test checks that none is missing.
    package static let kinds: [NighError.Cause] =
        [
            .refused, .unreachable, .timedOut, .cancelled, .linkLost, .reset, .silent, .declined(""), .full,
            .busy, .bufferFull(limit: 0), .messageTooLarge(size: 0, limit: 0), .notConnected, .unknownPeer,
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
        case .declined: "the person over there did not want to be paired"
        case .digitsDiffer: "the digits were not the same on both sides"
        case .busy: "another pairing is going on"
        case .notNow: "the other side does not let itself be paired now"
        case .timedOut: "nobody compared the digits in time"
        }
    }
}
