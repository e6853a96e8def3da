import NighCore

// Handles events of the session. Everything here runs on the loop.
extension Lobby {
    func handle(_ event: SessionEvent) {
        if let peer = event.stateChange?.peer {
            peers[peer.id] = peer.state == .unavailable ? nil : peer
            inviteSooner(peer.id)
        }
        switch event {
        case .peerFound: notify()
        case .peerLost(let peer):
            notify()
            inviteAfterEnd(peer)
        case .connecting(let peer): connecting(peer)
        case .connected(let peer): connected(peer)
        case .reconnecting(let peer, _): linkLost(peer)
        case .reconnected(let peer): linkRestored(peer)
        case .disconnected(let peer, let cause): disconnected(peer, cause)
        case .available(let peer, let cause): available(peer, hasFailed: cause != nil)
        case .peerChanged(let peer): peerChanged(peer)
        case .invited(let invitation): invited(invitation)
        case .invitationEnded(let invitation, _):
            // It may have ended before it could be accepted.
            awaited[invitation.peer.id] = nil
            guard invitations.removeValue(forKey: invitation.peer.id) != nil else { return }
            notify(.seatRequestWithdrawn(SeatRequest(invitation)))
        case .listening(let scheme, let addresses):
            view.addresses.removeAll { $0.scheme == scheme }
            view.addresses += addresses
            notify()
        case .advertised(let scheme, let name):
            notify(.advertised(scheme: scheme, name: name))
        case .transportUp(let scheme):
            view.brokenTransports[scheme] = nil
            notify(.transport(scheme: scheme, .up))
        case .transportDown(let scheme, let error):
            view.brokenTransports[scheme] = error
            notify(.transport(scheme: scheme, .down(error)))
        case .problem(let error): notify(.otherFailure(error))
        // The game does not pair, a host invites nobody, and a stream that nobody keeps is cancelled. A silent peer is
        // reported once its link counts as broken.
        default: break
        }
    }

    private func peerChanged(_ peer: Peer) {
        peers[peer.id] = peer
        inviteSooner(peer.id)
        guard let before = people[peer.id] else { return notify() }
        people[peer.id]?.name = peer.name
        people[peer.id]?.transport = peer.transport ?? before.transport
        guard let now = people[peer.id], let old = before.transport, let new = peer.transport, old != new
        else { return notify() }
        notify(.changedTransport(now, from: old))
    }

    private func connecting(_ peer: Peer) {
        let playerWasAsked = awaited[peer.id]?.role == .seat && !acceptsAll
        if !playerWasAsked, let trust = peer.trust, trust.isDoubtful {
            notify(.hasKnownName(peer.id, name: peer.name, trust))
        } else {
            notify()
        }
    }

    private func linkRestored(_ peer: Peer) {
        guard let old = people[peer.id] else { return }
        people[peer.id]?.linkLostAt = nil
        people[peer.id]?.transport = peer.transport
        guard let now = people[peer.id] else { return }
        notify(.linkRestored(now))
        if let old = old.transport, let new = now.transport, old != new {
            notify(.changedTransport(now, from: old))
        }
    }

    private func linkLost(_ peer: Peer) {
        people[peer.id]?.linkLostAt = low.loop.now
        people[peer.id]?.roundTrip = nil
        guard let now = people[peer.id] else { return }
        notify(.linkLost(now, waiting: low.configuration.timings.grace))
    }

    private func available(_ peer: Peer, hasFailed: Bool) {
        if hasFailed { awaited[peer.id] = nil }
        notify()
        if !hasFailed { inviteAfterEnd(peer) }
    }

    /// Invites the host again, once the last conversation with it is over.
    private func inviteAfterEnd(_ peer: Peer) {
        if case .joining(let attempt) = state, attempt.host == peer.id, !attempt.hasInvited { inviteHost() }
    }

    private func connected(_ peer: Peer) {
        let person = Person(id: peer.id, name: peer.name, trust: peer.trust, transport: peer.transport)
        switch state {
        case .hosting(var table):
            guard let request = awaited.removeValue(forKey: peer.id) else { break }
            people[peer.id] = person
            let name = SafeText(fitting: person.name) ?? Self.fallbackName
            var outputs = request.lostTable.map { table.adopt($0) } ?? []
            switch request.role {
            case .seat where table.hasFreeSeat && (request.canStay || !table.table.isWaiting):
                outputs += table.seat(peer.id, name: name, canStay: request.canStay)
            case .seat: return disconnectUnexpected(peer)
            case .watch:
                guard let watching = table.watch(peer.id, stayingAs: request.canStay ? name : nil) else {
                    return disconnectUnexpected(peer)
                }
                outputs += watching
            }
            state = .hosting(table)
            keepTableOpen()
            declineLateRequests()
            carryOut(outputs)
            publish()
            if table.isComplete || table.hasOfferedSeat, !table.hasOpenOffer { offerSeat() }
            return
        case .joining(var attempt) where attempt.host == peer.id || attempt.host == nil:
            people[peer.id] = person
            attempt.host = peer.id
            state = .joining(attempt)
            return notify()
        case .lobby, .joining, .visiting: break
        }
        disconnectUnexpected(peer)
    }

    private func disconnectUnexpected(_ peer: Peer) {
        people[peer.id] = nil
        low.disconnect(peer.id)
    }

    private static let fallbackName: SafeText = {
        guard let text = SafeText("somebody") else { preconditionFailure("no plain words") }
        return text
    }()

    private func disconnected(_ peer: Peer, _ cause: NighError?) {
        awaited[peer.id] = nil
        let name = people.removeValue(forKey: peer.id)?.name ?? peer.name
        switch state {
        case .hosting(var table):
            let offers = table.offers
            let outputs = table.remove(peer.id)
            state = .hosting(table)
            if table.hasNewOffer(since: offers) { scheduleOffer() }
            carryOut(outputs)
            publish()
        case .visiting(let host, let visitor) where host == peer.id:
            state = .lobby
            switch visitor.afterLoss(of: host) {
            case .takeOver(let table): takeOver(table, visitor.table?.game, from: name, cause)
            case .follow(let guest, let table):
                let guestName = visitor.table?.guest?.description ?? guest.short
                follow(guest, called: guestName, after: LostHost(table: table, name: name, cause: cause))
            case .leave: notify(.tableClosed(name: name, cause))
            }
        case .joining(let attempt) where attempt.host == peer.id && attempt.hasInvited:
            state = .lobby
            notify(attempt.news(of: cause ?? NighError(.inviting, .peerLeft, peer: attempt.name)))
        case .lobby, .joining, .visiting: notify()
        }
    }

    // MARK: Invitations

    private func invited(_ invitation: Invitation) {
        let request = SeatRequest(invitation)
        guard case .hosting(let table) = state else {
            // A watcher may notice that the host left before the guest does.
            let isEarly = (try? JoinRequest(invitation.context))?.lostTable?.host == otherPeer
            return invitation.decline(
                because: "there is no table here now",
                retryAfter: isEarly && otherPeer != nil ? .seconds(1) : .zero)
        }
        do throws(TableRole.Fault) {
            let joinRequest = try JoinRequest(invitation)
            let isGuest = invitation.peer.trust == .guest
            guard joinRequest.canStay || !table.table.isWaiting else {
                return invitation.decline(
                    because: isGuest
                        ? "this game cannot be joined in the middle: try again when it is over"
                        : "an older version of the game cannot join in the middle of this one")
            }
            if let lost = joinRequest.lostTable, lost.host != table.formerHost {
                return invitation.decline(because: "there is no table here now")
            }
            switch joinRequest.role {
            case .watch:
                guard table.watchers.count < HostTable.watcherLimit else {
                    return invitation.decline(because: "too many watch this table already")
                }
                awaited[request.id] = joinRequest
                invitation.accept()
            case .seat:
                guard table.hasFreeSeat, !isSeatPromised else {
                    return invitation.decline(because: "somebody plays at this table already")
                }
                // The host that left may have its seat back.
                let isBack = table.awaitsFormerHost && request.id == table.formerHost
                guard isBack || !table.isSeatReserved else {
                    return invitation.decline(because: "the seat is offered to the watchers first")
                }
                // A guest has scanned the code that the player shows.
                guard !acceptsAll, !isBack, !isGuest else {
                    return answer(invitation, accept: true, reason: "")
                }
                invitations[request.id] = invitation
                notify(.seatRequested(request))
            }
        } catch {
            invitation.decline(because: Self.reason(for: error))
        }
    }

    /// Declines the remaining requests for the seat, once it is taken.
    private func declineLateRequests() {
        guard case .hosting(let table) = state, !table.hasFreeSeat else { return }
        for invitation in invitations.values { invitation.decline(because: Self.seatIsTaken) }
        invitations = [:]
    }

    static let seatIsTaken = "somebody else took the seat"

    private static func reason(for fault: TableRole.Fault) -> String {
        switch fault {
        case .version(let version):
            "this table uses version \(TableMessage.version) of the protocol, not \(version): one of the two programs is older"
        case .garbage:
            "this is a table of Four in a Row, and the invitation asks neither for the seat nor to watch"
        }
    }

    // MARK: Messages

    func received(_ bytes: [UInt8], from peer: PeerID) {
        switch state {
        case .hosting(var table):
            let (hadOpenSeat, offers) = (table.hasOpenSeat, table.offers)
            let outputs = table.received(bytes, from: peer)
            state = .hosting(table)
            if table.hasNewOffer(since: offers) { scheduleOffer() }
            declineLateRequests()
            carryOut(outputs)
            if table.hasOpenSeat != hadOpenSeat { publish() }
        case .joining(let attempt) where attempt.host == peer:
            var table = VisitorTable()
            var outputs = table.received(bytes)
            // The host must give the visitor the place that it asked for.
            if table.table != nil, table.isSeated != (attempt.role == .seat) {
                outputs = [.leave(.falseReport)]
            }
            state = .visiting(peer, table)
            carryOut(outputs, peer)
        case .visiting(let host, var table) where host == peer:
            let outputs = table.received(bytes)
            state = .visiting(host, table)
            carryOut(outputs, host)
        case .lobby, .joining, .visiting: break
        }
    }

    /// Returns the news in the colours that people see.
    private func shown(_ news: TableNews) -> TableNews {
        switch state {
        case .hosting(let host): news.shown(hostDisc: host.table.hostDisc)
        case .visiting(_, let visitor): news.shown(hostDisc: visitor.table?.hostDisc ?? .red)
        case .lobby, .joining: news
        }
    }

    func carryOut(_ outputs: [HostTable.Output]) {
        var hasReported = false
        for output in outputs {
            switch output {
            case .send(let bytes, let peers): send(bytes, to: peers)
            case .show(let news):
                hasReported = true
                notify(.table(shown(news)))
            }
        }
        if !hasReported { notify() }
    }

    func carryOut(_ outputs: [VisitorTable.Output], _ host: PeerID) {
        for output in outputs {
            switch output {
            case .send(let bytes): send(bytes, to: [host])
            case .show(let news): notify(.table(shown(news)))
            case .leave(let breach):
                let name = people[host]?.name ?? host.short
                leaveQuietly()
                return notify(.hostMisbehaved(name: name, breach))
            }
        }
    }

    /// Sends bytes to these peers, and disconnects each peer that has not read for so long that its buffer is full.
    private func send(_ bytes: [UInt8], to peers: [PeerID]) {
        var stalled: [PeerID] = []
        for peer in peers {
            do throws(NighError) {
                try low.trySend(bytes, to: peer)
            } catch {
                stalled.append(peer)
            }
        }
        // Only now, because each disconnection is sent to everybody else in turn.
        for peer in stalled { low.disconnect(peer) }
    }

    func isAtTable(with peer: PeerID) -> Bool {
        if case .hosting(let table) = state {
            return table.guest == peer || table.watchers.contains(peer) || awaited[peer] != nil
        }
        return otherPeer == peer
    }

    // MARK: The view

    /// Advertises whether the seat is free.
    func publish() {
        guard case .hosting(let table) = state else { return }
        let value = table.hasOpenSeat ? Info.open : Info.taken
        if let info = try? DiscoveryInfo([Info.key: value]) { low.update(info: info) }
    }

    func refresh() {
        view.tables = peers.values
            .filter { !$0.routes.isEmpty && $0.info[Info.key] != nil }
            .map(TableListing.init)
            .sorted { ($0.name, $0.id) < ($1.name, $1.id) }
        view.seatRequests = invitations.values.sorted { $0.number < $1.number }.map(SeatRequest.init)
        switch state {
        case .lobby: view.place = .lobby
        case .joining(let attempt): view.place = .joining(name: attempt.name, attempt.role)
        case .hosting(let host):
            view.place = .hosting(
                TableView(
                    table: host.table.shown, ownDisc: host.table.hostDisc, host: nil,
                    guest: host.guest.flatMap { people[$0] }, pending: nil))
        case .visiting(let host, let visitor):
            guard let table = visitor.table else { break }
            view.place = .visiting(
                TableView(
                    table: table.shown, ownDisc: visitor.isSeated ? table.hostDisc.other : nil,
                    host: people[host], guest: nil,
                    pending: visitor.pending, isSeatOffered: visitor.isSeatOffered))
        }
    }
}

extension JoinRequest {
    /// Decodes the context of an invitation. Nobody but this host can reach a guest, so a guest cannot take over the
    /// table.
    init(_ invitation: Invitation) throws(TableRole.Fault) {
        try self.init(invitation.context)
        if invitation.peer.trust == .guest { self.init(role, canStay: false) }
    }
}

extension SeatRequest {
    init(_ invitation: Invitation) {
        self.init(
            id: invitation.peer.id, name: invitation.peer.name, transport: invitation.transport,
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
            id: peer.id, identity: peer.identity == peer.id ? nil : peer.identity,
            name: peer.name,
            hasFreeSeat: peer.info[Lobby.Info.key] == Lobby.Info.open, isFull: peer.isFull,
            transports: schemes,
            quality: peer.routes.first?.quality, trust: peer.trust)
    }
}
