/// An event in a session. Events are reported in the order in which they happen.
public enum SessionEvent: Sendable {
    /// The peer's state has changed from `from` to `peer.state`. If something failed or ended, `cause` says why.
    case stateChanged(Peer, from: PeerState, cause: NighError?)
    /// The peer's name, info, routes or trust has changed, or the transport in use, or whether unreliable messages
    /// travel beside it.
    case peerChanged(Peer)
    /// A peer asks for a conversation.
    case invited(Invitation)
    /// The invitation needs no answer any more, for example because it was withdrawn or timed out, or its link was
    /// lost.
    case invitationEnded(Invitation, cause: NighError)
    /// The peer had invited, too, so the two are connected without a question to this program. `context` is what its
    /// invitation said. An invitation that was reported as `invited` is not reported here again. A peer that speaks an
    /// earlier version tells nothing of its own invitation when it accepts this side's.
    case invitationsCrossed(Peer, context: [UInt8])
    /// A peer has opened a stream. A program that does not keep it cancels it.
    case streamOpened(ByteStream)
    /// A pairing with the peer shows its digits. Display them, ask the person whether the other screen shows the same,
    /// and pass the answer to the session's `confirmPairing`.
    case pairing(Peer, PairingCode)
    /// Both sides have confirmed the digits; the peer's key is remembered as paired.
    case paired(Peer)
    /// The pairing with the peer has ended without success.
    case pairingEnded(Peer, cause: NighError)
    /// The trust store could not be saved to its file, or read from there. What it holds still counts in this program.
    case trustStoreFailed(NighError)
    /// Nothing was received from a connected peer for a while. The session asks it for a sign of life.
    case peerUnresponsive(PeerID)
    /// Something was received again from a peer that was reported as unresponsive.
    case peerResponsive(PeerID)
    /// A transport came up or went down.
    case transportChanged(scheme: String, TransportCondition)
    /// A transport now listens at these addresses.
    case listening(scheme: String, [TransportAddress])
    /// Others can now see this session on that transport under `name`. The name differs from the session's own if
    /// another session there has that name already; the PeerID stays the same.
    case advertised(scheme: String, DisplayName)
    /// Advertising or browsing failed on one transport, or nobody answers at an address that it was given. The session
    /// goes on. It tries again where that helps, and reports the failure again when the reason changes.
    case transportFailed(NighError)
    /// This many events were dropped because nobody read them. `Session.peers` has the current state.
    case eventsDropped(Int)
    /// The session is closed. This is the last event.
    case closed
}
