import Synchronization

/// The ports of the peers to which messages can be sent, for other threads than the loop's.
final class PortDirectory: Sendable {
    private let ports = Guarded<[PeerID: PeerPort]>([:])
    private let closed = Atomic(false)

    func add(_ port: PeerPort) { ports.withLock { $0[port.peer] = port } }

    /// Removes the port, unless a newer one has taken its place.
    func remove(_ port: PeerPort) {
        ports.withLock { ports in
            guard let index = ports.index(forKey: port.peer), ports[index].value === port else { return }
            ports.remove(at: index)
        }
    }

    func port(of peer: PeerID) throws(NighError) -> PeerPort {
        if let port = ports.withLock({ $0[peer] }) { return port }
        try checkOpen(peer: peer.short)
        throw NighError(
            .sending, .notConnected, peer: peer.short,
            advice: "invite the peer and wait until it is connected")
    }

    var peers: [PeerID] { ports.withLock { $0.keys.sorted() } }

    /// Whether the session is closed or closing.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    func close() { closed.store(true, ordering: .releasing) }

    /// Throws if nothing more can be sent because the session is closed or closing.
    func checkOpen(peer: String? = nil) throws(NighError) {
        if isClosed { throw NighError(.sending, .closed, peer: peer) }
    }
}
