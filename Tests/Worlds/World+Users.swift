import NighCore
import NighTestKit

// The actions of a world's users, and their responses.

extension World {
    // MARK: Own actions

    /// Lets the user of a run act now and then, and read its inbox if it has one.
    func scheduleUser(_ run: SessionRun) {
        scheduleActions(run)
        if case .inbox(let messages, let milliseconds) = run.owner.member.reading {
            scheduleReading(run, messages, .milliseconds(milliseconds))
        }
    }

    private func scheduleActions(_ run: SessionRun) {
        let pace = run.owner.member.pace
        schedule(after: generator.milliseconds(pace / 10...pace * 2)) { [self] in
            guard !isQuiet, run.session != nil else { return }
            act(run)
            scheduleActions(run)
        }
    }

    private func scheduleReading(_ run: SessionRun, _ messages: Int, _ pause: Duration) {
        schedule(after: isQuiet ? .milliseconds(100) : pause) { [self] in
            guard run.session != nil else { return }
            run.read(isQuiet ? .max : messages)
            scheduleReading(run, messages, pause)
        }
    }

    private func act(_ run: SessionRun) {
        let roll = generator.number(0...99)
        switch roll {
        case 0..<14: if let peer = peer(of: run, in: [.available]) { invite(peer, by: run) }
        case 14..<17: invite(generator.number(0...peers.count - 1), by: run)
        case 17..<22: inviteByAddress(run)
        case 22..<56: sendMessages(run, times: generator.number(1...6))
        case 56..<63: sendBurst(run)
        case 63..<66: sendUnreliable(run)
        case 66..<68: sendKinds(run)
        case 68..<73: for _ in 0...generator.number(0...4) { ping(run) }
        case 73..<77: sendWaiting(run)
        case 77..<79: sendFromAnotherThread(run)
        case 79..<81:
            if let peer = peer(of: run, in: [.connecting]) {
                run.withdrawnFrom.insert(peer)
                run.session?.cancelInvitation(of: id(peer))
            }
        case 81..<84:
            if let peer = peer(of: run, in: [.connected, .reconnecting, .connecting, .available]) {
                disconnect(peer, by: run)
            }
        case 84:
            if generator.chance(20) {
                run.withdrawnFrom.formUnion(peers.indices)
                run.session?.disconnectAll()
            }
        case 85..<88: updateInfo(run)
        case 88..<92 where plan.kind == .storm: toggle(run)
        case 92 where plan.kind == .storm && generator.chance(30): leave(run)
        case 93 where run.isClosing: callAfterClose(run)
        case 93..<98 where plan.security != .none: pair(run)
        default: break
        }
    }

    func peer(of run: SessionRun, in states: Set<PeerState>) -> Int? {
        generator.pick(peers.map(\.index).filter { states.contains(run.states.state(of: id($0))) })
    }

    private func leave(_ run: SessionRun) {
        run.close()
        guard generator.chance(70) else { return }
        schedule(after: generator.milliseconds(1...8_000)) { [self] in
            guard run.hasClosed, !isQuiet else { return }
            while run.readsLater, run.read(100) > 0 {}
            run.kill()
            begin(run.owner, elsewhere: generator.chance(50))
        }
    }

    private func updateInfo(_ run: SessionRun) {
        guard let info = try? DiscoveryInfo(["n": "\(generator.number(0...9_999))"]) else { return }
        run.info = info
        run.note(.call, 0, 0, "updates its info")
        run.session?.update(info: info)
    }

    private func toggle(_ run: SessionRun) {
        if generator.chance(50) {
            run.isAdvertising.toggle()
            run.note(.call, 0, 1, "advertises \(run.isAdvertising)")
            if run.isAdvertising { run.session?.startAdvertising() } else { run.session?.stopAdvertising() }
        } else {
            run.isBrowsing.toggle()
            run.note(.call, 0, 2, "browses \(run.isBrowsing)")
            if run.isBrowsing { run.session?.startBrowsing() } else { run.session?.stopBrowsing() }
        }
    }

    /// Checks that a closed session refuses to send.
    private func callAfterClose(_ run: SessionRun) {
        guard run.hasClosed, !run.wasKilled else { return }
        do throws(NighError) {
            try run.session?.trySend([1], to: id(0))
            run.report(.silence, "sends after it closed")
        } catch {}
    }

    // MARK: Inviting and leaving

    func invite(
        _ other: Int, by run: SessionRun, within timeout: Duration? = nil,
        _ then: (@Sendable (NighError?) -> Void)? = nil
    ) {
        guard let session = run.session else { return }
        counts.invitations += 1
        let timeout = timeout ?? generator.milliseconds(100...Self.longestTimeout)
        let limit = Duration.milliseconds(Self.longestTimeout + 50)
        let call = run.call("invite \(other)", within: limit)
        let context = context(from: run.index, to: other)
        session.invite(id(other), context: context, timeout: timeout) { [self] result in
            if case .failure = result { run.withdrawnFrom.insert(other) }
            invited(run, call, result, then)
        }
    }

    /// Returns the context of a member's invitations to another. An invitation by address has none.
    func context(from inviter: Int, to invited: Int) -> [UInt8] {
        [inviter, invited].map { UInt8(truncatingIfNeeded: $0) }
    }

    private func invited(
        _ run: SessionRun, _ call: Int, _ result: Result<PeerID, NighError>,
        _ then: (@Sendable (NighError?) -> Void)?
    ) {
        switch result {
        case .success(let peer):
            run.recordAnswer(to: call, "yes")
            let state = run.states.state(of: peer)
            if state != .connected, state != .reconnecting, !run.isClosing {
                run.report(.calls, "has a successful invitation, but the peer is \(state)")
            }
            then?(nil)
        case .failure(let error):
            run.recordAnswer(to: call, "no", error: error)
            then?(error)
        }
    }

    private func inviteByAddress(_ run: SessionRun) {
        guard let session = run.session else { return }
        let addresses = peers.compactMap { $0.runs.last?.address } + [network.hub().makeSilentAddress()]
        guard let address = generator.pick(addresses) else { return }
        counts.invitations += 1
        let timeout = generator.milliseconds(100...Self.longestTimeout)
        let limit = Duration.milliseconds(Self.longestTimeout + 50)
        let call = run.call("invite at \(address)", within: limit)
        let other = peers.first { $0.runs.contains { $0.address == address } }?.index
        session.invite(at: address, timeout: timeout) { [self] result in
            if case .failure = result, let other { run.withdrawnFrom.insert(other) }
            invited(run, call, result, nil)
        }
    }

    func disconnect(_ other: Int, by run: SessionRun) {
        guard let session = run.session else { return }
        // In a handler, the conversation may already be over, and the program about to be notified of that.
        let conversation = session.inspection(of: id(other))?.conversation
        let stream = run.streams[other].flatMap { $0.conversation == conversation ? $0 : nil }
        run.withdrawnFrom.insert(other)
        let call = run.call("disconnect \(other)", within: run.timings.linger + .milliseconds(100))
        session.disconnect(id(other)) { result in
            switch result {
            case .success:
                run.recordAnswer(to: call, "done")
                if let stream { run.confirm(stream) }
            case .failure(let error): run.recordAnswer(to: call, "not all arrived", error: error)
            }
        }
    }

    private func ping(_ run: SessionRun) {
        guard let other = peer(of: run, in: [.connected, .reconnecting]), let session = run.session else {
            return
        }
        let call = run.call("ping \(other)", within: plan.active + plan.settling)
        session.ping(id(other), payload: [UInt8](repeating: 7, count: generator.number(0...1_024))) {
            [self] result in
            switch result {
            case .success(let time):
                counts.pings += 1
                run.recordAnswer(to: call, "\(time)")
            case .failure(let error): run.recordAnswer(to: call, "no", error: error)
            }
        }
    }

    // MARK: Responses

    /// Responds to an invitation.
    func invited(_ run: SessionRun, _ invitation: Invitation) {
        let acceptPercent = isQuiet ? 100 : run.owner.member.acceptPercent
        if generator.chance(acceptPercent) { return accept(run, invitation) }
        switch generator.number(0...5) {
        case 0, 1:
            schedule(after: generator.milliseconds(1...5_000)) { [self] in accept(run, invitation) }
        case 2:
            schedule(after: generator.milliseconds(0...3_000)) {
                invitation.decline(because: "later perhaps", retryAfter: .seconds(3))
            }
        case 3:
            invitation.decline(because: "no")
        case 4:
            if let other = index(of: invitation.peer.id) { invite(other, by: run) }
        default: break
        }
    }

    private func accept(_ run: SessionRun, _ invitation: Invitation) {
        guard run.session != nil else { return }
        run.note(.call, index(of: invitation.peer.id) ?? -1, 3, "accepts")
        invitation.accept()
    }

    /// Responds to the changed state of a peer.
    func respondToState(_ run: SessionRun, of peer: Peer, from last: PeerState) {
        guard !isQuiet, !run.isClosing, let other = index(of: peer.id) else { return }
        switch peer.state {
        case .available:
            let invitePercent = last == .unavailable ? run.owner.member.invitePercent : 20
            guard generator.chance(invitePercent) else { return }
            if generator.chance(50) { return invite(other, by: run) }
            schedule(after: generator.milliseconds(0...500)) { [self] in
                if !isQuiet, run.states.state(of: peer.id) == .available { invite(other, by: run) }
            }
        case .connected:
            askInHandler(run, other)
            if generator.chance(50) {
                sendMessages(run, times: generator.number(1...4), to: other, isInHandler: true)
            }
            if generator.chance(2) { disconnect(other, by: run) }
        case .reconnecting:
            askInHandler(run, other)
            if generator.chance(30) { sendMessages(run, times: 2, to: other, isInHandler: true) }
        case .disconnected:
            if generator.chance(10) { invite(other, by: run) }
        case .unavailable, .connecting: break
        }
    }

    /// Responds to a message that a run has read at once.
    func respondToMessage(_ run: SessionRun, from other: Int) {
        guard !isQuiet, !run.isClosing, finding == nil else { return }
        switch generator.number(0...999) {
        case 0: disconnect(other, by: run)
        case 1: if plan.kind == .storm, generator.chance(10) { leave(run) }
        case 2..<40: sendMessages(run, times: 1, to: other, isInHandler: true)
        default: break
        }
    }
}
