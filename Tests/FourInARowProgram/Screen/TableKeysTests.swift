import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Keys at a table")
struct TableKeysTests {
    private func move(_ index: Int) -> [UserRequest] { Column(index).map { [.act(.move($0))] } ?? [] }

    @Test("A disc drops at the cursor, which arrows, digits, letters, Home and End move")
    func cursor() throws {
        var scene = try Scene.playing()
        func drop(_ inputs: Input...) -> [UserRequest] {
            inputs.flatMap { scene.press(Scene.puma, $0) } + scene.press(Scene.puma, .key(.enter))
        }
        #expect(drop() == move(3))
        #expect(drop(.key(.left)) == move(2))
        #expect(drop(.key(.right), .key(.right)) == move(4))
        #expect(drop(.key(.home)) == move(0))
        #expect(drop(.key(.left)) == move(0))
        #expect(drop(.key(.end)) == move(6))
        #expect(drop(.key(.right)) == move(6))
        for (index, digit) in "1234567".unicodeScalars.enumerated() {
            #expect(drop(.character(digit)) == move(index))
        }
        for (index, letter) in "ABCDEFG".unicodeScalars.enumerated() {
            #expect(drop(.character(letter)) == move(index))
        }
        for (index, letter) in "abCdefg".unicodeScalars.enumerated() {
            #expect(drop(.character(letter)) == move(index))
        }
        #expect(drop(.character("0"), .character("8"), .character("H"), .character("h")) == move(6))
    }

    @Test("The second press of a column's key drops a disc there, and nothing may come between the two")
    func columnKeyTwice() throws {
        var scene = try Scene.playing()
        #expect(scene.type(Scene.puma, "4") == [])
        #expect(scene.type(Scene.puma, "4") == move(3))
        #expect(scene.type(Scene.puma, "4") == [])
        #expect(scene.type(Scene.puma, "54") == [])
        #expect(scene.type(Scene.puma, "xn4") == [])
        #expect([.key(.left), .key(.right), .character("4")].flatMap { scene.press(Scene.puma, $0) } == [])
        let board = try #require(Layout(Scene.small)).board
        let elsewhere = CellPosition(column: board.middle(try #require(Column(0))), row: board.labelRow)
        #expect(scene.press(Scene.puma, .mouse(MouseInput(.move(nil), at: elsewhere))) == [])
        #expect(scene.type(Scene.puma, "4") == [])
        #expect(scene.type(Scene.puma, "aa") == move(0))
        #expect(scene.type(Scene.puma, "CC") == move(2))
        #expect(scene.type(Scene.lynx, "44") == [])
        #expect(scene.text(Scene.lynx).contains("it's not your turn"))
    }

    @Test("Space and the down key drop like Enter")
    func otherKeys() throws {
        var scene = try Scene.playing()
        #expect(scene.press(Scene.puma, .character(" ")) == move(3))
        #expect(scene.press(Scene.puma, .key(.down)) == move(3))
    }

    @Test(
        "The mouse moves the cursor, and its left button drops",
        arguments: [Scene.small, TerminalSize(columns: 133, rows: 50)])
    func mouse(_ size: TerminalSize) throws {
        var scene = try Scene.playing()
        let board = try #require(Layout(size)).board
        for column in Column.allCases {
            let place = CellPosition(column: board.middle(column), row: board.grid.origin.row + 5)
            #expect(scene.press(Scene.puma, .mouse(MouseInput(.move(nil), at: place)), size) == [])
            #expect(scene.press(Scene.puma, .key(.enter), size) == [.act(.move(column))])
            #expect(
                scene.press(Scene.puma, .mouse(MouseInput(.press(.left), at: place)), size)
                    == [.act(.move(column))])
            #expect(scene.press(Scene.puma, .mouse(MouseInput(.press(.right), at: place)), size) == [])
            #expect(scene.press(Scene.puma, .mouse(MouseInput(.release(.left), at: place)), size) == [])
        }
        let beside = CellPosition(
            column: board.grid.columns.upperBound + 1, row: board.grid.origin.row + 5)
        #expect(scene.press(Scene.puma, .mouse(MouseInput(.press(.left), at: beside)), size) == [])
    }

    @Test("A request that the table would refuse is not made, and the screen shows why")
    func refusalsSurviveARoundTrip() throws {
        var scene = try Scene.playing("dddddd")
        #expect(scene.press(Scene.lynx, .key(.enter)) == [])
        #expect(scene.text(Scene.lynx).contains("it's not your turn"))
        #expect(scene.press(Scene.puma, .key(.enter)) == [])
        #expect(scene.text(Scene.puma).contains("that column is full"))
        #expect(scene.press(Scene.puma, .character("r")) == [])
        #expect(scene.text(Scene.puma).contains("the game is not over yet"))
        try scene.move("a")
        try scene.request(.move(try #require(Column(0))))
        #expect(scene.press(Scene.lynx, .character("b")) == [])
        #expect(scene.press(Scene.lynx, .key(.enter)) == [])
        #expect(scene.text(Scene.lynx).contains("your last action is still on its way"))
    }

    @Test("Giving up and leaving a game need a confirmation; Esc and n cancel")
    func questions() throws {
        var scene = try Scene.playing("d")
        for (key, request) in [("x", UserRequest.act(.resign)), ("q", .leave)] {
            for no in [Input.character("n"), .key(.escape)] {
                #expect(scene.type(Scene.lynx, key) == [])
                #expect(scene.text(Scene.lynx).contains("y/n"))
                #expect(scene.press(Scene.lynx, no) == [])
                #expect(!scene.text(Scene.lynx).contains("y/n"))
            }
            #expect(scene.type(Scene.lynx, key) == [])
            #expect(scene.press(Scene.lynx, .key(.enter)) == [])
            #expect(scene.press(Scene.lynx, .key(.left)) == [])
            #expect(scene.type(Scene.lynx, "y") == [request])
        }
        #expect(scene.press(Scene.lynx, .character("x")) == [])
        try scene.act(.red, .resign)
        #expect(!scene.text(Scene.lynx).contains("y/n"))
        #expect(scene.type(Scene.lynx, "y") == [])
    }

    @Test("After the end r begins another game, and q leaves without a confirmation")
    func afterTheEnd() throws {
        var scene = try Scene.playing("dcdcdcd")
        #expect(scene.type(Scene.lynx, "r") == [.act(.rematch)])
        #expect(scene.press(Scene.puma, .key(.enter)) == [])
        #expect(scene.text(Scene.puma).contains("the game is over"))
        #expect(scene.type(Scene.puma, "q") == [.leave])
        #expect(scene.type(Scene.puma, "x") == [])
        #expect(!scene.text(Scene.puma).contains("y/n"))
    }

    @Test("A watcher can leave, and cannot change the game")
    func watcher() throws {
        var scene = try Scene.playing("d", watched: true)
        let inputs: [Input] = [.key(.enter), .key(.left), .key(.down), .character("3")]
        #expect(inputs.flatMap { scene.press(Scene.owl, $0) } == [])
        #expect(scene.type(Scene.owl, "xyrch y") == [])
        #expect(scene.text(Scene.owl).contains("you only watch here"))
        #expect(scene.type(Scene.owl, "q") == [.leave])
    }

    @Test("Players who want to play are accepted or declined, one after the other")
    func seatRequests() {
        var scene = Scene()
        scene.seatRequests = [
            SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp"),
            SeatRequest(id: Scene.lynx, name: "Lynx", transport: "bluetooth"),
        ]
        scene.show(Scene.puma, .seatRequested(scene.seatRequests[0]))
        #expect(scene.press(Scene.puma, .key(.enter)) == [])
        #expect(scene.text(Scene.puma).contains("one more waits"))
        #expect(scene.type(Scene.puma, "n") == [.answer(Scene.owl, accept: false)])
        #expect(!scene.text(Scene.puma).contains("more wait"))
        #expect(scene.text(Scene.puma).contains("Lynx wants to play, over bluetooth"))
        #expect(scene.type(Scene.puma, "Y") == [.answer(Scene.lynx, accept: true)])
        #expect(!scene.text(Scene.puma).contains("wants to play"))
        #expect(scene.type(Scene.puma, "yn") == [])
        scene.seatRequests = []
        scene.show(Scene.puma, LobbyNews?.none)
        scene.seatRequests = [SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp")]
        scene.show(Scene.puma, .seatRequested(scene.seatRequests[0]))
        #expect(scene.text(Scene.puma).contains("Owl wants to play, over tcp"))
        #expect(scene.type(Scene.puma, "q") == [.leave])
    }

    @Test("Text typed after c is sent with Enter, and discarded with Esc")
    func chat() throws {
        var scene = try Scene.playing()
        #expect(scene.type(Scene.lynx, "cx? quite\u{7}") == [])
        #expect(scene.press(Scene.lynx, .key(.backspace)) == [])
        #expect(scene.press(Scene.lynx, .key(.enter)) == [.act(.say(Scene.words("x? quit")))])
        #expect(scene.type(Scene.lynx, "cno") == [])
        #expect(scene.press(Scene.lynx, .key(.escape)) == [])
        #expect(scene.press(Scene.lynx, .character("c")) == [])
        #expect(scene.press(Scene.lynx, .key(.enter)) == [])
        #expect(scene.press(Scene.lynx, .character("c")) == [])
        #expect(scene.press(Scene.lynx, .paste(String(repeating: "long ", count: 100))) == [])
        let requests = scene.press(Scene.lynx, .key(.enter))
        #expect(requests == [.act(.say(Scene.words(String(repeating: "long ", count: 40))))])
    }

    @Test("Nobody can write to a player who is gone")
    func chatEnds() throws {
        var scene = try Scene.playing()
        #expect(scene.type(Scene.puma, "chello") == [])
        scene.guestGoes()
        #expect(!scene.text(Scene.puma).contains("Say:"))
        #expect(scene.type(Scene.puma, "c") == [])
        #expect(!scene.text(Scene.puma).contains("Say:"))
    }

    @Test("A watcher takes the seat of a player that left with y, or declines it with n")
    func seatOffer() throws {
        var scene = try Scene.playing("dd", watched: true)
        #expect(scene.type(Scene.owl, "yn") == [])
        var view = scene.view(of: Scene.owl)
        var tableView = try #require(view.place.tableView)
        tableView.table.guest = nil
        tableView.isSeatOffered = true
        view.place = .visiting(tableView)
        scene.screens[Scene.owl]?.update(view, .table(.seatOffered), now: scene.now)
        #expect(scene.text(Scene.owl).contains("The seat is free. Do you want to play on?  y/n"))
        #expect(scene.text(Scene.owl).contains("y take the seat"))
        #expect(scene.text(Scene.owl).contains("free seat"))
        #expect(scene.type(Scene.owl, "y") == [.answerOffer(takesSeat: true)])
        #expect(scene.type(Scene.owl, "n") == [.answerOffer(takesSeat: false)])
        #expect(scene.type(Scene.owl, "q") == [.leave])
    }

    @Test("A host that others watch is told that somebody may take its seat")
    func leavingWatched() throws {
        var scene = try Scene.playing("d", watched: true)
        #expect(scene.type(Scene.puma, "q") == [])
        #expect(scene.text(Scene.puma).contains("Somebody who watches may take your seat."))
    }
}
