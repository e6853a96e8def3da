extension Session {
    /// Asks a peer to be paired, so that two people can make sure that nobody is between their devices: both sides get
    /// `SessionEvent.pairing` with six digits, and `whenDone` is called on the loop once both people have confirmed that
    /// theirs are the same, or with why there is no pairing. Works with and without a conversation; one pairing at a time.
    ///
    /// The other side must let itself be paired: `setAcceptingPairing`. It has `timings.pairing` for all of it.
    public func pair(
        _ peer: PeerID, whenDone: @escaping @Sendable (Result<PeerID, NighError>) -> Void = { _ in }
    ) {
        let token = newToken()
        onLoop { driver in
            driver.begin(token, whenDone) { machine, now in machine.pair(peer, token: token, now: now) }
        }
    }

    /// Asks a peer to be paired and waits until it is. Cancelling the task does not end the pairing; `confirmPairing` does.
    public func pair(_ peer: PeerID) async throws(NighError) {
        _ = try await result { pair(peer, whenDone: $0) }
    }

    /// The person has compared the digits of a `SessionEvent.pairing`: the other screen shows the same, or not, in which
    /// case somebody may be in between and nobody is paired. False also takes back a pairing that shows no digits yet. Does
    /// nothing where there is no pairing with the peer any more.
    public func confirmPairing(with peer: PeerID, digitsAgree: Bool) {
        onLoop { driver in
            driver.inTurn {
                driver.machine.confirmPairing(with: peer, digitsAgree: digitsAgree, now: driver.loop.now)
            }
        }
    }

    /// Whether others may ask to be paired: switched on while the program shows that it waits for that, off as a rule. Peers
    /// that are not paired can then link up with a session of paired peers, for pairing alone.
    public func setAcceptingPairing(_ isOn: Bool) { onLoop { $0.machine.acceptsPairing = isOn } }

    /// Takes a pairing back: the peer stays known, but is no more to be trusted than anybody else. A session of paired
    /// peers ends its conversation with it.
    public func unpair(_ peer: PeerID) {
        onLoop { driver in driver.inTurn { driver.machine.unpair(peer, now: driver.loop.now) } }
    }
}
