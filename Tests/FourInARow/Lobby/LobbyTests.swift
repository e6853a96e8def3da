import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

struct LobbyTests {
    private let group = PlayerGroup()
    private let puma: PlayerGroup.Player
    private let lynx: PlayerGroup.Player

    init() {
        puma = group.player("Puma")
        lynx = group.player("Lynx")
    }

    // MARK: Tables

    @Test func `A table is listed while it is there, with whether its seat is free`() throws {
        let owl = group.player("Owl")
        try group.pass(.seconds(1))
        #expect(lynx.view.tables.isEmpty)
        try group.seat(lynx, at: puma)
        try group.wait { owl.view.tables.first?.hasFreeSeat == false }
        #expect(owl.view.tables.map(\.name) == ["Puma"] && owl.view.tables[0].transports == ["memory"])
        lynx.lobby.leave()
        try group.wait { owl.view.tables.first?.hasFreeSeat == true }
        puma.lobby.leave()
        try group.wait { owl.view.tables.isEmpty }
    }

    @Test func `A whole game, a rematch and a goodbye`() throws {
        try group.seat(lynx, at: puma)
        #expect(puma.other?.name == "Lynx" && lynx.other?.name == "Puma")
        try group.wait { puma.other?.roundTrip != nil && lynx.other?.roundTrip != nil }
        try group.play("abababa", puma, lynx)
        #expect(puma.hasWon == true && lynx.hasWon == false)
        #expect(puma.boards == lynx.boards)
        lynx.lobby.act(.rematch)
        try group.play("cdcdcdc", puma, lynx)
        #expect(lynx.hasWon == true && puma.hasWon == false)
        puma.lobby.leave()
        try group.wait { lynx.view.place == .lobby }
        guard case .tableClosed("Puma", let error)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(2))")
            return
        }
        #expect(error?.cause == .peerLeft)
    }

    @Test func `A player who leaves a table may return at once`() throws {
        try group.seat(lynx, at: puma)
        for role in [TableRole.seat, .watch, .seat] {
            // Nothing gets through, so leaving takes time.
            lynx.air.stall()
            lynx.act(.say(try #require(SafeText("Good-bye"))))
            lynx.lobby.leave()
            lynx.lobby.join(puma.id, as: role)
            try group.pass(.seconds(1))
            lynx.air.release()
            try group.wait { lynx.table != nil }
            #expect(lynx.tableView?.ownDisc == (role == .seat ? .yellow : nil))
            try group.wait { (puma.table?.guest != nil) == (role == .seat) }
        }
        #expect(lynx.failures.isEmpty)
    }

    // MARK: Asking for the seat

    @Test func `The host is asked, and may decline with words that reach the guest`() throws {
        try group.open(puma, seenBy: lynx)
        try group.ask(puma, by: lynx)
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(puma.view.seatRequests[0].name == "Lynx" && puma.view.seatRequests[0].transport == "memory")
        puma.lobby.answer(lynx.id, accept: false, reason: "after lunch")
        try group.wait { lynx.view.place == .lobby }
        guard case .declined("after lunch", _)? = lynx.failures.last?.cause else {
            Issue.record("\(lynx.news)")
            return
        }
        #expect(puma.view.seatRequests.isEmpty && puma.table?.guest == nil)
    }

    @Test func `A known name with another key is marked wherever it is seen first`() throws {
        let known = Identity.ephemeral().peerID
        func player(_ name: String, knowing other: String) -> PlayerGroup.Player {
            let trust = TrustStore.ephemeral()
            trust.remember(known, name: DisplayName(fitting: other))
            return group.player(name, trust: trust)
        }
        let (owl, wren) = (player("Owl", knowing: "Wren"), player("Wren", knowing: "Owl"))
        try group.open(owl, seenBy: wren)
        let trust = PeerTrust.newWithKnownName(of: [known])
        #expect(wren.view.tables[0].trust == trust)
        try group.ask(owl, by: wren)
        #expect(owl.view.seatRequests[0].trust == trust)
        #expect(wren.news.contains(.hasKnownName(owl.id, name: "Owl", trust)))
        owl.lobby.answer(wren.id, accept: true)
        try group.wait { wren.isPlaying }
        #expect(!owl.news.contains(.hasKnownName(wren.id, name: "Wren", trust)), "it stood in the question")
    }

    @Test func `A player who asks for a seat may withdraw`() throws {
        try group.open(puma, seenBy: lynx)
        try group.ask(puma, by: lynx)
        lynx.lobby.leave()
        try group.wait { puma.view.seatRequests.isEmpty }
        #expect(puma.news.contains { if case .seatRequestWithdrawn = $0 { true } else { false } })
        // An answer that comes too late has no effect.
        puma.lobby.answer(lynx.id, accept: true)
        try group.pass(.seconds(2))
        #expect(puma.table?.guest == nil && lynx.view.place == .lobby)
        // A later attempt works as usual.
        try group.seat(lynx, at: puma)
    }

    @Test(arguments: TableRole.allCases)
    func `A guest who asks and withdraws at once leaves the seat free`(_ role: TableRole) throws {
        try group.open(puma, acceptsAll: true, seenBy: lynx)
        let owl = group.session("Owl", role: .client)
        // It withdraws in the turn in which it asks, so both leave in one write.
        owl.start(
            onEvent: { [unowned owl] event in
                guard case .connecting(let peer) = event else { return }
                owl.disconnect(peer.id)
            }, onMessage: { _, _ in })
        owl.invite(at: puma.view.addresses[0], context: JoinRequest(role).bytes) { _ in }
        try group.pass(.seconds(5))
        #expect(puma.lobby.awaited.isEmpty)
        lynx.lobby.join(puma.id, as: .seat)
        try group.wait { lynx.isPlaying }
    }

    @Test(arguments: [true, false])
    func `Of two players who ask, one gets the seat, and the other the reason`(
        _ bothAreAccepted: Bool
    ) throws {
        let owl = group.player("Owl")
        try group.open(puma, seenBy: lynx, owl)
        try group.ask(puma, by: lynx, owl)
        let accepted = bothAreAccepted ? puma.view.seatRequests.map(\.id) : [lynx.id]
        for id in accepted { puma.lobby.answer(id, accept: true) }
        try group.wait(1) {
            [lynx, owl].count { $0.view.place == .lobby } == 1 && [lynx, owl].count(where: \.isPlaying) == 1
        }
        let loser = lynx.isPlaying ? owl : lynx
        #expect(bothAreAccepted || loser === owl)
        #expect(puma.view.seatRequests.isEmpty)
        #expect("\(try #require(loser.failures.last))".contains("somebody else took the seat"))
    }

    @Test func `A player who joins a table that is taken gets the reason`() throws {
        let owl = group.player("Owl")
        try group.seat(lynx, at: puma)
        owl.lobby.join(puma.id, as: .seat)
        try group.wait { !owl.failures.isEmpty && owl.view.place == .lobby }
        #expect("\(owl.failures[0])".contains("somebody plays at this table already"))
    }

    @Test(arguments: TableRole.allCases)
    func `A player who asked to watch is not made to play, and the reverse`(_ role: TableRole) throws {
        var table = Table()
        try table.apply(.sat(words("Lynx")))
        let welcome = TableMessage.welcome(table, seated: role == .watch).bytes
        let liar = group.session("Owl", role: .server)
        liar.start(
            onEvent: { [unowned liar] event in
                switch event {
                case .invited(let invitation): invitation.accept()
                case .connected(let peer): try? liar.trySend(welcome, to: peer.id)
                default: break
                }
            }, onMessage: { _, _ in })
        liar.update(info: try DiscoveryInfo(["table": "open"]))
        try group.wait { !lynx.view.tables.isEmpty }
        lynx.lobby.join(liar.id, as: role)
        try group.wait { !lynx.news.isEmpty && lynx.view.place == .lobby }
        #expect(lynx.news.last == .hostMisbehaved(name: "Owl", .falseReport))
        #expect(!lynx.news.contains { if case .table = $0 { true } else { false } })
    }

    // MARK: The link

    @Test func `A cut is reported, and the game continues with the same board`() throws {
        try group.seat(lynx, at: puma)
        try group.play("dde", puma, lynx)
        lynx.cut()
        try group.wait { lynx.other?.linkLostAt != nil && puma.other?.linkLostAt != nil }
        // A move made during the cut is kept, and played once.
        lynx.lobby.act(.move(try column("e")))
        try group.pass(.seconds(5))
        lynx.air.unblock()
        try group.wait { puma.board?.count == 4 && lynx.board == puma.board }
        #expect(lynx.other?.linkLostAt == nil && puma.other?.linkLostAt == nil)
        try group.play("ddc", puma, lynx)
        let changes = lynx.news.compactMap { news -> String? in
            switch news {
            case .linkLost(let person, let waiting): "\(person.name) away, \(waiting)"
            case .linkRestored(let person): "\(person.name) back"
            default: nil
            }
        }
        #expect(changes == ["Puma away, 10.0 seconds", "Puma back"])
    }

    @Test func `A player who does not return in time is gone, and the seat is free`() throws {
        try group.seat(lynx, at: puma)
        lynx.cut()
        try group.wait { puma.table?.guest == nil }
        #expect(puma.table?.game?.ending == .left(.yellow))
        #expect(puma.news.contains(.table(.guestLeft(try words("Lynx")))))
        try group.wait { lynx.view.place == .lobby }
        lynx.air.unblock()
        try group.seat(lynx, at: puma)
        #expect(puma.table?.game?.number == 1)
    }

    @Test func `The game continues over another transport when the first is cut`() throws {
        let players = ["Owl", "Wren"].map { group.player($0, on: [0, 1]) }
        let (owl, wren) = (players[0], players[1])
        try group.seat(wren, at: owl)
        try group.wait { wren.other?.transport == "memory" }
        #expect(wren.view.tables.first?.transports == ["memory", "radio"])
        try group.play("dd", owl, wren)
        for player in players { player.cut() }
        try group.play("ddc", owl, wren)
        #expect(owl.boards == wren.boards)
        for player in players {
            let changes = player.news.compactMap {
                if case .changedTransport(let person, "memory") = $0 { person.transport } else { nil }
            }
            #expect(player.other?.transport == "radio" && changes.contains("radio"))
        }
    }

    // MARK: Addresses

    @Test func `An address leads to a table, or to an error if there is none`() throws {
        try group.open(puma, acceptsAll: true)
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try group.wait { lynx.isPlaying }
        lynx.lobby.join(at: TransportAddress(scheme: "memory", value: "nobody"), as: .seat)
        try group.wait { lynx.view.place == .lobby && puma.table?.guest == nil }
        #expect(
            lynx.news.contains { if case .couldNotJoin("memory://nobody", _) = $0 { true } else { false } })
    }

    @Test func `A player who asks at an address may withdraw, and can ask that host again at once`() throws {
        try group.open(puma, seenBy: lynx)
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try group.wait { puma.requestCount == 1 }
        lynx.lobby.leave()
        try group.wait(1) { puma.view.seatRequests.isEmpty }
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try group.wait { puma.requestCount == 2 }
        lynx.lobby.leave()
        lynx.lobby.join(puma.id, as: .seat)
        try group.wait { puma.requestCount == 3 }
        puma.lobby.answer(lynx.id, accept: true)
        try group.wait { lynx.isPlaying }
        try group.pass(.seconds(2))
        #expect(lynx.isPlaying && puma.table?.guest != nil)
    }

    @Test func `A player who leaves while an address is called asks nobody there`() throws {
        try group.open(puma)
        lynx.air.stall()
        lynx.lobby.join(at: puma.view.addresses[0], as: .seat)
        try group.pass(.seconds(1))
        lynx.lobby.leave()
        lynx.air.release()
        try group.pass(.seconds(10))
        #expect(puma.requestCount == 0 && lynx.view.place == .lobby)
    }

    // MARK: Hosts that cannot be reached

    /// Makes Lynx join the table of Puma, which it sees and cannot reach.
    private func joinUnreachable() throws {
        try group.open(puma, acceptsAll: true, seenBy: lynx)
        lynx.air.block(dials: .refuse)
        lynx.lobby.join(puma.id, as: .seat)
    }

    @Test func `A host who cannot be reached is asked again, which is reported once`() throws {
        try joinUnreachable()
        try group.pass(.seconds(10))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        #expect(lynx.news.count { if case .notReachedYet("Puma", _) = $0 { true } else { false } } == 1)
        lynx.air.unblock()
        try group.wait(3) { lynx.isPlaying && puma.table?.guest != nil }
        #expect(lynx.failures.isEmpty)
    }

    @Test func `A host who cannot be reached for half a minute is given up, with the reason`() throws {
        try joinUnreachable()
        try group.pass(.seconds(29))
        #expect(lynx.view.place == .joining(name: "Puma", .seat))
        try group.pass(.seconds(2))
        #expect(lynx.view.place == .lobby && lynx.failures.map(\.cause) == [.refused])
    }

    @Test func `A player may leave while the host cannot be reached`() throws {
        try joinUnreachable()
        try group.pass(.seconds(5))
        lynx.lobby.leave()
        lynx.air.unblock()
        try group.pass(.seconds(40))
        #expect(lynx.view.place == .lobby && puma.table?.guest == nil && lynx.failures.isEmpty)
    }

    @Test func `A host who disappears meanwhile and returns is asked at once`() throws {
        try joinUnreachable()
        try group.pass(.seconds(6))
        puma.lobby.session.stopAdvertising()
        try group.pass(.milliseconds(100))
        #expect(lynx.view.tables.isEmpty)
        lynx.air.unblock()
        puma.lobby.session.startAdvertising()
        // The next retry would have come later.
        try group.wait(1) { lynx.isPlaying }
    }
}
