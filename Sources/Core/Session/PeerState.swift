/// How a session stands with a peer.
public enum PeerState: String, Hashable, Sendable, CaseIterable {
    /// Not to be seen, and not connected.
    case unavailable
    /// Seen, by discovery or because it asks for a conversation.
    case available
    /// One of the two has asked for a conversation, and the answer is on its way.
    case connecting
    /// Messages flow.
    case connected
    /// The link broke; another is being looked for. Messages are kept.
    case reconnecting
    /// The conversation is over. Passed through on the way to `available` or `unavailable`.
    case disconnected

    /// Whether there is a conversation, or one is asked for.
    var isEngaged: Bool {
        switch self {
        case .connecting, .connected, .reconnecting: true
        case .unavailable, .available, .disconnected: false
        }
    }

    /// Whether a peer may go from this state to `next` in one move.
    public func mayMove(to next: PeerState) -> Bool {
        switch (self, next) {
        case (.unavailable, .available), (.available, .unavailable),
            (.available, .connecting), (.connecting, .available), (.connecting, .connected),
            (.connected, .reconnecting), (.reconnecting, .connected),
            (.connected, .disconnected), (.reconnecting, .disconnected),
            (.disconnected, .available), (.disconnected, .unavailable):
            true
        default: false
        }
    }
}

/// Somebody else's session, as this one sees it now. A value: it does not change when the peer does.
public struct Peer: Hashable, Sendable, Identifiable {
    /// Who it is.
    public let id: PeerID
    /// What it calls itself; a label, by which nobody is told apart.
    public let name: DisplayName
    /// What it advertises.
    public let info: DiscoveryInfo
    /// How this session stands with it.
    public let state: PeerState
    /// The ways to it, the preferred first.
    public let routes: [Route]
    /// The scheme of the transport that carries the conversation now; nil while there is no link. It changes without a
    /// change of state when the conversation moves to a better route; `SessionEvent.peerChanged` tells it.
    public let transport: String?
    /// What is known about its key. Whoever was only seen so far has yet to prove that the key is theirs, and does so before
    /// anything else passes. Nil in a session without encryption, where nobody proves anything.
    public let trust: PeerTrust?

    /// One way to reach a peer.
    public struct Route: Hashable, Sendable {
        /// Where to dial.
        public let address: TransportAddress
        /// How good it looks, 0 to 1, where the transport can tell.
        public let quality: Double?
    }
}

/// Somebody asks for a conversation. Answer it with the session's `accept` or `decline`.
public struct Invitation: Hashable, Sendable {
    /// Unique within the session.
    public let number: UInt64
    /// Who asks.
    public let peer: Peer
    /// What the inviting program says.
    public let context: [UInt8]
    /// The scheme of the transport it came by.
    public let transport: String
}

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
