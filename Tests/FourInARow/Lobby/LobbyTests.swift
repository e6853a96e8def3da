import FourInARow
import NighCore
import NighMemory
import NighTestKit
import Testing

struct LobbyTests {
    @Test("A table is seen while it is there, with whether its seat is free")
    func tables() throws {
        let company = Company()
        let (puma, lynx, owl) = (company.player("Puma"), company.player("Lynx"), company.player("Owl"))
        try company.pass(.seconds(1))
        #expect(lynx.view.tables.isEmpty)
        #expect(try company.seated(puma, lynx))
        try #require(try company.wait(until: { owl.view.tables.first?.hasFreeSeat == false }))
        #expect(owl.view.tables.map(\.name) == ["Puma"])
        #expect(owl.view.tables[0].transports == ["memory"])
        lynx.lobby.leave()
        #expect(try company.wait(until: { owl.view.tables.first?.hasFreeSeat == true }))
        puma.lobby.leave()
        #expect(try company.wait(until: { owl.view.tables.isEmpty }))
    }

    @Test("A known name with another key is pointed out where one chooses, is asked, and goes")
    func knownName() throws {
        let company = Company()
        let known = Identity.ephemeral().peerID
        let (hosts, guests) = (TrustStore.ephemeral(), TrustStore.ephemeral())
        hosts.remember(known, name: DisplayName(fitting: "Lynx"))
        guests.remember(known, name: DisplayName(fitting: "Puma"))
        let (puma, lynx) = (company.player("Puma", trust: hosts), company.player("Lynx", trust: guests))
        puma.lobby.host()
        try #require(try company.wait(until: { !lynx.view.tables.isEmpty }))
        let trust = PeerTrust.newWithKnownName(of: [known])
        #expect(lynx.view.tables[0].trust == trust)
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try company.wait(until: { !puma.view.askers.isEmpty }))
        #expect(puma.view.askers[0].trust == trust)
        #expect(lynx.news.contains(.hasKnownName(puma.id, name: "Puma", trust)))
        puma.lobby.answer(lynx.id, accept: true)
        #expect(try company.wait(until: { lynx.table?.game != nil }))
        #expect(!puma.news.contains(.hasKnownName(lynx.id, name: "Lynx", trust)), "it stood in the question")
    }

    @Test("A whole game, a rematch, and good-bye")
    func wholeGame() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        try #require(try company.seated(puma, lynx))
        #expect(puma.sitting?.other?.name == "Lynx" && lynx.sitting?.other?.name == "Puma")
        #expect(try company.play("abababa", puma, lynx))
        #expect(puma.standing == .iWin && lynx.standing == .youWin)
        #expect(puma.boards == lynx.boards)
        lynx.lobby.act(.rematch)
        #expect(try company.wait(until: { lynx.standing == .myTurn }))
        #expect(try company.play("cdcdcdc", puma, lynx))
        #expect(lynx.standing == .iWin && puma.standing == .youWin)
        puma.lobby.leave()
        #expect(try company.wait(until: { lynx.view.place == .lobby }))
        guard case .tableClosed("Puma", let error)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(2))")
            return
        }
        #expect(error?.cause == .peerLeft)
    }

    @Test("The person is asked, and may say no with words that reach the other")
    func declining() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        puma.lobby.host()
        try #require(try company.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try company.wait(until: { !puma.view.askers.isEmpty }))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(puma.view.askers[0].name == "Lynx" && puma.view.askers[0].transport == "memory")
        puma.lobby.answer(lynx.id, accept: false, words: "after lunch")
        #expect(try company.wait(until: { lynx.view.place == .lobby }))
        guard case .couldNotJoin("Puma", let error)? = lynx.news.last,
            case .declined("after lunch", _) = error.cause
        else {
            Issue.record("\(lynx.news)")
            return
        }
        #expect(puma.view.askers.isEmpty && puma.table?.guest == nil)
    }

    @Test("Whoever asks may think better of it")
    func askingNoMore() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        puma.lobby.host()
        try #require(try company.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try company.wait(until: { !puma.view.askers.isEmpty }))
        lynx.lobby.leave()
        #expect(try company.wait(until: { puma.view.askers.isEmpty }))
        #expect(puma.news.contains { if case .askedNoMore = $0 { true } else { false } })
        // An answer that comes too late has no effect.
        puma.lobby.answer(lynx.id, accept: true)
        try company.pass(.seconds(2))
        #expect(puma.table?.guest == nil && lynx.view.place == .lobby)
        // A later attempt works as usual.
        #expect(try company.seated(puma, lynx))
    }

    @Test("Of two who ask at once one gets the seat, and the other hears why not")
    func twoAskers() throws {
        let company = Company()
        let (puma, lynx, owl) = (company.player("Puma"), company.player("Lynx"), company.player("Owl"))
        puma.lobby.host()
        try #require(try company.wait(until: { !lynx.view.tables.isEmpty && !owl.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        owl.lobby.join(puma.id, as: .seat)
        try #require(try company.wait(until: { puma.view.askers.count == 2 }))
        for asker in puma.view.askers { puma.lobby.answer(asker.id, accept: true) }
        #expect(try company.wait(until: { [lynx, owl].count { $0.view.place == .lobby } == 1 }))
        #expect(try company.wait(until: { [lynx, owl].count { $0.table?.game != nil } == 1 }))
        let loser = lynx.table == nil ? lynx : owl
        guard case .couldNotJoin(_, let error)? = loser.news.last else {
            Issue.record("\(loser.news)")
            return
        }
        #expect("\(error)".contains("somebody else took the seat"))
    }

    @Test("Whoever comes to a table that is taken, or to none, hears so")
    func noSeat() throws {
        let company = Company()
        let (puma, lynx, owl) = (company.player("Puma"), company.player("Lynx"), company.player("Owl"))
        try #require(try company.seated(puma, lynx))
        owl.lobby.join(puma.id, as: .seat)
        try #require(try company.wait(until: { owl.view.place == .lobby }))
        guard case .couldNotJoin(_, let error)? = owl.news.last else {
            Issue.record("\(owl.news)")
            return
        }
        #expect("\(error)".contains("somebody plays at this table already"))
    }

    @Test("Any number may watch, see the whole board when they come in, and cannot move")
    func watching() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        let watchers = (0..<5).map { company.player("Owl \($0)") }
        try #require(try company.seated(puma, lynx))
        #expect(try company.play("dde", puma, lynx))
        for watcher in watchers {
            try #require(try company.wait(until: { !watcher.view.tables.isEmpty }))
            watcher.lobby.join(puma.id, as: .watch)
        }
        #expect(try company.wait(until: { watchers.allSatisfy { $0.board == puma.board } }))
        #expect(try company.wait(until: { lynx.table?.watcherCount == 5 }))
        watchers[0].act(.move(try column("a")))
        #expect(watchers[0].refusals == [.untimely])
        #expect(try company.play("ddf", puma, lynx))
        #expect(try company.wait(until: { watchers.allSatisfy { $0.board == puma.board } }))
        #expect(watchers.allSatisfy { $0.table?.guest?.description == "Lynx" && $0.standing == .unknown })
        // A watcher who leaves is no longer counted, and the game continues.
        watchers[0].lobby.leave()
        #expect(try company.wait(until: { puma.table?.watcherCount == 4 }))
        #expect(puma.table?.isPlaying == true)
    }

    // MARK: The link

    @Test("A cut is said, and survived with the board as it was")
    func cut() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        try #require(try company.seated(puma, lynx))
        #expect(try company.play("dde", puma, lynx))
        lynx.cut()
        try #require(try company.wait(until: { lynx.sitting?.other?.awaySince != nil }))
        try #require(try company.wait(until: { puma.sitting?.other?.awaySince != nil }))
        // A move made during the cut is kept, and played once.
        lynx.lobby.act(.move(try column("e")))
        try company.pass(.seconds(5))
        lynx.air.control.unblock()
        #expect(try company.wait(until: { puma.board?.count == 4 && lynx.board == puma.board }))
        #expect(lynx.sitting?.other?.awaySince == nil && puma.sitting?.other?.awaySince == nil)
        #expect(try company.play("ddc", puma, lynx))
        let told = lynx.news.compactMap { news -> String? in
            switch news {
            case .wentAway(let person, let waiting): "\(person.name) away, \(waiting)"
            case .cameBack(let person): "\(person.name) back"
            default: nil
            }
        }
        #expect(told == ["Puma away, 10.0 seconds", "Puma back"])
    }

    @Test("Whoever does not come back in time is gone: the host's seat is free, the guest is in the lobby")
    func lost() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        try #require(try company.seated(puma, lynx))
        lynx.cut()
        #expect(try company.wait(until: { puma.table?.guest == nil }))
        #expect(puma.table?.game?.ending == .left(.yellow))
        #expect(puma.news.contains(.table(.guestLeft(try #require(Words("Lynx"))))))
        #expect(try company.wait(until: { lynx.view.place == .lobby }))
        lynx.air.control.unblock()
        #expect(try company.seated(puma, lynx))
        #expect(puma.table?.game?.number == 1)
    }

    @Test("The game goes on over another transport when the first is cut, and both say so")
    func otherTransport() throws {
        let company = Company()
        let second = MemoryHub()
        let other = {
            RelabelledTransport(MemoryTransport(hub: second), scheme: "radio", priority: 200) as any Transport
        }
        let puma = company.player("Puma", others: [other()])
        let lynx = company.player("Lynx", others: [other()])
        try #require(try company.seated(puma, lynx))
        try #require(try company.wait(until: { lynx.sitting?.other?.transport == "memory" }))
        #expect(lynx.view.tables.first?.transports == ["memory", "radio"])
        #expect(try company.play("dd", puma, lynx))
        for player in [puma, lynx] { player.cut() }
        #expect(try company.play("ddc", puma, lynx))
        #expect(puma.boards == lynx.boards)
        for player in [puma, lynx] {
            #expect(player.sitting?.other?.transport == "radio")
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

    @Test("The way there and back is measured while one is at a table")
    func roundTrip() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        try #require(try company.seated(puma, lynx))
        #expect(try company.wait(until: { puma.sitting?.other?.roundTrip != nil }))
        #expect(try company.wait(until: { lynx.sitting?.other?.roundTrip != nil }))
    }

    @Test("An address leads to a table too, and to nothing where there is none")
    func byAddress() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        puma.lobby.host(acceptsAll: true)
        try #require(try company.wait(until: { !puma.view.addresses.isEmpty }))
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        #expect(try company.wait(until: { lynx.table?.game != nil }))
        lynx.lobby.join(at: TransportAddress(scheme: "memory", value: "nobody"), as: .seat)
        #expect(try company.wait(until: { lynx.view.place == .lobby }))
        #expect(try company.wait(until: { puma.table?.guest == nil }))
        #expect(
            lynx.news.contains { if case .couldNotJoin("memory://nobody", _) = $0 { true } else { false } })
    }

    /// A table that is visible, and a player whose dials to it are refused.
    private func unreachable(_ company: Company) throws -> (host: Company.Player, guest: Company.Player) {
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        puma.lobby.host(acceptsAll: true)
        try #require(try company.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.air.control.block(dials: .refuse)
        lynx.lobby.join(puma.id, as: .seat)
        return (puma, lynx)
    }

    private func countNotReached(_ player: Company.Player) -> Int {
        player.news.count { if case .notReachedYet("Puma", _) = $0 { true } else { false } }
    }

    @Test("A host who is not reached is asked again, which is told once")
    func askingAgain() throws {
        let company = Company()
        let (puma, lynx) = try unreachable(company)
        try company.pass(.seconds(10))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(countNotReached(lynx) == 1)
        lynx.air.control.unblock()
        #expect(try company.wait(3, until: { lynx.table?.game != nil && puma.table?.guest != nil }))
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }

    @Test("A host who is not reached for half a minute is given up, with the reason")
    func neverReached() throws {
        let company = Company()
        let (_, lynx) = try unreachable(company)
        try company.pass(.seconds(29))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        try company.pass(.seconds(2))
        #expect(lynx.view.place == .lobby)
        guard case .couldNotJoin("Puma", let error)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(2))")
            return
        }
        #expect(error.cause == .refused)
    }

    @Test("Whoever is on the way to a host who is not reached may think better of it")
    func leavingTheWay() throws {
        let company = Company()
        let (puma, lynx) = try unreachable(company)
        try company.pass(.seconds(5))
        lynx.lobby.leave()
        lynx.air.control.unblock()
        try company.pass(.seconds(40))
        #expect(lynx.view.place == .lobby && puma.table?.guest == nil)
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }

    @Test("A host who goes meanwhile and comes back is asked at once")
    func backMeanwhile() throws {
        let company = Company()
        let (puma, lynx) = try unreachable(company)
        try company.pass(.seconds(6))
        puma.lobby.session.setAdvertising(false)
        try company.pass(.milliseconds(100))
        #expect(lynx.view.tables.isEmpty)
        lynx.air.control.unblock()
        puma.lobby.session.setAdvertising(true)
        // The next retry would have come later.
        #expect(try company.wait(1, until: { lynx.table?.game != nil }))
    }

    @Test("Whoever leaves a table may come back to it at once")
    func leavingAndComingBack() throws {
        let company = Company()
        let (puma, lynx) = (company.player("Puma"), company.player("Lynx"))
        try #require(try company.seated(puma, lynx))
        for wish in [TableWish.seat, .watch, .seat] {
            // What was said does not get through, so leaving takes time.
            lynx.air.control.stall()
            lynx.act(.say(try #require(Words("Good-bye"))))
            lynx.lobby.leave()
            lynx.lobby.join(puma.id, as: wish)
            try company.pass(.seconds(1))
            lynx.air.control.release()
            try #require(try company.wait(until: { lynx.table != nil }))
            #expect(lynx.sitting?.ownDisc == (wish == .seat ? .yellow : nil))
            #expect(try company.wait(until: { (puma.table?.guest != nil) == (wish == .seat) }))
        }
        #expect(!lynx.news.contains { if case .couldNotJoin = $0 { true } else { false } })
    }
}
