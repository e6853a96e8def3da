/// Something that happened in a session. Events are reported in the order in which they happen.
///
/// Each change of a peer's state is one event; ``stateChange`` tells them from others.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum SessionEvent: Sendable {
    /// A peer can be reached.
    case peerFound(Peer)
    /// A peer can no longer be reached.
    case peerLost(Peer)
    /// A peer's name, info, routes or trust changed, or the transport in use, or whether unreliable messages travel as
    /// datagrams.
    case peerChanged(Peer)

    /// One of the two sides has asked for a conversation, and the answer is on its way.
    case connecting(Peer)
    /// A conversation with the peer began: messages can be sent.
    case connected(Peer)
    /// The link to the peer was lost for this reason. The session looks for another; messages wait.
    case reconnecting(Peer, NighError)
    /// The conversation continues on another link. No reliable message was lost or repeated.
    case reconnected(Peer)
    /// The conversation is over, for this reason.
    case disconnected(Peer, NighError)
    /// A peer can be invited again: its conversation is over, or connecting has come to nothing, for this reason.
    case available(Peer, NighError?)
    /// A connected peer has been silent for some seconds and is asked for a sign of life.
    case peerUnresponsive(Peer)
    /// An unresponsive peer was heard again.
    case peerResponsive(Peer)

    /// A peer asks for a conversation. Accept or decline it.
    case invited(Invitation)
    /// An invitation needs no answer any more, for example because it was withdrawn or timed out, or its link was lost.
    case invitationEnded(Invitation, NighError)
    /// The peer had invited, too, so the two are connected without a question to this program. `context` is that of its
    /// invitation. An invitation that was reported as `invited` is not reported here again. A peer of an earlier
    /// version does not report its own invitation when it accepts this side's.
    case invitationsCrossed(Peer, context: [UInt8])
    /// An automatic invitation failed. The session invites the peer again later, unless the peer has declined.
    case automaticInvitationFailed(Peer, NighError)

    /// A peer has opened a stream. A stream that nobody keeps is cancelled.
    case streamOpened(ByteStream)
    /// A message was no value of the type that the program reads. It was left out.
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
    /// A transport now listens at these addresses; at none if the list is empty.
    case listening(scheme: String, [TransportAddress])
    /// Others can now see this session on that transport under `name`. The name differs from the session's own if
    /// another session there has that name already; the PeerID stays the same.
    case advertised(scheme: String, name: String)
    /// The session has a problem that does not end it: advertising or browsing failed on one transport, nobody answers
    /// at an address that it was given, or its trust store cannot be read or written. It tries again where that helps,
    /// and reports the problem again when the reason changes.
    case problem(NighError)

    /// The reader was too slow: this many events before the next one are lost. ``Session/peers`` has the present state.
    case eventsDropped(Int)
    /// The session is closed. This is the last event.
    case closed
}

extension SessionEvent {
    /// The peer whose state has changed, and why, if something failed or ended; nil if the event is of another kind.
    public var stateChange: (peer: Peer, cause: NighError?)? {
        switch self {
        case .peerFound(let peer), .peerLost(let peer), .connecting(let peer), .connected(let peer),
            .reconnected(let peer):
            (peer, nil)
        case .reconnecting(let peer, let cause), .disconnected(let peer, let cause): (peer, cause)
        case .available(let peer, let cause): (peer, cause)
        default: nil
        }
    }

    /// The peer that has changed, in its state or as ``peerChanged(_:)`` says; nil if the event is of another kind.
    public var changedPeer: Peer? {
        if case .peerChanged(let peer) = self { peer } else { stateChange?.peer }
    }

    /// Creates the event of a peer's change to its present state.
    ///
    /// - Parameter cause: why something failed or ended; part of the events `reconnecting` and `disconnected`.
    init(_ peer: Peer, from former: PeerState, cause: NighError?) {
        switch (former, peer.state) {
        case (_, .unavailable): self = .peerLost(peer)
        case (.unavailable, .available): self = .peerFound(peer)
        case (_, .available): self = .available(peer, cause)
        case (_, .connecting): self = .connecting(peer)
        case (.reconnecting, .connected): self = .reconnected(peer)
        case (_, .connected): self = .connected(peer)
        case (_, .reconnecting): self = .reconnecting(peer, cause!)
        case (_, .disconnected): self = .disconnected(peer, cause!)
        }
    }
}
