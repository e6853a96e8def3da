extension Session {
    /// Asks a peer to be paired, so that two people can make sure that nobody is between their devices.
    ///
    /// Both sides get `SessionEvent.pairing` with six digits. `completion` is called on the loop: when both people have
    /// confirmed that their digits are the same, or with the reason why there is no pairing. This works with and
    /// without a conversation. A session asks for one pairing at a time, and for none while digits are shown.
    ///
    /// The other side must accept pairing: see `startAcceptingPairing`. The whole pairing has to finish within
    /// `timings.pairing`.
    public func pair(
        _ peer: PeerID, completion: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = reference.newToken()
        onLoop { driver in
            driver.begin(.pairing, token, completion) { machine, now in
                machine.pair(peer, token: token, now: now)
            }
        }
    }

    /// Reports whether the digits of a `SessionEvent.pairing` agree, after the person has compared them.
    ///
    /// False means that the other screen shows other digits: somebody may be in between, and nobody is paired. False
    /// also withdraws a pairing that shows no digits yet. Does nothing if there is no pairing with the peer any more.
    public func confirmPairing(with peer: PeerID, digitsAgree: Bool) {
        onLoop { driver in
            driver.inTurn {
                driver.machine.confirmPairing(with: peer, digitsAgree: digitsAgree, now: driver.loop.now)
            }
        }
    }

    /// Lets others ask to be paired from now on. Call it while the program shows that it waits for a pairing, and
    /// `stopAcceptingPairing` afterwards. In between, peers that are not paired can open a link to a session with
    /// `security: .paired`, for pairing alone.
    public func startAcceptingPairing() { onLoop { $0.machine.acceptsPairing = true } }

    /// Refuses requests for pairing from now on.
    public func stopAcceptingPairing() { onLoop { $0.machine.acceptsPairing = false } }

    /// Whether the session is paired with the identity that a peer acts for. Call it on the loop.
    package func isPaired(with peer: PeerID) -> Bool { machine.isPaired(with: peer) }

    /// Removes the pairing with the identity of a peer. The peer stays known, but is not trusted more than any other
    /// peer. A session with `security: .paired` ends its conversations with all peers of that identity.
    public func unpair(_ peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.unpair(peer, now: driver.loop.now) } }
    }
}
