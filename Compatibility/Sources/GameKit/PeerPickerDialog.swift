/// The state of a picker as a person sees it, and the person's actions. Used on the main queue only.
public final class PeerPickerDialog {
    /// A peer nearby.
    public struct Peer: Hashable, Sendable {
        /// The peer's ID.
        public let id: String
        /// The name to show.
        public let name: String
    }

    /// The question that the person is to answer.
    public enum Stage: Hashable, Sendable {
        /// Which kind of connection; answered by ``PeerPickerDialog/choose(_:)``.
        case choosingConnection
        /// Which peer, of these, sorted by name; answered by ``PeerPickerDialog/invite(_:)``.
        case choosingPeer([Peer])
        /// Nothing: the peer that was chosen has to accept.
        case waiting(for: Peer)
        /// Whether to accept the peer that asks; answered by ``PeerPickerDialog/accept()`` or
        /// ``PeerPickerDialog/decline()``.
        case asked(by: Peer)
        /// Nothing: the session is connected to the peer.
        case connected(to: Peer)
    }

    /// The current question.
    public internal(set) var stage: Stage
    /// Why the last attempt to connect has failed, in a sentence; nil if there is nothing to say.
    public internal(set) var failure: String?
    private weak var picker: GKPeerPickerController?

    init(_ stage: Stage, of picker: GKPeerPickerController) {
        self.stage = stage
        self.picker = picker
    }

    /// Chooses a kind of connection.
    public func choose(_ type: GKPeerPickerConnectionType) { picker?.choose(type) }

    /// Asks a peer for a connection.
    public func invite(_ peer: Peer) { picker?.invite(peer) }

    /// Accepts the peer that asks.
    public func accept() { picker?.answer(accepting: true) }

    /// Declines the peer that asks.
    public func decline() { picker?.answer(accepting: false) }

    /// Closes the picker, which withdraws a request that is under way.
    public func cancel() { picker?.cancel() }
}
