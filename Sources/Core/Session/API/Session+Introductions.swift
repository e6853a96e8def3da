extension Session {
    /// Returns a peer by its ID. If the session has not reported it, it has the properties in `advertisement`, which
    /// other peers have given for it.
    package func peer(_ id: PeerID, advertisement: Advertisement?) -> Peer {
        reference.reports.presentPeer(id)
            ?? Peer(
                unknown: id, advertisement: advertisement,
                trust: advertisement.flatMap { trust(inPeerOf: $0) }, in: reference)
    }

    private func trust(inPeerOf advertisement: Advertisement) -> PeerTrust? {
        guard configuration.security != .none else { return nil }
        let identity = advertisement.identity ?? advertisement.peer
        return identity == self.identity
            ? .paired : trust.trust(in: identity, called: advertisement.name)
    }

    /// Makes an introduced peer known, with the addresses at which it can be reached. They replace those that were
    /// given before.
    package func introduce(_ peer: IntroducedPeer) {
        onLoop { driver in driver.inTurn { driver.machine.introduce(peer, now: driver.loop.now) } }
    }

    /// Forgets the addresses at which others have said that the peer can be reached.
    package func forgetIntroduction(of peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.forgetIntroduction(of: peer) } }
    }

    /// Whether to dial an address that a connected peer has given as that of a third one. Loop only.
    package func mayDial(_ address: TransportAddress, introducedBy peer: PeerID) -> Bool {
        let link = driver.machine.peers[peer]?.link
        let introducer = link.flatMap { driver.connections[$0.number]?.pipe.remoteAddress }
        return driver.transports.contains { transport in
            transport.scheme == address.scheme && transport.mayDial(address, introducedBy: introducer)
        }
    }

    /// The name and the short PeerID of a peer, for errors; the latter alone if nothing else is known. Loop only.
    package func label(of peer: PeerID) -> String { driver.machine.peers[peer]?.label ?? peer.short }

    /// Whether the peer of a conversation accepts streams for a purpose. Loop only.
    package func accepts(_ purpose: StreamPurpose, _ peer: PeerID) -> Bool {
        driver.machine.peers[peer]?.conversation?.peerAccepts(purpose) ?? false
    }
}
