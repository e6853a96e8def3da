import NighCore
import NighTestKit

// Pairing by users, and the rule that is checked: two peers are paired only after both users have confirmed the same
// digits.

extension World {
    /// How long two users may compare digits.
    static let pairingTime = Duration.seconds(6)

    /// Lets the user of a run ask some peer to pair.
    func pair(_ run: SessionRun) {
        guard let other = peer(of: run, in: [.available, .connecting, .connected, .reconnecting]) else {
            return
        }
        let call = run.call("pair \(other)", within: Self.pairingTime + .milliseconds(50))
        run.session?.pair(peers[other].identity.peerID) { result in
            switch result {
            case .success: run.recordAnswer(to: call, "paired")
            case .failure(let error): run.recordAnswer(to: call, "not paired", error: error)
            }
        }
    }

    /// Shows digits to a user, who mostly confirms them after a while, sometimes denies them, sometimes does nothing.
    /// The log does not have the digits, because no seed decides them.
    func showDigits(_ code: PairingCode, with peer: Peer, to run: SessionRun) {
        guard let other = index(of: peer.id) else {
            return run.report(.ghosts, "is paired with \(peer.id.short)")
        }
        run.note(.event, other, 7, "is shown digits with \(other)")
        if let shown = run.shownDigits {
            run.report(.pairing, "is shown digits with \(other) together with those of \(shown.other)")
        }
        run.shownDigits = (other, code)
        let roll = generator.number(0...99)
        schedule(after: generator.milliseconds(10...3_000)) { [self] in
            guard let shown = run.shownDigits, shown == (other, code), roll < 90 else { return }
            if roll < 75 { confirmedDigits[[run.index, other], default: []].insert(code) }
            run.note(
                .call, other, roll < 75 ? 1 : 0,
                "says \(roll < 75 ? "yes" : "no") to the digits with \(other)")
            run.session?.peer(peer.id).confirmPairing(digitsAgree: roll < 75)
        }
    }

    func paired(_ run: SessionRun, with peer: Peer) {
        guard let other = index(of: peer.id) else {
            return run.report(.ghosts, "is paired with \(peer.id.short)")
        }
        run.note(.event, other, 8, "is paired with \(other)")
        guard let shown = run.shownDigits, shown.other == other else {
            return run.report(.pairing, "is paired with \(other) before digits were shown")
        }
        run.shownDigits = nil
        for pair in [[run.index, other], [other, run.index]]
        where confirmedDigits[pair]?.contains(shown.code) != true {
            run.report(.pairing, "is paired with \(other), and \(pair[0]) has not confirmed the same digits")
        }
        if !run.owner.trust.isPaired(peer.identity) {
            run.report(.pairing, "does not know that it is paired")
        }
        counts.pairings += 1
    }

    func pairingEnded(_ run: SessionRun, with peer: Peer, _ error: NighError) {
        run.note(.event, index(of: peer.id) ?? -1, 9, "pairing ended: \(error)")
        if run.shownDigits?.other == index(of: peer.id) { run.shownDigits = nil }
    }

    /// Checks at rest that nobody sees digits any more, and that both users have confirmed the same digits wherever one
    /// trusts the other as paired.
    func checkPairing() {
        for worldPeer in peers {
            if let run = worldPeer.currentRun, let shown = run.shownDigits {
                run.report(.progress, "is still shown digits with \(shown.other)")
            }
            for known in worldPeer.trust.peers where known.isPaired {
                let other = index(of: known.id) ?? -1
                let own = confirmedDigits[[worldPeer.index, other]] ?? []
                if own.isDisjoint(with: confirmedDigits[[other, worldPeer.index]] ?? []) {
                    worldPeer.runs.last?.report(.pairing, "trusts \(other), who has confirmed nothing")
                }
            }
        }
    }
}
