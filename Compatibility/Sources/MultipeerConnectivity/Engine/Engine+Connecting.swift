import NighCore

// How an engine gets a conversation with a peer, and keeps it while somebody needs it.
extension Engine {
    // MARK: Attempts

    func begin(_ attempt: Attempt) {
        attempts[attempt.number] = attempt
        sessions[ObjectIdentifier(attempt.session)] = attempt.session
        updateBrowsing()
        let peer = peer(attempt.peer)
        if peer.conversation != nil { ask(attempt) } else { dial(peer) }
        Control.after(attempt.deadline.timeIntervalSinceNow) { [weak self] in
            self?.fail(attempt.number, because: .timedOut)
        }
    }

    private func ask(_ attempt: Attempt) {
        switch attempt.kind {
        case .invitation(let context):
            let seconds = UInt32(clamping: Int(attempt.deadline.timeIntervalSinceNow.rounded(.up)))
            send(
                .invite(
                    number: attempt.number, from: attempt.sessionNumber, seconds: seconds, context: context),
                to: attempt.peer)
        case .join(let session):
            send(.join(WireMessage.Sessions(to: session, from: attempt.sessionNumber)), to: attempt.peer)
        }
    }

    /// Ends an attempt that has failed.
    func fail(_ number: UInt64, because code: MCError.Code) {
        guard let attempt = attempts[number] else { return }
        end(attempt)
        attempt.session.failed(attempt, in: self)
        forget(attempt.session)
    }

    /// Ends an attempt without saying so to its session.
    func end(_ attempt: Attempt) {
        attempts[attempt.number] = nil
        updateBrowsing()
        considerIdle(attempt.peer)
    }

    /// Ends the attempts of a session, or those with one peer.
    func endAttempts(of session: SessionCore, with peer: PeerID? = nil) {
        for attempt in attempts.values
        where attempt.session === session && (peer ?? attempt.peer) == attempt.peer {
            end(attempt)
        }
    }

    /// Forgets a session that has nothing here any more.
    func forget(_ session: SessionCore) {
        guard !session.hasLinks(in: self), !attempts.values.contains(where: { $0.session === session }) else {
            return
        }
        sessions[ObjectIdentifier(session)] = nil
        updateAdvertising()
        considerClosing()
    }

    // MARK: Dialling

    /// Dials a peer that was seen again, without the rest of the pause.
    func resume(_ peer: EnginePeer) {
        if attempts.values.contains(where: { $0.peer == peer.id }) { dial(peer) }
    }

    private func dial(_ peer: EnginePeer) {
        guard peer.conversation == nil, peer.nextConversation == nil, !peer.isDialling else { return }
        let last = attempts.values.filter { $0.peer == peer.id }.map(\.deadline.timeIntervalSinceNow).max()
        guard let last, last > 0 else { return }
        peer.isDialling = true
        let addresses = peer.addresses + peer.listening.compactMap { TransportAddress($0) }
        let timeout = Duration.seconds(min(last, Self.dialTime))
        low.invite(peer.id, timeout: timeout) { [weak self, id = peer.id] result in
            guard case .failure = result else { return }
            // Discovery may have lost sight of it.
            self?.dial(id, at: ArraySlice(addresses), timeout)
        }
    }

    private static let dialTime: TimeInterval = 10

    /// Dials addresses one after the other. On the loop.
    private func dial(_ id: PeerID, at addresses: ArraySlice<TransportAddress>, _ timeout: Duration) {
        guard let address = addresses.first else {
            return Control.async { self.dialFailed(id) }
        }
        low.invite(at: address, timeout: timeout) { [weak self] result in
            switch result {
            case .success(id): break
            case .success(let other):
                // Somebody else is there now. Whether that conversation is needed is its own affair.
                Control.async { [weak self] in self?.considerIdle(other) }
                self?.dial(id, at: addresses.dropFirst(), timeout)
            case .failure: self?.dial(id, at: addresses.dropFirst(), timeout)
            }
        }
    }

    private func dialFailed(_ id: PeerID) {
        let peer = peer(id)
        peer.isDialling = false
        guard peer.conversation == nil else { return }
        let pause = peer.pause
        peer.pause = min(pause * 2, EnginePeer.longestPause)
        Control.after(pause) { [weak self] in
            guard let self else { return }
            resume(self.peer(id))
        }
    }

    // MARK: Conversations

    /// A conversation has begun.
    func began(_ conversation: PeerConversation) {
        let id = conversation.peer
        let peer = peer(id)
        peer.isDialling = false
        peer.pause = EnginePeer.firstPause
        guard peer.conversation == nil else {
            peer.nextConversation = conversation
            return
        }
        peer.conversation = conversation
        conversation.send(.addresses(ownAddresses))
        for attempt in attempts.values.sorted(by: { $0.number < $1.number }) where attempt.peer == id {
            ask(attempt)
        }
        conversation.read { [weak self] in self?.ended(id) }
        considerIdle(id)
    }

    /// A conversation has ended, and everything that came in it was read.
    private func ended(_ id: PeerID) {
        let peer = peer(id)
        peer.conversation = nil
        for session in sessions.values { session.lost(id, in: self) }
        if let next = peer.nextConversation.take() {
            began(next)
        } else {
            resume(peer)
        }
    }

    /// A conversation has begun, and had ended before anything could be read of it.
    func endedAtOnce(_ id: PeerID) {
        let peer = peer(id)
        peer.isDialling = false
        resume(peer)
    }

    func send(_ message: WireMessage, to id: PeerID) { peers[id]?.conversation?.send(message) }

    /// Whether something is going on with a peer.
    func needs(_ peer: EnginePeer) -> Bool {
        attempts.values.contains { $0.peer == peer.id }
            || peer.waitingInvitationCount > 0
            || sessions.values.contains { $0.hasLink(to: peer.id, in: self) }
            || parkedJoins.contains { $0.peer == peer.id }
    }

    /// Asks the peer to end the conversation if nobody needs it for a while. Called whenever somebody may have been the
    /// last to need it.
    func considerIdle(_ id: PeerID) {
        guard let peer = peers[id], let conversation = peer.conversation, !needs(peer) else { return }
        conversation.idleCount += 1
        let count = conversation.idleCount
        Control.after(idleConversationTime) { [weak self, weak conversation] in
            guard let self, let conversation, peer.conversation === conversation,
                conversation.idleCount == count, !needs(peer)
            else { return }
            conversation.send(.idle)
        }
    }

    /// The peer does not need the conversation any more. If nobody here does, ends it.
    func endIfIdle(_ id: PeerID) {
        guard let peer = peers[id], let conversation = peer.conversation, !needs(peer) else { return }
        conversation.isEnding = true
        end(conversation)
    }
}

extension Optional {
    /// Takes the value out.
    fileprivate mutating func take() -> Wrapped? {
        defer { self = nil }
        return self
    }
}
