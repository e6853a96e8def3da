/// The ports of the peers to which messages can be sent, for other threads than the loop's.
final class PortDirectory: Sendable {
    private let ports = Guarded<[PeerID: PeerPort]>([:])

    func add(_ port: PeerPort) { ports.withLock { $0[port.peer] = port } }

    /// Removes the port, unless a newer one has taken its place.
    func remove(_ port: PeerPort) {
        ports.withLock { ports in
            guard let index = ports.index(forKey: port.peer), ports[index].value === port else { return }
            ports.remove(at: index)
        }
    }

    func port(of peer: PeerID) throws(NighError) -> PeerPort {
        guard let port = ports.withLock({ $0[peer] }) else {
            throw NighError(
                .sending, .notConnected, peer: peer.short,
                advice: "invite the peer and wait until it is connected")
        }
        return port
    }

    var peers: [PeerID] { ports.withLock { $0.keys.sorted() } }
}
