import Nigh

extension Peer {
    /// Pairs with the peer. The people at both ends confirm the digits, about which `events` tell at this end, and
    /// `peersEvents` at the other.
    func pair(_ events: EventSequence, _ peersEvents: EventSequence) async throws {
        async let pairing: Void = pair()
        for await case .pairingCode(let peer, _) in peersEvents {
            peer.confirmPairing(digitsAgree: true)
            break
        }
        for await case .pairingCode in events {
            confirmPairing(digitsAgree: true)
            break
        }
        try await pairing
    }
}
