extension Session {
    package func pair(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.pairing, token, completion) { machine, now in
                machine.pair(peer, token: token, now: now)
            }
        }
    }

    /// Lets peers ask to be paired from now on; see ``Peer/pair()``. Call it while the program shows that it waits for
    /// a pairing, and ``stopAcceptingPairing()`` afterwards. In between, peers that are not paired can open a link to a
    /// session with `security: .paired`, for pairing alone.
    public func startAcceptingPairing() { onLoop { $0.machine.acceptsPairing = true } }

    /// Refuses requests for pairing from now on.
    public func stopAcceptingPairing() { onLoop { $0.machine.acceptsPairing = false } }

    /// Whether the session is paired with the identity that a peer acts for. Call it on the loop.
    package func isPaired(with peer: PeerID) -> Bool { driver.machine.isPaired(with: peer) }
}
