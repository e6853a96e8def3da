import NighCore

/// The relays of one session: the pipes that others carry for it, and those that it carries for others.
///
/// A layer of its session.
package final class Relays: ConversationLayer {
    /// Opens pipes through other peers.
    package let transport = RelayTransport()
    /// Carries pipes for other peers.
    package let carrier: RelayCarrier

    /// The mutable state.
    private final class LoopState {
        /// The peers whose conversations are carried by other peers.
        var relayed: Set<PeerID> = []
        weak var session: Session?
    }

    /// How long pipes wait for a carrier whose link has broken.
    private static let patience = Moment.Span.seconds(2)

    /// Used on the session's loop only; hence `nonisolated(unsafe)`.
    private nonisolated(unsafe) let onLoop = LoopState()

    /// Creates the relays of a session that carries pipes for the peers that `policy` names, and takes pipes that they
    /// carry.
    package init(carryingFor policy: RelayPolicy, limits: RelayLimits = RelayLimits()) {
        carrier = RelayCarrier(for: policy, limits: limits)
    }

    /// The transport that opens pipes through other peers.
    package var transports: [any Transport] { [transport] }

    /// The purpose of the relays' streams.
    package var purposes: [StreamPurpose] { [.relay] }

    /// Takes a stream that a peer has opened as a pipe to or from another peer.
    package func receive(_ stream: ByteStream) {
        if case .from? = try? RelayStreamName(stream.name) {
            guard carrier.allows(stream.peer) else {
                return stream.cancel(because: "this peer takes no pipes that the carrier brings")
            }
            transport.receive(stream)
        } else {
            // The carrier also refuses names that mean nothing.
            carrier.receive(stream)
        }
    }

    /// Begins to follow a session.
    package func attach(to session: Session) {
        onLoop.session = session
        transport.attach(to: session)
        carrier.attach(to: session)
    }

    /// Takes an event of the session. Loop only.
    package func handle(_ event: SessionEvent) {
        if let peer = event.changedPeer { note(peer) }
        if case .reconnecting(let peer, _) = event { giveUpLater(peer.id) }
    }

    /// Ends the pipes through a carrier whose link stays broken, if their peers have other routes. They would otherwise
    /// wait as long as the conversation with the carrier does.
    private func giveUpLater(_ carrier: PeerID) {
        guard let session = onLoop.session else { return }
        session.loop.schedule(at: session.loop.now + Self.patience) { [weak session, transport] in
            guard let session, session.inspection(of: carrier)?.state == .reconnecting else { return }
            transport.endPipes(through: carrier, because: .linkLost) { address in
                session.inspection(of: address.peer)?.routes.contains { $0 != address.transportAddress }
                    == true
            }
        }
    }

    /// Ends the pipes through and for a peer that is itself reached through a carrier now.
    private func note(_ peer: Peer) {
        guard peer.transport == RelayAddress.scheme else {
            onLoop.relayed.remove(peer.id)
            return
        }
        guard onLoop.relayed.insert(peer.id).inserted else { return }
        transport.endPipes(
            through: peer.id,
            because: .streamCancelled("the carrier is itself reached through another peer now"))
        carrier.endPipes(of: peer.id)
    }

    /// Ends the pipes that this session carries, so that their ends hear of it at once.
    package func sessionWillClose() {
        carrier.stop()
        onLoop.relayed = []
    }
}
