import NighCore

// What the users of a world do, and how they respond.

extension World {
    // MARK: Own actions

    /// Lets the user of a life act now and then, and read its inbox if it has one.
    func scheduleUser(_ life: Life) {
        userActs(life)
        if case .inbox(let messages, let milliseconds) = life.owner.member.reading {
            reads(life, messages, .milliseconds(milliseconds))
        }
    }

    private func userActs(_ life: Life) {
        let pace = life.owner.member.pace
        later(generator.milliseconds(pace / 10...pace * 2)) { [self] in
            guard !isQuiet, life.session != nil else { return }
            act(life)
            userActs(life)
        }
    }

    private func reads(_ life: Life, _ messages: Int, _ pause: Duration) {
        later(isQuiet ? .milliseconds(100) : pause) { [self] in
            guard life.session != nil else { return }
            life.read(isQuiet ? .max : messages)
            reads(life, messages, pause)
        }
    }

    private func act(_ life: Life) {
        let roll = generator.number(0...99)
        switch roll {
        case 0..<14: if let peer = peer(of: life, in: [.available]) { invite(peer, by: life) }
        case 14..<17: invite(generator.number(0...inhabitants.count - 1), by: life)
        case 17..<22: inviteByAddress(life)
        case 22..<56: talk(life, times: generator.number(1...6))
        case 56..<63: burst(life)
        case 63..<68: murmur(life)
        case 68..<73: for _ in 0...generator.number(0...4) { ping(life) }
        case 73..<77: sendWaiting(life)
        case 77..<79: sendFromAnotherThread(life)
        case 79..<81:
            if let peer = peer(of: life, in: [.connecting]) {
                life.withdrawn.insert(peer)
                life.session?.cancelInvitation(of: id(peer))
            }
        case 81..<84:
            if let peer = peer(of: life, in: [.connected, .reconnecting, .connecting, .available]) {
                disconnect(peer, by: life)
            }
        case 84:
            if generator.chance(20) {
                life.withdrawn.formUnion(inhabitants.indices)
                life.session?.disconnectAll()
            }
        case 85..<88: updateInfo(life)
        case 88..<92 where plan.kind == .storm: toggle(life)
        case 92 where plan.kind == .storm && generator.chance(30): leave(life)
        case 93 where life.isClosing: callAfterClose(life)
        case 93..<98 where plan.security != .none: pair(life)
        default: break
        }
    }

    func peer(of life: Life, in states: Set<PeerState>) -> Int? {
        generator.pick(inhabitants.map(\.index).filter { states.contains(life.states.state(of: id($0))) })
    }

    private func leave(_ life: Life) {
        life.close()
        guard generator.chance(70) else { return }
        later(generator.milliseconds(1...8_000)) { [self] in
            guard life.hasClosed, !isQuiet else { return }
            while life.readsLater, life.read(100) > 0 {}
            life.kill()
            begin(life.owner, elsewhere: generator.chance(50))
        }
    }

    private func updateInfo(_ life: Life) {
        guard let info = try? DiscoveryInfo(["n": "\(generator.number(0...9_999))"]) else { return }
        life.info = info
        life.note(.call, 0, 0, "updates its info")
        life.session?.update(info: info)
    }

    private func toggle(_ life: Life) {
        if generator.chance(50) {
            life.isAdvertising.toggle()
            life.note(.call, 0, 1, "advertises \(life.isAdvertising)")
            life.session?.setAdvertising(life.isAdvertising)
        } else {
            life.isBrowsing.toggle()
            life.note(.call, 0, 2, "browses \(life.isBrowsing)")
            life.session?.setBrowsing(life.isBrowsing)
        }
    }

    /// Checks that a closed session refuses to send.
    private func callAfterClose(_ life: Life) {
        guard life.hasClosed, !life.wasKilled else { return }
        do throws(NighError) {
            try life.session?.trySend([1], to: id(0))
            life.found(.silence, "sends after it closed")
        } catch {}
    }

    // MARK: Inviting and leaving

    func invite(
        _ other: Int, by life: Life, within timeout: Duration? = nil,
        _ then: (@Sendable (NighError?) -> Void)? = nil
    ) {
        guard let session = life.session else { return }
        counts.invitations += 1
        let timeout = timeout ?? generator.milliseconds(100...Self.longestTimeout)
        let limit = Duration.milliseconds(Self.longestTimeout + 50)
        let call = life.call("invite \(other)", within: limit)
        session.invite(id(other), context: [1, 2, 3], timeout: timeout) { [self] result in
            if case .failure = result { life.withdrawn.insert(other) }
            invited(life, call, result, then)
        }
    }

    private func invited(
        _ life: Life, _ call: Int, _ result: Result<PeerID, NighError>,
        _ then: (@Sendable (NighError?) -> Void)?
    ) {
        switch result {
        case .success(let peer):
            life.answered(call, "yes")
            let state = life.states.state(of: peer)
            if state != .connected, state != .reconnecting, !life.isClosing {
                life.found(.calls, "is told that its invitation succeeded, and the peer is \(state)")
            }
            then?(nil)
        case .failure(let error):
            life.answered(call, "no", error: error)
            then?(error)
        }
    }

    private func inviteByAddress(_ life: Life) {
        guard let session = life.session else { return }
        let addresses = inhabitants.compactMap { $0.lives.last?.address } + [hub.makeSilentAddress()]
        guard let address = generator.pick(addresses) else { return }
        counts.invitations += 1
        let timeout = generator.milliseconds(100...Self.longestTimeout)
        let limit = Duration.milliseconds(Self.longestTimeout + 50)
        let call = life.call("invite at \(address)", within: limit)
        let other = inhabitants.first { $0.lives.contains { $0.address == address } }?.index
        session.invite(at: address, timeout: timeout) { [self] result in
            if case .failure = result, let other { life.withdrawn.insert(other) }
            invited(life, call, result, nil)
        }
    }

    func disconnect(_ other: Int, by life: Life) {
        guard let session = life.session else { return }
        // In a handler, the conversation may already be over, and the program about to be notified of that.
        let conversation = session.inspection(of: id(other))?.conversation
        let line = life.lines[other].flatMap { $0.conversation == conversation ? $0 : nil }
        life.withdrawn.insert(other)
        let call = life.call("disconnect \(other)", within: life.timings.linger + .milliseconds(100))
        session.disconnect(id(other)) { result in
            switch result {
            case .success:
                life.answered(call, "done")
                if let line { life.promise(line) }
            case .failure(let error): life.answered(call, "not all arrived", error: error)
            }
        }
    }

    private func ping(_ life: Life) {
        guard let other = peer(of: life, in: [.connected, .reconnecting]), let session = life.session else {
            return
        }
        let call = life.call("ping \(other)", within: plan.active + plan.settling)
        session.ping(id(other), payload: [UInt8](repeating: 7, count: generator.number(0...1_024))) {
            [self] result in
            switch result {
            case .success(let time):
                counts.pings += 1
                life.answered(call, "\(time)")
            case .failure(let error): life.answered(call, "no", error: error)
            }
        }
    }

    // MARK: Responses

    /// Responds to an invitation.
    func invited(_ life: Life, _ invitation: Invitation) {
        let kindness = isQuiet ? 100 : life.owner.member.kindness
        if generator.chance(kindness) { return accept(life, invitation) }
        switch generator.number(0...5) {
        case 0, 1:
            later(generator.milliseconds(1...5_000)) { [self] in accept(life, invitation) }
        case 2:
            later(generator.milliseconds(0...3_000)) {
                life.session?.decline(invitation, words: "later perhaps", retryAfter: .seconds(3))
            }
        case 3:
            life.session?.decline(invitation, words: "no")
        case 4:
            if let other = index(of: invitation.peer.id) { invite(other, by: life) }
        default: break
        }
    }

    private func accept(_ life: Life, _ invitation: Invitation) {
        guard let session = life.session else { return }
        life.note(.call, index(of: invitation.peer.id) ?? -1, 3, "accepts")
        session.accept(invitation)
    }

    /// Responds to the changed state of a peer.
    func reacts(_ life: Life, to peer: Peer, from last: PeerState) {
        guard !isQuiet, !life.isClosing, let other = index(of: peer.id) else { return }
        switch peer.state {
        case .available:
            let eagerness = last == .unavailable ? life.owner.member.eagerness : 20
            guard generator.chance(eagerness) else { return }
            if generator.chance(50) { return invite(other, by: life) }
            later(generator.milliseconds(0...500)) { [self] in
                if !isQuiet, life.states.state(of: peer.id) == .available { invite(other, by: life) }
            }
        case .connected:
            if generator.chance(50) {
                talk(life, times: generator.number(1...4), to: other, isInHandler: true)
            }
            if generator.chance(2) { disconnect(other, by: life) }
        case .reconnecting:
            if generator.chance(30) { talk(life, times: 2, to: other, isInHandler: true) }
        case .disconnected:
            if generator.chance(10) { invite(other, by: life) }
        case .unavailable, .connecting: break
        }
    }

    /// Responds to a message that a life has read at once.
    func heard(_ life: Life, from other: Int, _ peer: PeerID) {
        guard !isQuiet, !life.isClosing, finding == nil else { return }
        switch generator.number(0...999) {
        case 0: disconnect(other, by: life)
        case 1: if plan.kind == .storm, generator.chance(10) { leave(life) }
        case 2..<40: talk(life, times: 1, to: other, isInHandler: true)
        default: break
        }
    }
}
