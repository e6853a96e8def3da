import NighCore

// Messages of peers, handled in the order in which they were sent.
extension Engine {
    func received(_ message: WireMessage, from id: PeerID) {
        switch message {
        case .invite(let number, let from, let seconds, let context):
            invited(InvitationKey(peer: id, number: number), from: from, seconds: seconds, context)
        case .decline(let number): fail(number, because: .notConnected)
        case .accept(let number, let sessions):
            guard let attempt = attempts[number], attempt.peer == id, attempt.sessionNumber == sessions.to
            else {
                return withdraw(number, sessions, id)
            }
            end(attempt)
            if !attempt.session.connect(to: id, session: sessions.from, in: self) {
                attempt.session.failed(attempt, in: self)
            }
            forget(attempt.session)
        case .withdraw(let number, let sessions):
            SessionDirectory.session(sessions.to)?.peerLeft(id, sessions.from, invitation: number)
        case .join(let sessions):
            joins(ParkedJoin(peer: id, sessions: sessions, deadline: Date() + Self.joinTime))
        case .hello(let sessions, let certificates):
            SessionDirectory.session(sessions.to)?.received(
                certificates: certificates, from: id, sessions.from)
        case .ready(let sessions): SessionDirectory.session(sessions.to)?.peerIsReady(id, sessions.from)
        case .leave(let sessions):
            SessionDirectory.session(sessions.to)?.peerLeft(id, sessions.from)
            // A session that was asked and does not want the peer.
            for attempt in attempts.values {
                if case .join(let session) = attempt.kind, attempt.peer == id, session == sessions.from,
                    attempt.sessionNumber == sessions.to
                {
                    fail(attempt.number, because: .notConnected)
                }
            }
        case .members(let sessions, let members):
            SessionDirectory.session(sessions.to)?.received(members, from: id, sessions.from, in: self)
        case .addresses(let addresses): peer(id).listening = Array(addresses.prefix(Self.addressLimit))
        case .idle: endIfIdle(id)
        }
    }

    /// The most addresses of a peer that are kept.
    private static let addressLimit = 32

    /// Whether a message for these sessions means two that are connected, or about to be.
    private func areLinked(_ sessions: WireMessage.Sessions, _ id: PeerID) -> Bool {
        SessionDirectory.session(sessions.to)?.link(to: id, session: sessions.from) != nil
    }

    /// Says to a session that wants to join that nobody here wants it.
    private func leave(_ sessions: WireMessage.Sessions, _ id: PeerID) {
        guard !areLinked(sessions, id) else { return }
        send(.leave(WireMessage.Sessions(to: sessions.from, from: sessions.to)), to: id)
    }

    /// Says to a session that its acceptance came too late. If both sides have invited, one acceptance is enough.
    private func withdraw(_ number: UInt64, _ sessions: WireMessage.Sessions, _ id: PeerID) {
        guard !areLinked(sessions, id) else { return }
        send(.withdraw(number: number, WireMessage.Sessions(to: sessions.from, from: sessions.to)), to: id)
    }

    // MARK: Invitations

    /// The most invitations of one peer that wait for an answer.
    private static let waitingInvitationLimit = 64
    /// The most invitations of one peer that are remembered, to answer them in the same way if they come again.
    private static let invitationLimit = 16_384
    /// The longest time that an invitation may have. Programs ask for infinity.
    static let longestInvitation: TimeInterval = 3_600

    private func invited(
        _ key: InvitationKey, from session: UInt64, seconds: UInt32, _ context: [UInt8]?
    ) {
        if let known = invitations[key] {
            // Asked again in another conversation.
            return answer(key, known)
        }
        let peer = peer(key.peer)
        guard let advertiser = advertisers.last, peer.waitingInvitationCount < Self.waitingInvitationLimit,
            peer.invitationCount < Self.invitationLimit
        else {
            return send(.decline(number: key.number), to: key.peer)
        }
        invitations[key] = IncomingInvitation(from: session)
        peer.invitationCount += 1
        peer.waitingInvitationCount += 1
        Control.after(min(TimeInterval(seconds), Self.longestInvitation)) { [weak self] in
            self?.forgetInvitation(key)
        }
        advertiser.invited(
            by: peer.peerID, context: context.map { Data($0) }, InvitationAnswer(key, in: self))
    }

    private func forgetInvitation(_ key: InvitationKey) {
        guard let invitation = invitations.removeValue(forKey: key) else { return }
        let peer = peer(key.peer)
        peer.invitationCount -= 1
        if invitation.answer == nil { peer.waitingInvitationCount -= 1 }
        considerIdle(key.peer)
        considerClosing()
    }

    /// The program has answered, or never will. Only the first answer counts.
    func answered(_ key: InvitationKey, with session: SessionCore?) {
        guard let invitation = invitations[key], invitation.answer == nil else { return }
        peer(key.peer).waitingInvitationCount -= 1
        if let session, session.mayConnect(to: key.peer, session: invitation.session) {
            invitation.answer = .accepted(session, number: session.number)
        } else {
            invitation.answer = .declined
        }
        answer(key, invitation)
        considerIdle(key.peer)
        considerClosing()
    }

    private func answer(_ key: InvitationKey, _ invitation: IncomingInvitation) {
        switch invitation.answer {
        case nil: break
        case .declined: send(.decline(number: key.number), to: key.peer)
        case .accepted(let session, let number):
            guard session.number == number, peers[key.peer]?.conversation != nil else { return }
            send(
                .accept(number: key.number, WireMessage.Sessions(to: invitation.session, from: number)),
                to: key.peer)
            session.connect(to: key.peer, session: invitation.session, in: self, invitation: key.number)
        }
    }

    // MARK: Joining

    /// The most requests of one peer to join that wait.
    private static let parkedJoinLimit = 64

    private func joins(_ join: ParkedJoin) {
        guard let session = SessionDirectory.session(join.sessions.to) else {
            return leave(join.sessions, join.peer)
        }
        guard session.expects(join.peer, session: join.sessions.from, in: self) else {
            let waiting = parkedJoins.count { $0.peer == join.peer }
            guard waiting < Self.parkedJoinLimit else { return leave(join.sessions, join.peer) }
            parkedJoins.append(join)
            return Control.after(join.deadline.timeIntervalSinceNow) { [weak self] in self?.dropLateJoins() }
        }
        accept(join, into: session)
    }

    private func accept(_ join: ParkedJoin, into session: SessionCore) {
        let isNew = !session.hasLink(to: join.peer, in: self)
        if isNew {
            send(.join(WireMessage.Sessions(to: join.sessions.from, from: join.sessions.to)), to: join.peer)
        }
        session.connect(to: join.peer, session: join.sessions.from, in: self)
    }

    /// Lets in those that a session expects by now.
    func reconsiderJoins(into session: SessionCore) {
        let waiting = parkedJoins
        parkedJoins = []
        for join in waiting {
            if join.sessions.to == session.number,
                session.expects(join.peer, session: join.sessions.from, in: self)
            {
                accept(join, into: session)
            } else {
                parkedJoins.append(join)
            }
        }
    }

    private func dropLateJoins() {
        let late = parkedJoins.filter { $0.deadline <= Date() }
        parkedJoins.removeAll { $0.deadline <= Date() }
        for join in late {
            leave(join.sessions, join.peer)
            considerIdle(join.peer)
        }
    }
}
