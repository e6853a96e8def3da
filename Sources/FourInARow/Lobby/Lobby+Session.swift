import NighCore

// Handles what the session reports. Everything here runs on the loop.
extension Lobby {
    func took(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, let before, let cause): stateChanged(peer, from: before, cause)
        case .peerChanged(let peer): peerChanged(peer)
        case .invited(let invitation): invited(invitation)
        case .invitationEnded(let invitation, _):
            guard invitations.removeValue(forKey: invitation.peer.id) != nil else { return }
            tell(.askedNoMore(Asker(invitation)))
        case .listening(let scheme, let addresses):
            view.addresses.removeAll { $0.scheme == scheme }
            view.addresses += addresses
            tell()
        case .advertised(let scheme, let name):
            tell(.advertised(scheme: scheme, name: name.description))
        case .transportChanged(let scheme, let condition):
            if case .down(let error) = condition {
                view.brokenTransports[scheme] = error
            } else {
                view.brokenTransports[scheme] = nil
            }
            tell(.transport(scheme: scheme, condition))
        case .transportFailed(let error), .trustNotKept(let error): tell(.trouble(error))
        // The game does not pair. A silent peer is reported once its link counts as broken.
        case .pairing, .paired, .pairingEnded, .suspected, .missed, .closed: break
        }
    }

    private func peerChanged(_ peer: Peer) {
        peers[peer.id] = peer
        askSooner(peer.id)
        guard let before = people[peer.id] else { return tell() }
        people[peer.id]?.name = peer.name.description
        people[peer.id]?.transport = peer.transport ?? before.transport
        guard let now = people[peer.id], let old = before.transport, let new = peer.transport, old != new
        else { return tell() }
        tell(.changedTransport(now, from: old))
    }

    private func stateChanged(_ peer: Peer, from before: PeerState, _ cause: NighError?) {
        peers[peer.id] = peer.state == .unavailable ? nil : peer
        askSooner(peer.id)
        switch (before, peer.state) {
        case (_, .connecting):
            let wasAskedAbout = awaited[peer.id] == .seat && !takesEverybody
            if !wasAskedAbout, case .newWithKnownName? = peer.trust, let trust = peer.trust {
                tell(.hasKnownName(peer.id, name: peer.name.description, trust))
            } else {
                tell()
            }
        case (.connecting, .connected): connected(peer)
        case (.reconnecting, .connected):
            guard let old = people[peer.id] else { return }
            people[peer.id]?.awaySince = nil
            people[peer.id]?.transport = peer.transport
            guard let now = people[peer.id] else { return }
            tell(.cameBack(now))
            if let old = old.transport, let new = now.transport, old != new {
                tell(.changedTransport(now, from: old))
            }
        case (_, .reconnecting):
            people[peer.id]?.awaySince = session.loop.now
            people[peer.id]?.roundTrip = nil
            guard let now = people[peer.id] else { return }
            tell(.wentAway(now, waiting: session.configuration.timings.grace))
        case (.connecting, .available):
            awaited[peer.id] = nil
            tell()
        case (_, .disconnected): disconnected(peer, cause)
        case (.disconnected, _):
            tell()
            if case .joining(let journey) = stand, journey.host == peer.id, !journey.hasAsked { ask() }
        default: tell()
        }
    }

    private func connected(_ peer: Peer) {
        let person = Person(id: peer.id, name: peer.name.description, transport: peer.transport)
        switch stand {
        case .hosting(var table):
            guard let wish = awaited.removeValue(forKey: peer.id) else { break }
            people[peer.id] = person
            let outputs: [HostTable.Output]?
            switch wish {
            case .seat where table.hasFreeSeat:
                outputs = table.seat(peer.id, name: Words(fitting: person.name) ?? Self.fallbackName)
            case .seat: outputs = nil
            case .watch: outputs = table.watch(peer.id)
            }
            guard let outputs else { break }
            stand = .hosting(table)
            carryOut(outputs)
            publish()
            return
        case .joining(let journey) where journey.host == peer.id || journey.host == nil:
            people[peer.id] = person
            return tell()
        case .lobby, .joining, .visiting: break
        }
        // This peer is not expected any more.
        people[peer.id] = nil
        session.disconnect(peer.id)
    }

    private static let fallbackName: Words = {
        guard let words = Words("somebody") else { preconditionFailure("no plain words") }
        return words
    }()

    private func disconnected(_ peer: Peer, _ cause: NighError?) {
        awaited[peer.id] = nil
        let name = people.removeValue(forKey: peer.id)?.name ?? peer.name.description
        switch stand {
        case .hosting(var table):
            let outputs = table.gone(peer.id)
            stand = .hosting(table)
            carryOut(outputs)
            publish()
        case .visiting(let host, _) where host == peer.id:
            stand = .lobby
            tell(.tableClosed(name: name, cause))
        case .joining(let journey) where journey.host == peer.id && journey.hasAsked:
            stand = .lobby
            tell(
                .couldNotJoin(
                    name: journey.name, cause ?? NighError(.inviting, .peerLeft, peer: journey.name)))
        case .lobby, .joining, .visiting: tell()
        }
    }

    // MARK: Invitations

    private func invited(_ invitation: Invitation) {
        let asker = Asker(invitation)
        guard case .hosting(let table) = stand else {
            return session.decline(invitation, words: "there is no table here now")
        }
        do throws(TableWish.Fault) {
            switch try TableWish(invitation.context) {
            case .watch:
                guard table.watchers.count < HostTable.watcherLimit else {
                    return session.decline(invitation, words: "too many watch this table already")
                }
                awaited[asker.id] = .watch
                session.accept(invitation)
            case .seat:
                guard table.hasFreeSeat, !awaited.values.contains(.seat) else {
                    return session.decline(invitation, words: "somebody plays at this table already")
                }
                guard !takesEverybody else { return answer(invitation, accept: true, words: "") }
                invitations[asker.id] = invitation
                tell(.asked(asker))
            }
        } catch {
            session.decline(invitation, words: Self.words(for: error))
        }
    }

    private static func words(for fault: TableWish.Fault) -> String {
        switch fault {
        case .version(let version):
            "this table is played by version \(TableMessage.version) of the rules, not \(version): one of the two programs is older"
        case .garbage: "this is a table of Four in a Row, and that was no wish to sit down or to watch"
        }
    }

    // MARK: Messages

    func received(_ bytes: [UInt8], from peer: PeerID) {
        switch stand {
        case .hosting(var table):
            let outputs = table.received(bytes, from: peer)
            stand = .hosting(table)
            carryOut(outputs)
        case .joining(let journey) where journey.host == peer || journey.host == nil && people[peer] != nil:
            var table = VisitorTable()
            var outputs = table.received(bytes)
            // The host must give the visitor the place that it asked for.
            if table.table != nil, table.isSeated != (journey.wish == .seat) {
                outputs = [.leave(.falseReport)]
            }
            stand = .visiting(peer, table)
            carryOut(outputs, peer)
        case .visiting(let host, var table) where host == peer:
            let outputs = table.received(bytes)
            stand = .visiting(host, table)
            carryOut(outputs, host)
        case .lobby, .joining, .visiting: break
        }
    }

    func carryOut(_ outputs: [HostTable.Output]) {
        var hasReported = false
        for output in outputs {
            switch output {
            case .send(let bytes, let peers): send(bytes, to: peers)
            case .tell(let news):
                hasReported = true
                tell(.table(news))
            }
        }
        if !hasReported { tell() }
    }

    func carryOut(_ outputs: [VisitorTable.Output], _ host: PeerID) {
        for output in outputs {
            switch output {
            case .send(let bytes): send(bytes, to: [host])
            case .tell(let news): tell(.table(news))
            case .leave(let breach):
                let name = people[host]?.name ?? host.short
                leaveQuietly()
                return tell(.hostMisbehaved(name: name, breach))
            }
        }
    }

    /// Sends bytes to these peers, and disconnects each peer that has not read for so long that its buffer is full.
    private func send(_ bytes: [UInt8], to peers: [PeerID]) {
        var stalled: [PeerID] = []
        for peer in peers {
            do throws(NighError) {
                try session.trySend(bytes, to: peer)
            } catch {
                stalled.append(peer)
            }
        }
        // Only now, because each disconnection is sent to everybody else in turn.
        for peer in stalled { session.disconnect(peer) }
    }

    func isAtTable(with peer: PeerID) -> Bool {
        if case .hosting(let table) = stand {
            return table.guest == peer || table.watchers.contains(peer) || awaited[peer] != nil
        }
        return other == peer
    }

    // MARK: The view

    /// Advertises whether the seat is free.
    func publish() {
        guard case .hosting(let table) = stand else { return }
        let value = table.hasFreeSeat ? Info.open : Info.taken
        if let info = try? DiscoveryInfo([Info.key: value]) { session.update(info: info) }
    }

    func refresh() {
        view.tables = peers.values
            .filter { !$0.routes.isEmpty && $0.info[Info.key] != nil }
            .map(TableListing.init)
            .sorted { ($0.name, $0.id) < ($1.name, $1.id) }
        view.askers = invitations.values.sorted { $0.number < $1.number }.map(Asker.init)
        switch stand {
        case .lobby: view.place = .lobby
        case .joining(let journey): view.place = .joining(name: journey.name, journey.wish)
        case .hosting(let host):
            view.place = .hosting(
                Sitting(
                    table: host.table, ownDisc: .red, host: nil,
                    guest: host.guest.flatMap { people[$0] }, pending: nil))
        case .visiting(let host, let visitor):
            guard let table = visitor.table else { break }
            view.place = .visiting(
                Sitting(
                    table: table, ownDisc: visitor.isSeated ? .yellow : nil, host: people[host], guest: nil,
                    pending: visitor.pending))
        }
    }
}

extension Asker {
    init(_ invitation: Invitation) {
        self.init(
            id: invitation.peer.id, name: invitation.peer.name.description, transport: invitation.transport,
            trust: invitation.peer.trust)
    }
}

extension TableListing {
    init(_ peer: Peer) {
        var schemes: [String] = []
        for route in peer.routes where !schemes.contains(route.address.scheme) {
            schemes.append(route.address.scheme)
        }
        self.init(
            id: peer.id, name: peer.name.description,
            hasFreeSeat: peer.info[Lobby.Info.key] == Lobby.Info.open, transports: schemes,
            quality: peer.routes.first?.quality, trust: peer.trust)
    }
}
