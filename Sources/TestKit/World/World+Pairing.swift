import NighCore

// What users do about pairing, and the rule that is checked: two peers are paired only after both users have confirmed
// the same digits.

extension World {
    /// How long two users may compare digits.
    static let pairingTime = Duration.seconds(6)

    /// Lets the user of a life ask some peer to pair.
    func pair(_ life: Life) {
        guard let other = peer(of: life, in: [.available, .connecting, .connected, .reconnecting]) else {
            return
        }
        let call = life.call("pair \(other)", within: Self.pairingTime + .milliseconds(50))
        life.session?.pair(inhabitants[other].identity.peerID) { result in
            switch result {
            case .success: life.answered(call, "paired")
            case .failure(let error): life.answered(call, "not paired", error: error)
            }
        }
    }

    /// Shows digits to a user, who mostly confirms them after a while, sometimes denies them, sometimes does nothing.
    /// The log does not have the digits, because no seed decides them.
    func digitsShown(_ code: PairingCode, with peer: Peer, to life: Life) {
        guard let other = index(of: peer.id) else {
            return life.found(.ghosts, "is paired with \(peer.id.short)")
        }
        life.note(.event, other, 7, "sees digits with \(other)")
        if let shown = life.shownDigits {
            life.found(.pairing, "sees digits with \(other) beside those with \(shown.other)")
        }
        life.shownDigits = (other, code)
        let roll = generator.number(0...99)
        later(generator.milliseconds(10...3_000)) { [self] in
            guard let shown = life.shownDigits, shown == (other, code), roll < 90 else { return }
            if roll < 75 { confirmedDigits[[life.index, other], default: []].insert(code) }
            life.note(
                .call, other, roll < 75 ? 1 : 0,
                "says \(roll < 75 ? "yes" : "no") to the digits with \(other)")
            life.session?.confirmPairing(with: peer.id, digitsAgree: roll < 75)
        }
    }

    func paired(_ life: Life, with peer: Peer) {
        guard let other = index(of: peer.id) else {
            return life.found(.ghosts, "is paired with \(peer.id.short)")
        }
        life.note(.event, other, 8, "is paired with \(other)")
        guard let shown = life.shownDigits, shown.other == other else {
            return life.found(.pairing, "is paired with \(other) without having seen digits")
        }
        life.shownDigits = nil
        for pair in [[life.index, other], [other, life.index]]
        where confirmedDigits[pair]?.contains(shown.code) != true {
            life.found(.pairing, "is paired with \(other), and \(pair[0]) has not confirmed the same digits")
        }
        if !life.owner.trust.isPaired(peer.id) { life.found(.pairing, "does not know that it is paired") }
        counts.pairings += 1
    }

    func pairingEnded(_ life: Life, with peer: Peer, _ error: NighError) {
        life.note(.event, index(of: peer.id) ?? -1, 9, "pairing ended: \(error)")
        if life.shownDigits?.other == index(of: peer.id) { life.shownDigits = nil }
    }

    /// Checks at rest that nobody sees digits any more, and that both users have confirmed the same digits wherever one
    /// trusts the other as paired.
    func judgePairing() {
        for inhabitant in inhabitants {
            if let life = inhabitant.life, let shown = life.shownDigits {
                life.found(.progress, "still sees digits with \(shown.other)")
            }
            for known in inhabitant.trust.peers where known.isPaired {
                let other = index(of: known.id) ?? -1
                let own = confirmedDigits[[inhabitant.index, other]] ?? []
                if own.isDisjoint(with: confirmedDigits[[other, inhabitant.index]] ?? []) {
                    inhabitant.lives.last?.found(.pairing, "trusts \(other), who has confirmed nothing")
                }
            }
        }
    }
}
