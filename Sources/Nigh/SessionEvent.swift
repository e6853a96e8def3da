import NighCore

/// Something that happened in a session.
public enum SessionEvent: Sendable {
    /// A peer can be reached.
    case peerFound(Peer)
    /// A peer can no longer be reached.
    case peerLost(Peer)
    /// A peer's name, info, transport or trust changed, or its state in a way that no other event reports.
    case peerChanged(Peer)

    /// A conversation with the peer began: messages can be sent.
    case connected(Peer)
    /// The link to the peer was lost for this reason. The session looks for another; messages wait.
    case reconnecting(Peer, NighError)
    /// The conversation continues on another link. No reliable message was lost or repeated.
    case reconnected(Peer)
    /// The conversation is over, for this reason.
    case disconnected(Peer, NighError)
    /// A connected peer has been silent for some seconds and is asked for a sign of life.
    case peerUnresponsive(Peer)
    /// An unresponsive peer was heard again.
    case peerResponsive(Peer)

    /// A peer asks for a conversation. Accept or decline it.
    case invited(Invitation)
    /// An invitation needs no answer any more: the peer withdrew it, or the time for it is over.
    case invitationEnded(Invitation, NighError)
    /// The peer had invited, too, so the two are connected without a question. `context` is what its invitation said.
    case invitationsCrossed(Peer, context: [UInt8])
    /// An automatic invitation failed; see ``Session/connectsAutomatically`` and ``Topology/mesh``. The session invites
    /// the peer again later, unless the peer has declined.
    case automaticInvitationFailed(Peer, NighError)

    /// The peer has opened a stream of this name, which waits in ``Session/streams``.
    case streamOpened(Peer, name: String)

    /// The peer offers files, which wait in ``Session/fileOffers`` for an answer.
    case filesOffered(FileOffer)
    /// Files that a peer offered are being received, as ``SessionSettings/files`` says.
    case filesAccepted(FileTransfer)

    /// The peer is a member of a group that this session is in, from now on. `context` is what its program has joined
    /// with.
    case memberJoined(Peer, group: String, context: [UInt8])
    /// The peer is no longer a member of the group.
    case memberLeft(Peer, group: String)
    /// The peer does not accept this session as a member of the group, for this reason.
    case groupRefused(by: Peer, group: String, NighError)

    /// A message was no value of the type that ``Session/messages(of:)`` reads. It was left out.
    case messageUnreadable(Peer, NighError)

    /// Show these digits and ask the person whether the other screen shows the same; then call
    /// ``Peer/confirmPairing(digitsAgree:)``.
    case pairingCode(Peer, PairingCode)
    /// The peer is paired: both people confirmed the digits.
    case paired(Peer)
    /// The pairing did not take place, for this reason.
    case pairingFailed(Peer, NighError)

    /// A transport, for example "tcp", works.
    case transportUp(String)
    /// A transport does not work, for this reason. The session uses the others, and this one as soon as it works.
    case transportDown(String, NighError)
    /// The session has a problem that does not end it, for example a trust store that cannot be written.
    case problem(NighError)

    /// The reader was too slow: this many events before the next one are lost. ``Session/peers`` has the present state.
    case eventsDropped(Int)
}
