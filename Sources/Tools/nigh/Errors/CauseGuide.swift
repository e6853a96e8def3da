import NighCore

/// What a person should know about each cause of an error: what it means, and what helps.
struct CauseGuide: Sendable {
    /// The cause's label, as in JSON and statistics.
    let label: String
    /// What has happened.
    let meaning: String
    /// What one can do.
    let advice: String

    /// One of every kind of cause, in the order of the guide. A test sees to it that none is missing.
    static let causes: [NighError.Cause] =
        [
            .refused, .unreachable, .timedOut, .cancelled, .linkLost, .reset, .silent, .declined(""), .full,
            .busy, .bufferFull(limit: 0), .messageTooLarge(size: 0, limit: 0), .notConnected, .unknownPeer,
            .noRoute, .selfDial, .sameIdentity, .wrongPeer(expected: nobody, found: nobody),
            .wrongService(""), .restarted, .peerLeft, .left, .unknownConversation, .superseded,
            .protocolViolation(""), .contractBroken(.eventsOnTheLoop, ""),
            .noCommonVersion(ours: 1...1, theirs: 1...1),
            .noCommonSecurity(theyEncrypt: true), .notPaired, .pairingRefused(.declined), .limit("", 0),
            .invalid(""), .unavailable(""), .closed, .system(0, ""), .allFailed,
        ] + faults.map { .insecure($0) }

    /// One of every kind of fault of a secure link.
    private static let faults: [SecurityFault] = [
        .noCertificate, .severalCertificates(2), .certificateExpired, .certificateNotYetValid,
        .wrongKeyKind(""), .notSelfSigned, .versionTooOld, .noCommonProtocol, .certificateRefused(""),
        .refused(""), .claimsAnotherPeer(nobody), .prefaceChanged, .damaged, .malformed(""),
    ]

    /// Stands in causes that name somebody. No key is made for it: the guide is part of every start of the program.
    private static let nobody: PeerID = {
        guard let peer = PeerID(bytes: [UInt8](repeating: 0, count: PeerID.byteCount)) else {
            preconditionFailure("so many bytes are a PeerID")
        }
        return peer
    }()

    /// The whole guide.
    static let all = causes.map(CauseGuide.init)

    /// What is to be known about `cause`.
    init(_ cause: NighError.Cause) {
        label = cause.label
        (meaning, advice) =
            switch cause {
            case .insecure(let fault): Self.words(for: fault)
            default: Self.wordsForConnecting(cause) ?? Self.words(for: cause)
            }
    }

    private typealias Words = (meaning: String, advice: String)

    /// Nil for a cause that has nothing to do with getting in touch and staying so.
    private static func wordsForConnecting(_ cause: NighError.Cause) -> Words? {
        switch cause {
        case .refused:
            (
                "The device answers, but nobody listens at that port or channel.",
                "Start the program over there; look whether it offers the same service, and whether a firewall rejects the port."
            )
        case .unreachable:
            (
                "No network of this device leads there.",
                "Bring both devices into the same network; `nigh doctor --peer` tries each address."
            )
        case .timedOut:
            (
                "No answer came in time: a firewall that drops packets, a device that sleeps or is out of range, or nobody who answered an "
                    + "invitation.",
                "Try again nearer to it; let the port through the firewall; give it longer with --timeout."
            )
        case .cancelled: ("This side took it back, for example by Ctrl-C.", "Nothing is wrong.")
        case .linkLost:
            (
                "The connection ended without a goodbye: the program over there was killed, or the network went away.",
                "As a rule the session finds another link by itself; `nigh ping` shows how often it happens."
            )
        case .reset:
            (
                "The other side broke the connection off: its program crashed, or something on the way cuts connections.",
                "Look whether the program over there still runs; try another network or transport."
            )
        case .silent:
            (
                "Nothing was heard for the keep-alive time, though the connection was never closed: the device sleeps, left, or its network is stuck.",
                "Wake the device or come nearer; the session goes on looking for it."
            )
        case .unknownPeer:
            (
                "Nobody is known by that name or PeerID.",
                "`nigh discover SERVICE` shows who is there; names are told apart by capitals."
            )
        case .noRoute:
            (
                "None of the transports in use leads to that peer or address.",
                "Name the transport with --transport, or wait until the peer is seen."
            )
        case .selfDial:
            ("The address leads back to this very program.", "Give the other device's address.")
        case .sameIdentity:
            (
                "Another program that runs now has the same identity, so others could not tell the two apart.",
                "End the other program, or start one of them with --identity ephemeral."
            )
        case .wrongPeer:
            (
                "Somebody else answered at that address than was called; its network may have given the address to another device.",
                "Look the peer up again; if it happens again, somebody may be pretending to be it."
            )
        case .wrongService:
            (
                "The peer offers something else than this program.",
                "Name the service with --service; both sides must name the same."
            )
        case .noCommonVersion:
            ("The two programs speak no common version of the protocol.", "Update the older one.")
        case .noCommonSecurity:
            (
                "One side wants an encrypted link, the other one without encryption.",
                "Leave --security out on both sides; `none` is for measurements, and both must say so."
            )
        case .allFailed:
            (
                "Several addresses or transports were tried, and each failed for a reason of its own.",
                "Look at the single reasons in the error; the nearest to success is often the last."
            )
        default: nil
        }
    }

    private static func words(for cause: NighError.Cause) -> Words {
        switch cause {
        case .declined:
            ("The person or program over there said no.", "Ask them; the words behind it are theirs.")
        case .full:
            (
                "The other side talks to as many peers as it takes.",
                "Try again when somebody has left, or have its program raise the limit of peers."
            )
        case .busy:
            ("The other side has too many invitations waiting for an answer.", "Try again in a moment.")
        case .bufferFull:
            (
                "So many bytes wait for that peer already that no more are taken: it reads, or its link carries, too slowly.",
                "Wait until there is room, as programs do that use `send` instead of `trySend`."
            )
        case .messageTooLarge:
            (
                "The message is larger than the limit allows.",
                "Send it in pieces, or raise the limit on both sides."
            )
        case .notConnected: ("There is no conversation with that peer now.", "Invite it first.")
        case .restarted:
            (
                "The peer's program was started anew, so it knows nothing of the conversation that there was.",
                "Invite it again."
            )
        case .peerLeft: ("The peer ended the conversation in good order.", "Nothing is wrong.")
        case .left: ("This side ended the conversation.", "Nothing is wrong.")
        case .unknownConversation:
            (
                "The other side has given the conversation up, as after a long time out of reach.",
                "Invite it again."
            )
        case .superseded: ("Another link to the same peer took over.", "Nothing is wrong.")
        case .protocolViolation:
            (
                "The other side sent something that the protocol does not allow: another program, another version, or a defect.",
                "Look at what passes with `nigh trace`; update the older side."
            )
        case .contractBroken:
            (
                "A transport of this program, perhaps one that was added to it, does what no transport may do; so it is used no more.",
                "Tell whoever made the transport, with the rule that is named; leave it out, and the session goes on with the others."
            )
        case .notPaired:
            (
                "One of the two talks to paired peers only, and they are not paired, or not any more.",
                "`nigh pair` on both devices."
            )
        case .pairingRefused:
            (
                "There is no pairing: the other person said no, saw other digits, took too long, or its program does not wait for one.",
                "Start `nigh pair` there, then here. If the digits differ, somebody may be in between: use another network."
            )
        case .limit:
            ("A named limit is reached; docs/LIMITS.md lists them all.", "Raise it, or ask for less.")
        case .invalid:
            (
                "A value cannot be what it is: an option, a name, a file.",
                "The words behind it say what is wrong with it."
            )
        case .unavailable:
            (
                "This machine or this build lacks something: an adapter, a daemon, a library, a permission.",
                "`nigh doctor` says what, and how to bring it."
            )
        case .closed: ("The session was closed already.", "Nothing is wrong.")
        case .system:
            (
                "The operating system said so, in these words.",
                "`man 3 errno` explains the number behind them."
            )
        default: ("", "")
        }
    }

    private static func words(for fault: SecurityFault) -> Words {
        switch fault {
        case .noCertificate, .severalCertificates, .wrongKeyKind, .notSelfSigned:
            (
                "The certificate that the other side shows is not that of a Nigh peer: one, made by itself, with an Ed25519 key.",
                "Look whether it is a Nigh program that answers there."
            )
        case .certificateExpired, .certificateNotYetValid:
            (
                "By this device's clock the other side's certificate is not valid.",
                "Set the clocks of both devices."
            )
        case .versionTooOld, .noCommonProtocol:
            (
                "The other side speaks TLS, but not TLS 1.3 for Nigh.",
                "Look whether it is a Nigh program that answers there."
            )
        case .certificateRefused:
            (
                "The other side did not accept this side's certificate.",
                "Set the clocks of both devices; look whether the other side expects somebody else."
            )
        case .refused:
            ("The other side broke the handshake off.", "The words behind it say why, as far as TLS does.")
        case .claimsAnotherPeer:
            (
                "The other side says that it is somebody whose key it does not have.",
                "Do not trust it: somebody may be pretending."
            )
        case .prefaceChanged:
            (
                "What the two sides told each other before the link was encrypted was changed on the way.",
                "Somebody is between the devices: use another network."
            )
        case .damaged:
            (
                "Bytes were changed, left out or repeated on the way, and the encryption has noticed.",
                "A bad cable or radio as a rule, somebody on the way at worst; the session finds another link."
            )
        case .malformed:
            (
                "The other side breaks the rules of TLS.",
                "Look whether it is a Nigh program that answers there."
            )
        }
    }
}
