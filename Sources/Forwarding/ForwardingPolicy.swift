import NighCore

/// Which peers may connect to which ports of this device.
package struct ForwardingPolicy: Hashable, Sendable {
    /// The peers that may connect.
    package enum Peers: String, CaseIterable, Sendable {
        /// Paired devices.
        case paired
        /// Every device that reaches the session.
        case any
    }

    package var ports: Set<UInt16>
    package var peers: Peers

    package init(ports: Set<UInt16>, peers: Peers = .paired) {
        self.ports = ports
        self.peers = peers
    }

    /// Returns why a peer may not connect to a port; nil if it may. Pairing is checked first, so that a stranger learns
    /// nothing about ports.
    ///
    /// - Parameter connections: how many there are already, with all peers and with this one.
    func refusal(
        port: UInt16?, isPaired: Bool, connections: (all: Int, ofPeer: Int), limits: ForwardingLimits
    ) -> ForwardingRefusal? {
        if peers == .paired, !isPaired { return .notPaired }
        guard let port, ports.contains(port) else { return .notAllowed }
        if connections.ofPeer >= limits.connectionsPerPeer { return .full(limits.connectionsPerPeer) }
        if connections.all >= limits.connections { return .full(limits.connections) }
        return nil
    }
}

/// How many connections are carried at once.
package struct ForwardingLimits: Hashable, Sendable {
    /// The connections of all peers.
    package var connections = 256
    /// The connections of one peer.
    package var connectionsPerPeer = 128

    package init() {}
}

/// Counts of forwarded connections.
package struct ForwardingCounts: Hashable, Sendable {
    /// The connections that are open now.
    package var open = 0
    /// All connections that were opened, including those that are over.
    package var openedEver = 0
    package var refused = 0
    /// The bytes that connections which are over have sent to peers.
    package var sent = 0
    /// The bytes that connections which are over have received from peers.
    package var received = 0
}
