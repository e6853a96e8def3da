import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

struct LobbyTests {
    @Test("A table is listed while it is there, with whether its seat is free")
    func tables() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try group.pass(.seconds(1))
        #expect(lynx.view.tables.isEmpty)
        #expect(try group.seated(puma, lynx))
        try #require(try group.wait(until: { owl.view.tables.first?.hasFreeSeat == false }))
        #expect(owl.view.tables.map(\.name) == ["Puma"])
        #expect(owl.view.tables[0].transports == ["memory"])
        lynx.lobby.leave()
        #expect(try group.wait(until: { owl.view.tables.first?.hasFreeSeat == true }))
        puma.lobby.leave()
        #expect(try group.wait(until: { owl.view.tables.isEmpty }))
    }

    @Test("A known name with another key is marked in the list of tables, in the question and in the news")
    func knownName() throws {
        let group = PlayerGroup()
        let known = Identity.ephemeral().peerID
        let (hosts, guests) = (TrustStore.ephemeral(), TrustStore.ephemeral())
        hosts.remember(known, name: DisplayName(fitting: "Lynx"))
        guests.remember(known, name: DisplayName(fitting: "Puma"))
        let (puma, lynx) = (group.player("Puma", trust: hosts), group.player("Lynx", trust: guests))
        puma.lobby.host()
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        let trust = PeerTrust.newWithKnownName(of: [known])
        #expect(lynx.view.tables[0].trust == trust)
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        #expect(puma.view.seatRequests[0].trust == trust)
        #expect(lynx.news.contains(.hasKnownName(puma.id, name: "Puma", trust)))
        puma.lobby.answer(lynx.id, accept: true)
        #expect(try group.wait(until: { lynx.table?.game != nil }))
        #expect(!puma.news.contains(.hasKnownName(lynx.id, name: "Lynx", trust)), "it stood in the question")
    }

    @Test("A whole game, a rematch and a goodbye")
    func wholeGame() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        try #require(try group.seated(puma, lynx))
        #expect(puma.tableView?.other?.name == "Lynx" && lynx.tableView?.other?.name == "Puma")
        #expect(try group.play("abababa", puma, lynx))
        #expect(puma.standing == .iWin && lynx.standing == .youWin)
        #expect(puma.boards == lynx.boards)
        lynx.lobby.act(.rematch)
        #expect(try group.wait(until: { lynx.standing == .myTurn }))
        #expect(try group.play("cdcdcdc", puma, lynx))
        #expect(lynx.standing == .iWin && puma.standing == .youWin)
        puma.lobby.leave()
        #expect(try group.wait(until: { lynx.view.place == .lobby }))
        guard case .tableClosed("Puma", let error)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(2))")
            return
        }
        #expect(error?.cause == .peerLeft)
    }

    @Test("The host is asked, and may decline with words that reach the guest")
    func declining() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host()
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(puma.view.seatRequests[0].name == "Lynx" && puma.view.seatRequests[0].transport == "memory")
        puma.lobby.answer(lynx.id, accept: false, reason: "after lunch")
        #expect(try group.wait(until: { lynx.view.place == .lobby }))
        guard case .couldNotJoin("Puma", let error)? = lynx.news.last,
            case .declined("after lunch", _) = error.cause
        else {
            Issue.record("\(lynx.news)")
            return
        }
        #expect(puma.view.seatRequests.isEmpty && puma.table?.guest == nil)
    }

    @Test("A player who asks for a seat may withdraw")
    func askingNoMore() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host()
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        lynx.lobby.leave()
        #expect(try group.wait(until: { puma.view.seatRequests.isEmpty }))
        #expect(puma.news.contains { if case .seatRequestWithdrawn = $0 { true } else { false } })
        // An answer that comes too late has no effect.
        puma.lobby.answer(lynx.id, accept: true)
        try group.pass(.seconds(2))
        #expect(puma.table?.guest == nil && lynx.view.place == .lobby)
        // A later attempt works as usual.
        #expect(try group.seated(puma, lynx))
    }

    @Test(
        "A guest whose question and withdrawal come together leaves the seat free",
        arguments: TableWish.allCases)
    func withdrawingAtOnce(_ wish: TableWish) throws {
        let group = PlayerGroup()
        let (puma, owl) = (group.player("Puma"), group.player("Owl"))
        puma.lobby.host(acceptsAll: true)
        try #require(try group.wait(until: { !puma.view.addresses.isEmpty && !owl.view.tables.isEmpty }))
        let lynx = Session(
            SessionConfiguration(service: Lobby.service, name: DisplayName(fitting: "Lynx"), role: .client),
            identity: .ephemeral(), transports: [MemoryTransport(hub: group.hub)], loop: group.loop)
        // It withdraws in the turn in which it asks, so both leave in one write.
        lynx.start(
            onEvent: { [unowned lynx] event in
                guard case .connecting(let peer) = event else { return }
                lynx.disconnect(peer.id)
            }, onMessage: { _, _ in })
        lynx.invite(at: puma.view.addresses[0], context: JoinRequest(wish).bytes) { _ in }
        try group.pass(.seconds(5))
        #expect(puma.lobby.awaited.isEmpty)
        owl.lobby.join(puma.id, as: .seat)
        #expect(try group.wait(until: { owl.table?.game != nil }))
    }

    /// Has a host open a table, and two others ask for the seat.
    private func letBothAsk(
        _ one: PlayerGroup.Player, _ other: PlayerGroup.Player, at host: PlayerGroup.Player,
        in group: PlayerGroup
    ) throws {
        host.lobby.host()
        try #require(try group.wait(until: { !one.view.tables.isEmpty && !other.view.tables.isEmpty }))
        one.lobby.join(host.id, as: .seat)
        other.lobby.join(host.id, as: .seat)
        try #require(try group.wait(until: { host.view.seatRequests.count == 2 }))
    }

    @Test("If two players ask at once, one gets the seat and the other gets the reason")
    func twoAskers() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try letBothAsk(lynx, owl, at: puma, in: group)
        for request in puma.view.seatRequests { puma.lobby.answer(request.id, accept: true) }
        #expect(try group.wait(until: { [lynx, owl].count { $0.view.place == .lobby } == 1 }))
        #expect(try group.wait(until: { [lynx, owl].count { $0.table?.game != nil } == 1 }))
        let loser = lynx.table == nil ? lynx : owl
        guard case .couldNotJoin(_, let error)? = loser.news.last else {
            Issue.record("\(loser.news)")
            return
        }
        #expect("\(error)".contains("somebody else took the seat"))
    }

    @Test("Once somebody has the seat, the others who asked for it get the reason without an answer")
    func othersDeclined() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try letBothAsk(lynx, owl, at: puma, in: group)
        puma.lobby.answer(lynx.id, accept: true)
        try #require(try group.wait(1, until: { owl.view.place == .lobby && lynx.table?.game != nil }))
        #expect(puma.view.seatRequests.isEmpty)
        guard case .couldNotJoin(_, let error)? = owl.news.last else {
            Issue.record("\(owl.news)")
            return
        }
        #expect("\(error)".contains("somebody else took the seat"))
    }

    @Test("A player who joins a table that is taken, or that does not exist, gets the reason")
    func noSeat() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try #require(try group.seated(puma, lynx))
        owl.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { owl.view.place == .lobby }))
        guard case .couldNotJoin(_, let error)? = owl.news.last else {
            Issue.record("\(owl.news)")
            return
        }
        #expect("\(error)".contains("somebody plays at this table already"))
    }

    @Test("Any number of players may watch, see the whole board at once, and cannot move")
    func watching() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let watchers = (0..<5).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        #expect(try group.play("dde", puma, lynx))
        for watcher in watchers {
            try #require(try group.wait(until: { !watcher.view.tables.isEmpty }))
            watcher.lobby.join(puma.id, as: .watch)
        }
        #expect(try group.wait(until: { watchers.allSatisfy { $0.board == puma.board } }))
        #expect(try group.wait(until: { lynx.table?.watcherCount == 5 }))
        watchers[0].act(.move(try column("a")))
        #expect(watchers[0].refusals == [.untimely])
        #expect(try group.play("ddf", puma, lynx))
        #expect(try group.wait(until: { watchers.allSatisfy { $0.board == puma.board } }))
        #expect(watchers.allSatisfy { $0.table?.guest?.description == "Lynx" && $0.standing == .unknown })
        // A watcher who leaves is no longer counted, and the game continues.
        watchers[0].lobby.leave()
        #expect(try group.wait(until: { puma.table?.watcherCount == 4 }))
        #expect(puma.table?.isPlaying == true)
    }

    // MARK: The link

    @Test("A cut is reported, and the game continues with the same board")
    func cut() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        try #require(try group.seated(puma, lynx))
        #expect(try group.play("dde", puma, lynx))
        lynx.cut()
        try #require(try group.wait(until: { lynx.tableView?.other?.linkLostAt != nil }))
        try #require(try group.wait(until: { puma.tableView?.other?.linkLostAt != nil }))
        // A move made during the cut is kept, and played once.
        lynx.lobby.act(.move(try column("e")))
        try group.pass(.seconds(5))
        lynx.air.control.unblock()
        #expect(try group.wait(until: { puma.board?.count == 4 && lynx.board == puma.board }))
        #expect(lynx.tableView?.other?.linkLostAt == nil && puma.tableView?.other?.linkLostAt == nil)
        #expect(try group.play("ddc", puma, lynx))
        let changes = lynx.news.compactMap { news -> String? in
            switch news {
            case .linkLost(let person, let waiting): "\(person.name) away, \(waiting)"
            case .linkRestored(let person): "\(person.name) back"
            default: nil
            }
        }
        #expect(changes == ["Puma away, 10.0 seconds", "Puma back"])
    }

    @Test("A player who does not return in time is gone: the host's seat is free, the guest is in the lobby")
    func lost() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        try #require(try group.seated(puma, lynx))
        lynx.cut()
        #expect(try group.wait(until: { puma.table?.guest == nil }))
        #expect(puma.table?.game?.ending == .left(.yellow))
        #expect(puma.news.contains(.table(.guestLeft(try #require(Words("Lynx"))))))
        #expect(try group.wait(until: { lynx.view.place == .lobby }))
        lynx.air.control.unblock()
        #expect(try group.seated(puma, lynx))
        #expect(puma.table?.game?.number == 1)
    }

    @Test("The game continues over another transport when the first is cut, and both are notified")
    func otherTransport() throws {
        let group = PlayerGroup()
        let second = MemoryHub()
        let other = {
            RelabelledTransport(MemoryTransport(hub: second), scheme: "radio", priority: 200) as any Transport
        }
        let puma = group.player("Puma", others: [other()])
        let lynx = group.player("Lynx", others: [other()])
        try #require(try group.seated(puma, lynx))
        try #require(try group.wait(until: { lynx.tableView?.other?.transport == "memory" }))
        #expect(lynx.view.tables.first?.transports == ["memory", "radio"])
        #expect(try group.play("dd", puma, lynx))
        for player in [puma, lynx] { player.cut() }
        #expect(try group.play("ddc", puma, lynx))
        #expect(puma.boards == lynx.boards)
        for player in [puma, lynx] {
            #expect(player.tableView?.other?.transport == "radio")
            #expect(
                player.news.contains {
                    if case .changedTransport(let person, "memory") = $0 {
                        person.transport == "radio"
                    } else {
                        false
                    }
                })
        }
    }

    @Test("The round trip is measured while a player is at a table")
    func roundTrip() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        try #require(try group.seated(puma, lynx))
        #expect(try group.wait(until: { puma.tableView?.other?.roundTrip != nil }))
        #expect(try group.wait(until: { lynx.tableView?.other?.roundTrip != nil }))
    }

    @Test("An address leads to a table, or to an error if there is none")
    func byAddress() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host(acceptsAll: true)
        try #require(try group.wait(until: { !puma.view.addresses.isEmpty }))
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        #expect(try group.wait(until: { lynx.table?.game != nil }))
        lynx.lobby.join(at: TransportAddress(scheme: "memory", value: "nobody"), as: .seat)
        #expect(try group.wait(until: { lynx.view.place == .lobby }))
        #expect(try group.wait(until: { puma.table?.guest == nil }))
        #expect(
            lynx.news.contains { if case .couldNotJoin("memory://nobody", _) = $0 { true } else { false } })
    }

    @Test("A player who asks at an address may withdraw, and can ask that host again at once")
    func withdrawingFromAddress() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host()
        try #require(
            try group.wait(until: { !puma.view.addresses.isEmpty && !lynx.view.tables.isEmpty }))
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        lynx.lobby.leave()
        #expect(try group.wait(1, until: { puma.view.seatRequests.isEmpty }))
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        lynx.lobby.leave()
        lynx.lobby.join(puma.id, as: .seat)
        let count = { puma.news.count { if case .seatRequested = $0 { true } else { false } } }
        try #require(try group.wait(until: { count() == 3 }))
        puma.lobby.answer(lynx.id, accept: true)
        #expect(try group.wait(until: { lynx.table?.game != nil }))
        try group.pass(.seconds(2))
        #expect(lynx.table?.game != nil && puma.table?.guest != nil)
    }

    @Test("A player who leaves while an address is called asks nobody there")
    func leavingTheCall() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host()
        try #require(try group.wait(until: { !puma.view.addresses.isEmpty }))
        lynx.air.control.stall()
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try group.pass(.seconds(1))
        lynx.lobby.leave()
        lynx.air.control.release()
        try group.pass(.seconds(10))
        #expect(!puma.news.contains { if case .seatRequested = $0 { true } else { false } })
        #expect(lynx.view.place == .lobby)
    }

    /// A table that is visible, and a player whose dials to it are refused.
    private func unreachable(_ group: PlayerGroup) throws -> (
        host: PlayerGroup.Player, guest: PlayerGroup.Player
    ) {
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        puma.lobby.host(acceptsAll: true)
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.air.control.block(dials: .refuse)
        lynx.lobby.join(puma.id, as: .seat)
        return (puma, lynx)
    }

    private func countNotReached(_ player: PlayerGroup.Player) -> Int {
        player.news.count { if case .notReachedYet("Puma", _) = $0 { true } else { false } }
    }

    @Test("A host who cannot be reached is asked again, which is reported once")
    func askingAgain() throws {
        let group = PlayerGroup()
        let (puma, lynx) = try unreachable(group)
        try group.pass(.seconds(10))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(countNotReached(lynx) == 1)
        lynx.air.control.unblock()
        #expect(try group.wait(3, until: { lynx.table?.game != nil && puma.table?.guest != nil }))
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }

    @Test("A host who cannot be reached for half a minute is given up, with the reason")
    func neverReached() throws {
        let group = PlayerGroup()
        let (_, lynx) = try unreachable(group)
        try group.pass(.seconds(29))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        try group.pass(.seconds(2))
        #expect(lynx.view.place == .lobby)
        guard case .couldNotJoin("Puma", let error)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(2))")
            return
        }
        #expect(error.cause == .refused)
    }

    @Test("A player may leave while the host cannot be reached")
    func leavingTheWay() throws {
        let group = PlayerGroup()
        let (puma, lynx) = try unreachable(group)
        try group.pass(.seconds(5))
        lynx.lobby.leave()
        lynx.air.control.unblock()
        try group.pass(.seconds(40))
        #expect(lynx.view.place == .lobby && puma.table?.guest == nil)
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }

    @Test("A host who disappears meanwhile and returns is asked at once")
    func backMeanwhile() throws {
        let group = PlayerGroup()
        let (puma, lynx) = try unreachable(group)
        try group.pass(.seconds(6))
        puma.lobby.session.stopAdvertising()
        try group.pass(.milliseconds(100))
        #expect(lynx.view.tables.isEmpty)
        lynx.air.control.unblock()
        puma.lobby.session.startAdvertising()
        // The next retry would have come later.
        #expect(try group.wait(1, until: { lynx.table?.game != nil }))
    }

    @Test("A player who leaves a table may return at once")
    func leavingAndComingBack() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        try #require(try group.seated(puma, lynx))
        for wish in [TableWish.seat, .watch, .seat] {
            // What was said does not get through, so leaving takes time.
            lynx.air.control.stall()
            lynx.act(.say(try #require(Words("Good-bye"))))
            lynx.lobby.leave()
            lynx.lobby.join(puma.id, as: wish)
            try group.pass(.seconds(1))
            lynx.air.control.release()
            try #require(try group.wait(until: { lynx.table != nil }))
            #expect(lynx.tableView?.ownDisc == (wish == .seat ? .yellow : nil))
            #expect(try group.wait(until: { (puma.table?.guest != nil) == (wish == .seat) }))
        }
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }
}
