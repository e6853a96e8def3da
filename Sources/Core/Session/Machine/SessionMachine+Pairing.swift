// Which peers this session trusts, and how two peers become paired: over the link that carries their conversation, or
// over a separate one if there is none. PairingExchange decides what is said.
//
// A person looks at one screen, so there is one pairing at a time that a person has to do with: one that this side has
// asked for, or one that shows its digits. Before there are digits, any number of peers may ask, so that one which asks
// and then says nothing keeps nobody else out. They get this side's nonce one after another.

/// A pairing with a peer that is under way. Only this file changes it.
struct Pairing {
    /// When the pairing is given up.
    fileprivate let deadline: Moment
    /// The program's call, if this side asked.
    fileprivate var token: CallToken?
    /// The search for a link, if there was none.
    fileprivate(set) var race: DialRace?
    /// The link that carries the pairing, and how far it is; nil until there is a link.
    fileprivate(set) var link: Link?
    fileprivate var exchange: PairingExchange?
    /// The position in the queue for this side's nonce; nil if the peer does not wait for it.
    fileprivate var turn: UInt64?
    /// When the peer must have revealed its nonce, once it has this side's.
    fileprivate var revealDeadline = Moment.never
    /// Whether the program was given the digits.
    fileprivate var showsCode = false

    /// Whether a person of this side has to do with the pairing. Until then, the program does not know of it.
    var isKnownToPerson: Bool { token != nil || showsCode }
}

extension SessionMachine {
    // MARK: Trust

    /// Returns whether this session is paired with an identity. It counts as paired with its own.
    private func isPaired(withIdentity identity: PeerID) -> Bool {
        identity == self.identity || trust.isPaired(identity)
    }

    /// Returns whether this session is paired with the identity that the peer acts for.
    func isPaired(with id: PeerID) -> Bool {
        security != .none && isPaired(withIdentity: peers[id]?.identity.current ?? id)
    }

    /// Returns whether this session may have conversations with `id`.
    func mayConverse(with id: PeerID) -> Bool { security != .paired || isPaired(with: id) }

    /// Returns the trust in the identity of a peer; nil in a session without encryption.
    func trust(in peer: PeerRecord) -> PeerTrust? {
        if peer.isGuest { return .guest }
        guard security != .none else { return nil }
        let identity = peer.identity.current
        if identity == self.identity { return .paired }
        let trust = trust.trust(in: identity, called: peer.name)
        guard let refuted = peer.identity.refuted, self.trust.knows(refuted) || refuted == self.identity
        else {
            return trust
        }
        switch trust {
        case .paired, .known: return trust
        case .new, .newWithKnownName, .falselyAnnounced, .guest: return .falselyAnnounced(as: refuted)
        }
    }

    /// The error of all calls for a peer that was announced as somebody else. The program, or a person, may take the
    /// peer for that one.
    func falseAnnouncement(of peer: PeerRecord) -> NighError.Cause? {
        guard case .falselyAnnounced(let identity)? = trust(in: peer) else { return nil }
        return .insecure(.falselyAnnounced(as: identity))
    }

    /// Returns whether a link to `id`, whose proven identity is `identity`, may stay. A peer that is not paired may
    /// have a link for pairing, if pairing is wanted.
    func mayKeepLink(to id: PeerID, _ identity: PeerID?, for purpose: DialPurpose?) -> Bool {
        if security != .paired || isPaired(withIdentity: identity ?? id) { return true }
        return switch purpose {
        case .pairing: true
        // A dial of a known address only finds out which peer is there.
        case .knownAddress: true
        case nil: acceptsPairing || peers[id]?.pairing != nil
        case .peer, .address: false
        }
    }

    /// Remembers the peer's identity from now on, because a conversation begins.
    mutating func remember(_ peer: PeerRecord) {
        guard peer.identity.current != identity, !peer.isGuest else { return }
        trust.remember(peer.identity.current, name: peer.name)
        if trust.needsSaving { output(.saveTrust) }
    }

    /// Removes the pairing with the identity of a peer for the program.
    mutating func unpair(_ id: PeerID, now: Moment) {
        trust.unpair(peers[id]?.identity.current ?? id)
        if trust.needsSaving { output(.saveTrust) }
        trustChanged(now: now)
    }

    /// Handles a change of the trust store: by this program, by another session or program of the user, or by hand in
    /// the file. Ends conversations that are not allowed any more, and reports peers whose trust has changed.
    mutating func trustChanged(now: Moment) {
        guard security != .none else { return }
        for peer in sortedPeers {
            if !mayConverse(with: peer.id) {
                fail(attemptOf: peer, with: .notPaired, now: now)
                endInvitation(of: peer, cause: .notPaired, code: .notPaired)
                endConversation(of: peer, cause: .notPaired, now: now)
            }
            if peers[peer.id] === peer { reportTrust(in: peer) }
        }
    }

    /// Reports a peer whose trust was reported before and has changed since. One that is lost is reported when it is
    /// found.
    mutating func reportTrust(in peer: PeerRecord) {
        guard peer.state != .unavailable, let reported = peer.reportedTrust,
            reported != trust(in: peer)
        else { return }
        reportChange(of: peer)
    }

    // MARK: The program's calls

    /// Starts a pairing for the program. The outcome is reported under `token`.
    mutating func pair(_ id: PeerID, token: CallToken, now: Moment) {
        func refuse(_ cause: NighError.Cause, _ advice: String? = nil) {
            let error = NighError(.pairing, cause, peer: peers[id]?.label ?? id.short, advice: advice)
            output(.finish(token, .failure(error)))
        }
        guard security != .none else { return refuse(.unavailable("this session has no encryption")) }
        guard let peer = peers[id] else { return refuse(.unknownPeer) }
        guard !isClosing else { return refuse(.closed) }
        guard !peer.isGuest else { return refuse(.unavailable("a guest has no key, so it cannot be paired")) }
        guard peer.identity.current != identity else { return refuse(Self.pairingWithItself) }
        if let lie = falseAnnouncement(of: peer) { return refuse(lie) }
        guard !isPersonPairing, peer.pairing == nil else {
            return refuse(.pairingRefused(.busy), "end the other pairing first")
        }
        refuseOtherPairings(than: peer)
        let deadline = now + Moment.Span(timings.pairing)
        peer.pairing = Pairing(deadline: deadline, token: token)
        watch(peer)
        if let link = peer.link { return beginPairing(with: peer, on: link, now: now) }
        let race = race(for: .pairing(id), along: preferredRoutes(of: peer), until: deadline)
        peer.pairing?.race = race
        run(race, now: now)
    }

    /// Whether a person has to do with a pairing now.
    private var isPersonPairing: Bool { peers.values.contains { $0.pairing?.isKnownToPerson == true } }

    /// Refuses the peers that have asked, now that a person has to do with the pairing with `peer`.
    private mutating func refuseOtherPairings(than peer: PeerRecord) {
        for other in sortedPeers where other !== peer {
            endPairing(with: other, .pairingRefused(.busy), saying: .busy)
        }
    }

    /// Cancels the pairing that the program has asked for with this call. Returns whether there is one.
    mutating func cancelPairing(_ token: CallToken) -> Bool {
        guard let peer = peers.values.first(where: { $0.pairing?.token == token }) else { return false }
        endPairing(with: peer, .cancelled, saying: .declined)
        return true
    }

    /// Takes the answer of the person who has looked at the digits.
    mutating func confirmPairing(with id: PeerID, digitsAgree: Bool, now: Moment) {
        guard let peer = peers[id], peer.pairing != nil else { return }
        guard digitsAgree else {
            let reason: PairingRefusal = peer.pairing?.showsCode == true ? .digitsDiffer : .declined
            return endPairing(with: peer, .pairingRefused(reason), saying: reason)
        }
        guard let step = peer.pairing?.exchange?.confirm() else { return }
        carryOut(step, with: peer, now: now)
    }

    /// Starts the pairing exchange on a link.
    mutating func beginPairing(with peer: PeerRecord, on link: Link, now: Moment) {
        if let obstacle = pairingObstacle(with: peer, on: link) {
            return endPairing(with: peer, obstacle, saying: nil)
        }
        guard var exchange = exchange(.asking, with: peer, on: link) else {
            return endPairing(with: peer, .unavailable("the link has no encryption"), saying: nil)
        }
        if link.purpose == .unsettled { link.purpose = .pairing }
        if let message = exchange.begin() { link.machine.send(message) }
        peer.pairing?.link = link
        peer.pairing?.exchange = exchange
        peer.pairing?.turn = nil
        peer.pairing?.revealDeadline = .never
        markDirty(link)
    }

    private static let pairingWithItself = NighError.Cause.unavailable(
        "the other side is a program of yours, which needs no pairing")

    /// Why this session cannot pair with the peer on the link, or nil if it can. A version that knows no delegations
    /// would pair with the key of this session, which nobody has any more when the session has ended.
    private func pairingObstacle(with peer: PeerRecord, on link: Link) -> NighError.Cause? {
        if peer.identity.current == identity { return Self.pairingWithItself }
        guard hello.delegation != nil, link.machine.peerHello?.acceptsDelegations == false else { return nil }
        return .unavailable(
            "the version of Nigh there pairs only with the program that was first to use your identity here; "
                + "`nigh identity` names it: pair there, or end it and try again")
    }

    private func exchange(
        _ role: PairingExchange.Role, with peer: PeerRecord, on link: Link
    ) -> PairingExchange? {
        guard let material = link.machine.pairingMaterial else { return nil }
        return PairingExchange(role: role, own: hello.peer, other: peer.id, keyingMaterial: material)
    }

    // MARK: Messages of the other side

    mutating func pairingReceived(_ message: PairingMessage, on link: Link, now: Moment) {
        guard let peer = link.peer, link.purpose != .requesting, link.purpose != .invited else {
            return violated(link, "a pairing message at the wrong time", now: now)
        }
        if peer.pairing == nil || peer.pairing?.link !== link {
            if case .unknown = message {
                // The message may begin something, and its sender should not wait for an answer.
                link.machine.send(.refused(.notNow))
                return markDirty(link)
            }
            // A message that was on its way when this side ended the pairing does not matter any more.
            guard case .commitment = message else { return }
            guard acceptPairing(askedBy: peer, on: link, now: now) else { return }
        }
        do throws(PairingExchange.Violation) {
            guard let step = try peer.pairing?.exchange?.receive(message) else { return }
            carryOut(step, with: peer, now: now)
        } catch {
            guard case .outOfOrder = error else { return violated(link, error.message, now: now) }
            // The message may belong to an exchange that this side has ended and started again since.
            endPairing(with: peer, error.asCause, saying: .declined)
        }
    }

    /// Takes part in a pairing for which the peer asks, or refuses. Returns whether it takes part.
    private mutating func acceptPairing(askedBy peer: PeerRecord, on link: Link, now: Moment) -> Bool {
        guard !peer.isGuest else {
            violated(link, "a request for pairing by a guest", now: now)
            return false
        }
        if peer.pairing?.showsCode == true {
            // The other side starts again over another link, so the digits on the screen are not valid any more.
            endPairing(with: peer, .superseded, saying: nil)
        }
        if let own = peer.pairing {
            // If both sides have asked at once, each over a link of its own, the link of the side with the greater
            // PeerID stays. If this side has not asked, the other side has lost the link of its earlier request.
            if own.token != nil, own.link != nil, hello.peer > peer.id {
                if link.purpose != .carrying { close(link, .superseded) }
                return false
            }
            abandonPairingLink(of: peer)
        } else if isPersonPairing || !acceptsPairing || isClosing {
            link.machine.send(.refused(isPersonPairing ? .busy : .notNow))
            markDirty(link)
            return false
        }
        if let obstacle = pairingObstacle(with: peer, on: link) {
            link.machine.send(.refused(.notNow))
            markDirty(link)
            // The person may wait for this peer, and would not learn why nothing comes. Strangers ask as often as they
            // like, so this is said rarely.
            if nextPairingAnswer <= now {
                nextPairingAnswer = now + Self.pairingPause
                let error = NighError(.pairing, obstacle, peer: peer.label)
                report(.pairingFailed(snapshot(of: peer), error))
            }
            return false
        }
        guard let exchange = exchange(.asked, with: peer, on: link) else {
            violated(link, "a request for pairing on a link without encryption", now: now)
            return false
        }
        if link.purpose == .unsettled { link.purpose = .pairing }
        // A request of the other side that replaces its earlier one has the whole time again.
        if peer.pairing?.token == nil { peer.pairing = Pairing(deadline: now + Moment.Span(timings.pairing)) }
        peer.pairing?.link = link
        peer.pairing?.exchange = exchange
        watch(peer)
        return true
    }

    /// The pause between two nonces that this side gives to peers that ask. A peer in the middle can ask both sides,
    /// and give up those exchanges whose digits differ before anybody sees them: the pause bounds how often it may try
    /// while the other side's digits stand.
    static let pairingPause = Moment.Span.seconds(5)

    /// Gives this side's nonce to the peer that has waited longest, if the pause is over.
    mutating func answerNextPairing(now: Moment) {
        guard nextPairingAnswer <= now,
            let peer = peers.values.filter({ $0.pairing?.turn != nil })
                .min(by: { $0.pairing?.turn ?? 0 < $1.pairing?.turn ?? 0 }),
            let link = peer.pairing?.link, let message = peer.pairing?.exchange?.answer()
        else { return }
        nextPairingAnswer = now + Self.pairingPause
        peer.pairing?.turn = nil
        peer.pairing?.revealDeadline = now + Moment.Span(timings.handshake)
        watch(peer)
        link.machine.send(message)
        markDirty(link)
    }

    /// When something of a pairing is due.
    func deadline(of pairing: Pairing) -> Moment {
        min(pairing.deadline, pairing.revealDeadline, pairing.turn == nil ? .never : nextPairingAnswer)
    }

    /// Answers the peer if it is its turn, or ends its pairing if its time is over.
    mutating func timeArrived(forPairingWith peer: PeerRecord, now: Moment) {
        answerNextPairing(now: now)
        guard let pairing = peer.pairing, min(pairing.deadline, pairing.revealDeadline) <= now else { return }
        endPairing(with: peer, .timedOut, saying: .timedOut)
    }

    private mutating func carryOut(_ step: PairingExchange.Step, with peer: PeerRecord, now: Moment) {
        guard let link = peer.pairing?.link else { return }
        func send(_ message: PairingMessage?) {
            guard let message else { return }
            link.machine.send(message)
            markDirty(link)
        }
        switch step {
        case .nothing, .otherConfirmed: break
        case .send(let message): send(message)
        case .awaitAnswer:
            peer.pairing?.turn = nextNumber()
            answerNextPairing(now: now)
            watch(peer)
        case .showCode(let code, let message):
            send(message)
            peer.pairing?.showsCode = true
            peer.pairing?.revealDeadline = .never
            // A person sees this attempt, so it is not one of those that must be kept rare.
            nextPairingAnswer = now
            refuseOtherPairings(than: peer)
            report(.pairingCode(snapshot(of: peer), code))
        case .bothConfirmed(let message):
            send(message)
            paired(with: peer)
        case .refused(let reason): endPairing(with: peer, .pairingRefused(reason), saying: nil)
        }
    }

    private mutating func paired(with peer: PeerRecord) {
        guard let pairing = peer.pairing.take() else { return }
        trust.pair(peer.identity.current, name: peer.name)
        if trust.needsSaving { output(.saveTrust) }
        reportTrust(in: peer)
        report(.paired(snapshot(of: peer)))
        if let token = pairing.token { output(.finish(token, .success(peer.id))) }
        if let link = pairing.link, link.purpose == .pairing { close(link, .left) }
        if peer.isIdle { peers[peer.id] = nil }
    }

    // MARK: Ending

    /// Ends a pairing without success, and sends `reason` to the other side; nil if the other side knows already. The
    /// program hears only of a pairing that it knows: strangers may ask and give up as often as they like.
    mutating func endPairing(with peer: PeerRecord, _ cause: NighError.Cause, saying reason: PairingRefusal?)
    {
        guard var pairing = peer.pairing.take() else { return }
        if let reason, let link = pairing.link, let message = pairing.exchange?.refuse(reason) {
            link.machine.send(message)
            markDirty(link)
        }
        if let race = pairing.race { stop(race) }
        if let link = pairing.link, link.purpose == .pairing { close(link, .cancelled) }
        statistics.refusals[cause.label, default: 0] += 1
        let error = NighError(.pairing, cause, peer: peer.label, attempts: pairing.race?.failures ?? [])
        if pairing.isKnownToPerson { report(.pairingFailed(snapshot(of: peer), error)) }
        if let token = pairing.token { output(.finish(token, .failure(error))) }
        if peer.isIdle { peers[peer.id] = nil }
    }

    /// Drops the link and the race of this side's own request, because the other side asks as well, over another link.
    private mutating func abandonPairingLink(of peer: PeerRecord) {
        guard let pairing = peer.pairing else { return }
        peer.pairing = Pairing(deadline: pairing.deadline, token: pairing.token, showsCode: pairing.showsCode)
        if let race = pairing.race { stop(race) }
        if let link = pairing.link, link.purpose == .pairing { close(link, .superseded) }
    }

    /// Continues a pairing after the conversation changed its link. The new link has other keys, so the exchange on the
    /// old one counts for nothing. The side that asked asks again, and no person has seen anything of it. If digits are
    /// shown already, the pairing is not withdrawn silently: it ends with an event.
    mutating func movePairing(with peer: PeerRecord, from old: Link, to link: Link, now: Moment) {
        guard let pairing = peer.pairing, pairing.link === old else { return }
        if pairing.showsCode {
            endPairing(with: peer, .superseded, saying: nil)
        } else if pairing.token != nil {
            beginPairing(with: peer, on: link, now: now)
        } else {
            peer.pairing = nil
        }
    }

    /// Handles the end of a link on which there may have been a pairing.
    ///
    /// - Parameter wasCarrying: whether it was the link of a conversation, and not one for the pairing.
    mutating func pairingLinkEnded(_ link: Link, _ end: LinkMachine.LinkEnd, wasCarrying: Bool) {
        guard let peer = link.peer, peer.pairing?.link === link else { return }
        // The other side's own request is on its way over another link.
        if !wasCarrying, end.isByPeer, end.code == .superseded, peer.pairing?.token != nil {
            return abandonPairingLink(of: peer)
        }
        endPairing(with: peer, end.cause, saying: nil)
    }
}
