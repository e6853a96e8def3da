/// The explanation of an error's cause for people. `nigh errors` prints it.
struct CauseExplanation: Sendable {
    let meaning: String
    /// The remedy.
    let help: String

    /// The explanation of each cause, by the cause's label. A test checks that none is missing.
    static let byLabel: [String: CauseExplanation] = [
        "refused": CauseExplanation(
            meaning: "The device answers, but no program listens at that port or channel.",
            help: """
                Start the program on the other device. Check that it offers the same service, and that no \
                firewall rejects the port.
                """),
        "unreachable": CauseExplanation(
            meaning: "No network of this device leads there, or no device answers at that address.",
            help: "Connect both devices to the same network. `nigh doctor --peer` tries each address."),
        "timed out": CauseExplanation(
            meaning: """
                No answer came in time: a firewall drops packets, the device sleeps or is out of range, or \
                nobody answered an invitation.
                """,
            help:
                "Move nearer and try again. Open the port in the firewall. Allow more time with --timeout."),
        "cancelled": CauseExplanation(
            meaning: "It was cancelled, for example with Ctrl-C.", help: "Nothing is wrong."),
        "link lost": CauseExplanation(
            meaning: """
                The connection ended without a goodbye: the remote program was killed, or the network \
                failed.
                """,
            help: """
                Usually the session finds another link by itself. `nigh ping` shows how often this happens.
                """),
        "reset": CauseExplanation(
            meaning: """
                The other side reset the connection: its program crashed, or something on the way cuts \
                connections.
                """,
            help: "Check that the remote program still runs. Try another network or transport."),
        "silent": CauseExplanation(
            meaning: """
                Nothing was received for the keep-alive time, although the connection was not closed: the \
                device sleeps, left, or its network is stuck.
                """,
            help: "Wake the device or move nearer. The session continues to look for it."),
        "declined": CauseExplanation(
            meaning: "The remote person or program declined.",
            help: "Ask them. The words after \"declined\" are theirs."),
        "full": CauseExplanation(
            meaning: "The other side is connected to the greatest number of peers that it accepts.",
            help: "Try again when a peer has left, or raise the limit of peers in its program."),
        "busy": CauseExplanation(
            meaning: "The other side has too many invitations waiting for an answer.",
            help: "Try again in a moment."),
        "buffer full": CauseExplanation(
            meaning: """
                Too many bytes already wait for that peer, so no more are accepted. The peer reads too \
                slowly, or its link is too slow.
                """,
            help: "Wait until there is room. A program that uses `send` instead of `trySend` waits."),
        "message too large": CauseExplanation(
            meaning: "The message is larger than the limit allows.",
            help: "Send it in pieces, or raise the limit on both sides."),
        "stream cancelled": CauseExplanation(
            meaning: "One of the two programs gave up the stream before it had ended.",
            help: """
                The words after "cancelled" are those of that program. Open another stream if it is still \
                needed.
                """),
        "file": CauseExplanation(
            meaning:
                "A file, or all files of an offer, did not arrive, for the reason that the sentence names.",
            help: "Remove the reason and send the file again. What has arrived of it is not sent again."),
        "answered with error": CauseExplanation(
            meaning: "The program that was asked could not answer, or did not want to.",
            help: """
                The documentation of that program says which errors it answers with. If it gave no details, \
                its own log may.
                """),
        "answer lost": CauseExplanation(
            meaning: """
                A question or a call was sent, but its answer did not come. The peer's program may have \
                acted on it, and may have not.
                """,
            help: "Connect again, and find out whether the peer has acted on it before asking anew."),
        "unsupported": CauseExplanation(
            meaning: """
                The peer's program is of an earlier version, has this switched off, or was started for \
                something else.
                """,
            help: "Run what the error names on the other device, or update the program there."),
        "not connected": CauseExplanation(
            meaning: "There is no conversation with that peer now.", help: "Invite it first."),
        "unknown peer": CauseExplanation(
            meaning: "No peer with that name or PeerID is known.",
            help: "`nigh discover SERVICE` shows who is there, and what each takes."),
        "no route": CauseExplanation(
            meaning: "None of the transports in use leads to that peer or address.",
            help: "Name the transport with --transport, or wait until the peer is seen."),
        "self-dial": CauseExplanation(
            meaning: "The address leads back to this program.", help: "Give the other device's address."),
        "same identity": CauseExplanation(
            meaning: """
                Another running program has the same identity, so other peers could not tell the two apart.
                """,
            help: "End the other program, or start one of them with --identity ephemeral."),
        "wrong peer": CauseExplanation(
            meaning: """
                Another peer answered at that address than the one that was called. The network may have \
                given the address to another device.
                """,
            help: "Look the peer up again. If it happens again, somebody may be pretending to be it."),
        "wrong service": CauseExplanation(
            meaning: "The peer offers another service than this program.",
            help: "Name the service with --service. Both sides must name the same."),
        "restarted": CauseExplanation(
            meaning: "The peer's program was restarted, so it does not know the earlier conversation.",
            help: "Invite it again."),
        "peer left": CauseExplanation(
            meaning: "The peer ended the conversation properly.", help: "Nothing is wrong."),
        "left": CauseExplanation(
            meaning: "This side ended the conversation.", help: "Nothing is wrong."),
        "unknown conversation": CauseExplanation(
            meaning:
                "The other side has ended the conversation, for example after a long time out of reach.",
            help: "Invite it again."),
        "superseded": CauseExplanation(
            meaning: "Another link to the same peer took over.", help: "Nothing is wrong."),
        "protocol violation": CauseExplanation(
            meaning: """
                One side sent something that the protocol does not allow: it is another program or another \
                version, or it has a bug.
                """,
            help: "Look at the traffic with `nigh trace`. Update the older side."),
        "contract broken": CauseExplanation(
            meaning: """
                A transport of this program, perhaps a plugin, broke a rule that all transports must keep. \
                It is no longer used.
                """,
            help: """
                Report it to the author of the transport, with the rule that is named. Without this \
                transport, the session continues with the others.
                """),
        "no common version": CauseExplanation(
            meaning: "The two programs speak no common version of the protocol.",
            help: "Update the older one."),
        "no common security": CauseExplanation(
            meaning: "One side wants an encrypted link, the other one without encryption.",
            help: """
                Leave out --security on both sides. `none` is for measurements, and both sides must use it.
                """),
        "not paired": CauseExplanation(
            meaning: "One of the two accepts only paired peers, and they are not paired, or no longer.",
            help: "Run `nigh pair` on both devices."),
        "pairing refused": CauseExplanation(
            meaning: """
                The two were not paired: the other person declined, saw other digits, or took too long, or \
                the remote program does not accept pairing now.
                """,
            help: """
                Start `nigh pair` there, then here. If the digits differ, somebody may be between the \
                devices: use another network.
                """),
        "limit": CauseExplanation(
            meaning: "A named limit is reached. docs/reference/LIMITS.md lists all limits.",
            help: "Raise it, or ask for less."),
        "invalid": CauseExplanation(
            meaning: "A value is invalid: an option, a name or a file.",
            help: "The error says what is wrong with it."),
        "unavailable": CauseExplanation(
            meaning:
                "This machine or this build lacks something: an adapter, a daemon, a library, a permission.",
            help: "`nigh doctor` says what is missing, and how to get it."),
        "closed": CauseExplanation(
            meaning: "The session is already closed.", help: "Nothing is wrong."),
        "system": CauseExplanation(
            meaning: "The operating system reported this error.", help: "`man 3 errno` explains its number."),
        "all failed": CauseExplanation(
            meaning: "Several addresses or transports were tried, and each failed for its own reason.",
            help: "Look at the single reasons in the error. The last one often came nearest to success."),
        "no certificate": foreignCertificate,
        "several certificates": foreignCertificate,
        "certificate expired": wrongTime,
        "certificate not yet valid": wrongTime,
        "wrong kind of key": foreignCertificate,
        "certificate not self-signed": foreignCertificate,
        "TLS too old": foreignTLS,
        "no common application protocol": foreignTLS,
        "own certificate refused": CauseExplanation(
            meaning: "The other side did not accept this side's certificate.",
            help: "Set the clocks of both devices. Check whether the other side expects another peer."),
        "TLS refused": CauseExplanation(
            meaning: "The other side ended the handshake or the link.",
            help: "The error gives the reason, as far as TLS tells it."),
        "claimed another PeerID": CauseExplanation(
            meaning: "The other side claims a PeerID whose key it does not have.",
            help: "Do not trust it: it may pretend to be another peer."),
        "claimed another identity": CauseExplanation(
            meaning: "The other side's hello has a delegation that is not valid for this session.",
            help: "Do not trust it: it may pretend to be another peer."),
        "announced falsely": CauseExplanation(
            meaning: """
                An announcement said that the peer acts for an identity, and the peer has proven otherwise.
                """,
            help: "Somebody forges announcements: compare the PeerIDs on both screens before you trust it."),
        "preface changed": CauseExplanation(
            meaning: "The unencrypted beginning of the link was changed on the way.",
            help: "Somebody is between the devices: use another network."),
        "TLS damaged": CauseExplanation(
            meaning: "Bytes were changed, left out or repeated on the way, and the encryption has noticed.",
            help: """
                Usually the cable or the radio is bad; at worst somebody is between the devices. The session \
                finds another link.
                """),
        "TLS malformed": CauseExplanation(
            meaning: "The other side breaks the rules of TLS.",
            help: "Check that a Nigh program answers there."),
    ]

    private static let foreignCertificate = CauseExplanation(
        meaning: """
            The certificate that the other side shows is not that of a Nigh peer: one self-signed \
            certificate with an Ed25519 key.
            """,
        help: "Check that a Nigh program answers there.")

    private static let wrongTime = CauseExplanation(
        meaning: "By this device's clock the other side's certificate is not valid.",
        help: "Set the clocks of both devices.")

    private static let foreignTLS = CauseExplanation(
        meaning: "The other side speaks TLS, but not TLS 1.3 for Nigh.",
        help: "Check that a Nigh program answers there.")
}
