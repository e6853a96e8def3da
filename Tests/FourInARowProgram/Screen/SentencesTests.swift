import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Sentences about events")
struct SentencesTests {
    private func seen(_ peer: PeerID, _ news: TableNews, _ scene: Scene) -> String? {
        Sentences.sentence(for: .table(news), in: scene.view(of: peer))
    }

    /// The sentences that host, guest and watcher see.
    private func seen(_ news: TableNews, _ letters: String = "d") throws -> [String?] {
        let scene = try Scene.playing(letters, watched: true)
        return [Scene.puma, Scene.lynx, Scene.owl].map { seen($0, news, scene) }
    }

    private func lobby(_ news: LobbyNews) -> String? {
        Sentences.sentence(for: news, in: LobbyView(name: "Owl", id: Scene.owl))
    }

    @Test("Host, guest and watcher each read how a game ends from their own side")
    func endings() throws {
        #expect(try seen(.ended(.line(.red))) == ["You win!", "Puma wins", "Puma wins"])
        #expect(try seen(.ended(.line(.yellow))) == ["Lynx wins", "You win!", "Lynx wins"])
        #expect(try seen(.ended(.draw)) == ["It's a draw", "It's a draw", "It's a draw"])
        #expect(
            try seen(.ended(.resigned(.yellow))) == [
                "Lynx resigned: you win", "you resigned: Puma wins", "Lynx resigned: Puma wins",
            ])
        #expect(
            try seen(.ended(.brokenOff(.red, .outOfTurn))) == [
                "the program of Lynx says that yours moved out of turn: the game is broken off",
                "Puma moved out of turn: the game is broken off",
                "Puma moved out of turn: the game is broken off",
            ])
        #expect(try seen(.ended(.left(.yellow))).allSatisfy { $0 == "nobody wins this game" })
    }

    @Test("Players who join, leave, begin and speak are named, or called you")
    func table() throws {
        let came = try seen(.joined(seated: true))
        #expect(came[1] == "you sit at the table of Puma")
        #expect(try seen(.joined(seated: false))[2] == "you watch at the table of Puma")
        #expect(
            try seen(.began(number: 3, starter: .red)) == [
                "game 3 begins: you move first", "game 3 begins: Puma moves first",
                "game 3 begins: Puma moves first",
            ])
        #expect(try seen(.said(.yellow, Scene.words("hi"))) == ["Lynx: hi", "you: hi", "Lynx: hi"])
        #expect(try seen(.guestJoined(Scene.words("Wren")))[0] == "Wren sits down")
        #expect(try seen(.guestLeft(Scene.words("Wren")))[0] == "Wren left the table")
        let counts = try (0...2).map { try seen(.watched(by: $0))[0] }
        #expect(counts == ["nobody watches any more", "one watches", "2 watch"])
        let cell = try #require(Cell(column: .middle, row: 0))
        #expect(try seen(.moved(.red, cell)) == [nil, nil, nil])
    }

    @Test("Whoever is at a table without its host learns who hosts it now")
    func lostHost() throws {
        #expect(
            lobby(.hostLeft(name: "Puma", successor: "Lynx"))
                == "Puma left; Lynx now hosts the table. Waiting for a player.")
        #expect(
            lobby(.hostLeft(name: "Puma", successor: nil))
                == "Puma left; you now host the table. Waiting for a player.")
        #expect(
            try seen(.resumed(Scene.words("Wren"))) == [
                "Wren takes the seat: the game goes on", "you take the seat: the game goes on",
                "Wren takes the seat: the game goes on",
            ])
    }

    @Test("A lost, restored or changed connection is reported if it matters to the game")
    func links() throws {
        let scene = try Scene.playing("d", watched: true)
        var guest = scene.person(Scene.lynx)
        guest.transport = "bluetooth"
        let watcher = scene.person(Scene.owl)
        let view = scene.view(of: Scene.puma)
        func sentence(_ news: LobbyNews) -> String? { Sentences.sentence(for: news, in: view) }
        #expect(
            sentence(.linkLost(guest, waiting: .milliseconds(9_500)))
                == "no connection to Lynx: waiting 10 s for them to come back")
        #expect(sentence(.linkRestored(guest)) == "Lynx is back")
        #expect(sentence(.changedTransport(guest, from: "tcp")) == "the game goes on over bluetooth")
        #expect(sentence(.linkLost(watcher, waiting: .seconds(10))) == nil)
        #expect(sentence(.linkRestored(watcher)) == nil)
        #expect(sentence(.changedTransport(watcher, from: "bluetooth")) == nil)
        let over = try Scene.playing("dcdcdcd").view(of: Scene.lynx)
        var host = scene.person(Scene.puma)
        host.transport = "bluetooth"
        #expect(
            Sentences.sentence(for: .changedTransport(host, from: "tcp"), in: over)
                == "Puma is reached over bluetooth now")
    }

    @Test("A failed join is reported with its cause and its advice")
    func joinAttempts() {
        func failed(_ cause: NighError.Cause, advice: String? = nil) -> String? {
            lobby(.couldNotJoin(name: "Lynx", NighError(.inviting, cause, peer: "Lynx", advice: advice)))
        }
        #expect(failed(.declined("after lunch")) == "Lynx said no: after lunch")
        #expect(failed(.declined("")) == "Lynx said no")
        #expect(failed(.peerLeft) == "Lynx is not there any more")
        #expect(
            failed(.timedOut, advice: "the host accepted but sent no table")
                == "could not get to the table of Lynx: no answer in time; the host accepted but sent no table"
        )
        let attempts = [
            NighError(.connecting, .refused, transport: "tcp", advice: "is the program still running?"),
            NighError(.connecting, .timedOut, transport: "bluetooth"),
        ]
        let all = NighError(.connecting, .allFailed, peer: "Lynx", attempts: attempts)
        #expect(
            lobby(.couldNotJoin(name: "Lynx", all))
                == "could not get to the table of Lynx: nobody listens there; is the program still running?")
    }

    @Test("A host who cannot be reached is reported as being tried again")
    func notReached() {
        let refused = NighError(.connecting, .refused, advice: "is the program still running?")
        let all = NighError(.inviting, .allFailed, attempts: [refused, NighError(.connecting, .timedOut)])
        for error in [refused, all] {
            #expect(
                lobby(.notReachedYet(name: "Lynx", error))
                    == "Lynx does not answer yet: nobody listens there; trying again")
        }
    }

    @Test("A table that disappears was closed, or its host is lost or broke the rules")
    func closing() {
        #expect(lobby(.tableClosed(name: "Puma", nil)) == "Puma has closed the table")
        #expect(
            lobby(.tableClosed(name: "Puma", NighError(.conversing, .peerLeft)))
                == "Puma has closed the table")
        #expect(
            lobby(.tableClosed(name: "Puma", NighError(.conversing, .silent)))
                == "the connection to Puma is lost: nothing was received any more")
        #expect(
            lobby(.hostMisbehaved(name: "Puma", .falseReport))
                == "the program of Puma reported something that has not happened: you have left their table")
    }

    @Test("Seat requests, transports and problems are reported in few words")
    func others() {
        let request = SeatRequest(id: Scene.lynx, name: "Lynx", transport: "tcp")
        let off = NighError(
            .starting, .unavailable("the adapter is powered off"), advice: "run `bluetoothctl power on`")
        #expect(lobby(.seatRequested(request)) == "Lynx wants to play, over tcp")
        #expect(lobby(.seatRequestWithdrawn(request)) == "Lynx no longer waits for your answer")
        #expect(
            lobby(.transport(scheme: "bluetooth", .down(off)))
                == "bluetooth does not work: the adapter is powered off")
        #expect(lobby(.transport(scheme: "bluetooth", .up)) == "bluetooth works")
        #expect(lobby(.otherFailure(off)) == "the adapter is powered off; run `bluetoothctl power on`")
        var about = off
        about.transport = "bluetooth"
        #expect(
            lobby(.otherFailure(about))
                == "bluetooth: the adapter is powered off; run `bluetoothctl power on`")
        #expect(lobby(.advertised(scheme: "tcp", name: "Owl")) == nil)
        #expect(lobby(.advertised(scheme: "tcp", name: "Owl #2")) == "over tcp others see you as Owl #2")
    }

    @Test("A refusal is worded for the person, not for the program")
    func refusalsSurviveARoundTrip() throws {
        let scene = try Scene.playing("d", watched: true)
        func refusal(_ breach: Breach, _ peer: PeerID, _ scene: Scene) -> String {
            Sentences.sentence(for: breach, in: scene.view(of: peer))
        }
        #expect(refusal(.outOfTurn, Scene.puma, scene) == "it's not your turn")
        #expect(refusal(.columnFull, Scene.puma, scene) == "that column is full")
        #expect(refusal(.untimely, Scene.puma, scene) == "the game is not over yet")
        #expect(refusal(.untimely, Scene.owl, scene) == "you only watch here")
        #expect(refusal(.untimely, Scene.puma, Scene()) == "nobody plays with you yet")
        #expect(refusal(.untimely, Scene.puma, try Scene.playing("dcdcdcd")) == "the game is over")
        #expect(refusal(.untimely, Scene.owl, Scene()) == "you are not at a table")
    }

    @Test("No sentence contains characters that control a terminal")
    func harmless() {
        let evil = "Pu\u{1B}[2Jma\u{202E}\u{7}"
        let news: [LobbyNews] = [
            .seatRequested(SeatRequest(id: Scene.lynx, name: evil, transport: "tcp")),
            .couldNotJoin(name: evil, NighError(.inviting, .declined(evil))),
            .notReachedYet(name: evil, NighError(.connecting, .unavailable(evil))),
            .tableClosed(name: evil, nil), .advertised(scheme: "tcp", name: evil),
            .otherFailure(NighError(.starting, .unavailable(evil), peer: evil, advice: evil)),
        ]
        for news in news {
            let sentence = lobby(news) ?? ""
            #expect(sentence.contains("Pu\u{FFFD}[2Jma\u{FFFD}\u{FFFD}"))
            #expect(
                !sentence.unicodeScalars.contains {
                    [.control, .format].contains($0.properties.generalCategory)
                })
        }
    }
}
