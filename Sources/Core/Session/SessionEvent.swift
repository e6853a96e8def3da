/// What happens in a session, in the order in which it happens.
public enum SessionEvent: Sendable {
    /// `peer.state` is new; before it was `from`. Where something failed or ended, `cause` says why.
    case stateChanged(Peer, from: PeerState, cause: NighError?)
    /// Name, info or routes of the peer changed, or the transport in use.
    case peerChanged(Peer)
    /// Somebody asks for a conversation.
    case invited(Invitation)
    /// The invitation needs no answer any more: withdrawn, timed out, or its link was lost.
    case invitationEnded(Invitation, cause: NighError)
    /// The peer and this side are being paired: show the digits, ask the person whether the other screen shows the same, and
    /// tell the session's `confirmPairing`.
    case pairing(Peer, PairingCode)
    /// On both sides the digits were confirmed; the peer's key is remembered as paired.
    case paired(Peer)
    /// There will be no pairing.
    case pairingEnded(Peer, cause: NighError)
    /// What is known of peers could not be kept in its file, or read from there; it counts in this program all the same.
    case trustNotKept(NighError)
    /// Nothing was heard of a connected peer for a while (true), or it was heard again (false).
    case suspected(PeerID, Bool)
    /// A transport came up or went down.
    case transportChanged(scheme: String, TransportCondition)
    /// A transport listens at these addresses now.
    case listening(scheme: String, [TransportAddress])
    /// Others can see this session on that transport under `name`: another than its own where somebody else there has that
    /// already. Who it is remains its PeerID.
    case advertised(scheme: String, DisplayName)
    /// Advertising or browsing failed on one transport, or nobody answers at an address it was given. The session goes on;
    /// it is tried again where that helps, and told again when the reason is another.
    case transportFailed(NighError)
    /// So many events were dropped here because nobody read them; look at `Session.peers` for how things stand.
    case missed(Int)
    /// The session is closed. The last event.
    case closed
}
