import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

struct KeyTests {
    private static func move(_ index: Int) -> [UserRequest] {
        Column(index).map { [.act(.move($0))] } ?? []
    }

    // MARK: In the lobby

    @Test(
        arguments: [
            ("↵", [.join(Scene.lynx, .seat)]), ("↓↵", [.join(Scene.puma, .watch)]),
            ("⇲↵", [.join(Scene.peer(4), .seat)]), ("⇲↓↓↵", [.join(Scene.peer(4), .seat)]),
            ("⇲↑↑↑↵", [.join(Scene.lynx, .seat)]), ("w", [.join(Scene.lynx, .watch)]), ("h", [.host]),
            ("q", [.quit]), ("␃", [.quit]), ("␚", [.suspend]), ("␌yr⎋", []),
            ("b↵", [.playBot(level: 5)]), ("b8↵", [.playBot(level: 8)]), ("b0↵", [.playBot(level: 1)]),
            ("b⇲↑↵", [.playBot(level: 9)]), ("b⎋↵", [.join(Scene.lynx, .seat)]),
            // Any key closes the list of keys, and does nothing else.
            ("?q", []), ("?qq", [.quit]),
        ] as [(String, [UserRequest])])
    func `A key in the lobby joins, watches, hosts, plays the bot or quits`(
        _ keys: String, _ requests: [UserRequest]
    ) {
        var lobby = Scene.lobby()
        #expect(lobby.type(keys) == requests)
    }

    @Test func `Without a table no key joins one, and while joining only Esc, q and Ctrl-C have an effect`() {
        var empty = Scene.lobby([])
        #expect(empty.type("↓↵w") == [])
        var joining = Scene.lobby(at: .joining(name: "Puma", .seat))
        #expect(joining.type("↵hwb") == [])
        #expect(joining.type("⎋q␃") == [.leave, .leave, .quit])
    }

    @Test func `On a terminal that is too small, only quit and suspend have an effect`() {
        var lobby = Scene.lobby()
        #expect(lobby.type("↵hqb␃␚", TerminalSize(columns: 28, rows: 24)) == [.quit, .suspend])
    }

    @Test func `The same table stays chosen when other tables appear before it`() {
        var screen = Scene.lobby([Scene.tables[1]])
        screen.update(Scene.lobby().view, nil, now: Scene.start)
        #expect(screen.type("↵") == [.join(Scene.puma, .watch)])
    }

    @Test func `A click chooses a table, and a second click soon after joins it`() throws {
        var screen = Scene.lobby()
        let rows = screen.canvas(Scene.small, now: Scene.start).text
            .split(separator: "\n", omittingEmptySubsequences: false)
        let row = try #require(rows.firstIndex { $0.contains("being played") })
        let click = Input.mouse(MouseInput(.press(.left), at: CellPosition(column: 10, row: row)))
        let late = Scene.start + .seconds(2)
        for (moment, requests) in [
            (Scene.start, []), (late, []), (late + .milliseconds(200), [.join(Scene.puma, .watch)]),
        ] as [(Moment, [UserRequest])] {
            #expect(screen.handle(click, size: Scene.small, now: moment) == requests)
        }
    }

    @Test func `The list of keys stays while the mouse moves or the focus changes, until a key is pressed`() {
        var screen = Scene.lobby()
        let before = screen.canvas(Scene.small, now: Scene.start)
        #expect(screen.type("?") == [])
        let move = MouseInput(.move(nil), at: CellPosition(column: 3, row: 3))
        for input in [Input.focus(false), .mouse(move)] {
            #expect(screen.handle(input, size: Scene.small, now: Scene.start) == [])
        }
        #expect(screen.canvas(Scene.small, now: Scene.start).text.contains("Ctrl-L  redraw"))
        #expect(screen.type("q") == [])
        #expect(screen.canvas(Scene.small, now: Scene.start) == before)
    }

    // MARK: Moves

    private static let drops: [(String, Int?)] = [
        ("↵", 3), ("←↵", 2), ("→↵", 4), ("⇱↵", 0), ("⇱←↵", 0), ("⇲↵", 6), ("⇲→↵", 6), ("⇲08Hh↵", 6),
        (" ", 3), ("↓", 3),
        // The second press of a column's key drops a disc there, and nothing may come between the two.
        ("44", 3), ("aa", 0), ("CC", 2), ("4", nil), ("454", nil), ("4xn4", nil), ("4←→4", nil),
    ]

    private static let columnKeys = ["1234567", "ABCDEFG", "abCdefg"].flatMap { keys in
        keys.enumerated().map { index, key in ("\(key)↵", Optional(index)) }
    }

    @Test(arguments: drops + columnKeys)
    func `A disc drops at the cursor, or into the column whose key is pressed twice`(
        _ keys: String, _ column: Int?
    ) throws {
        var scene = try Scene.playing()
        #expect(scene.type(Scene.puma, keys) == column.map(Self.move) ?? [])
    }

    @Test(arguments: [Scene.small, TerminalSize(columns: 133, rows: 50)])
    func `The mouse moves the cursor, and its left button drops`(_ size: TerminalSize) throws {
        var scene = try Scene.playing()
        let board = try #require(Layout(size)).board
        let row = board.grid.origin.row + 5
        func mouse(_ action: MouseInput.Action, _ column: Int) -> [UserRequest] {
            let place = CellPosition(column: column, row: row)
            return scene.press(Scene.puma, .mouse(MouseInput(action, at: place)), size)
        }
        for column in Column.allCases {
            let middle = board.middle(column)
            #expect(mouse(.move(nil), middle) == [])
            #expect(scene.type(Scene.puma, "↵", size) == [.act(.move(column))])
            #expect(mouse(.press(.left), middle) == [.act(.move(column))])
            #expect(mouse(.press(.right), middle) == [] && mouse(.release(.left), middle) == [])
        }
        #expect(mouse(.press(.left), board.grid.columns.upperBound + 1) == [])
        // The mouse comes between two presses of a column's key, too.
        #expect(scene.type(Scene.puma, "4", size) == [])
        #expect(mouse(.move(nil), board.middle(try #require(Column(0)))) == [])
        #expect(scene.type(Scene.puma, "4", size) == [])
    }

    @Test func `A request that the table would refuse is not made, and the screen shows why`() throws {
        for (moves, peer, keys, reason) in [
            ("", Scene.lynx, "44", "it's not your turn"), ("dddddd", Scene.puma, "↵", "that column is full"),
            ("d", Scene.puma, "r", "the game is not over yet"),
            (Scene.line, Scene.puma, "↵", "the game is over"),
            (Scene.line, Scene.puma, "x", "the game is over"),
            ("d", Scene.owl, "↵←↓3xyrch y", "you only watch here"),
        ] {
            var scene = try Scene.playing(moves, watched: true)
            #expect(scene.type(peer, keys) == [])
            let text = scene.text(peer)
            #expect(text.contains(reason) && !text.contains("y/n"), "\(text)")
        }
        var scene = try Scene.playing("d")
        try scene.request(.move(try #require(Column(0))))
        #expect(scene.type(Scene.lynx, "b↵") == [])
        #expect(scene.text(Scene.lynx).contains("your last action is still on its way"))
    }

    // MARK: Questions

    @Test(arguments: [("x", UserRequest.act(.resign)), ("q", .leave)])
    func `In a game, resigning and leaving need a confirmation`(_ key: String, _ request: UserRequest) throws
    {
        var scene = try Scene.playing("d")
        for no in ["n", "⎋"] {
            #expect(scene.type(Scene.lynx, key) == [])
            #expect(scene.text(Scene.lynx).contains("y/n"))
            #expect(scene.type(Scene.lynx, no) == [])
            #expect(!scene.text(Scene.lynx).contains("y/n"))
        }
        #expect(scene.type(Scene.lynx, "\(key)↵←y") == [request])
        // The question goes away with the game.
        #expect(scene.type(Scene.lynx, key) == [])
        try scene.act(.red, .resign)
        #expect(!scene.text(Scene.lynx).contains("y/n"))
        #expect(scene.type(Scene.lynx, "y") == [])
    }

    @Test func `After the end r begins another game, and q leaves without a confirmation`() throws {
        var over = try Scene.playing(Scene.line)
        #expect(over.type(Scene.lynx, "r") == [.act(.rematch)])
        #expect(over.type(Scene.puma, "q") == [.leave])
        var watched = try Scene.playing("d", watched: true)
        #expect(watched.type(Scene.owl, "q") == [.leave])
        // A host that others watch learns what happens to its seat.
        #expect(watched.type(Scene.puma, "q") == [])
        #expect(watched.text(Scene.puma).contains("Somebody who watches may take your seat."))
    }

    @Test func `Players who want to play are accepted or declined, one after the other`() {
        var scene = Scene()
        let owl = SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp")
        scene.ask(owl, SeatRequest(id: Scene.lynx, name: "Lynx", transport: "bluetooth"))
        #expect(scene.type(Scene.puma, "↵") == [])
        #expect(scene.text(Scene.puma).contains("one more waits"))
        #expect(scene.type(Scene.puma, "n") == [.answer(Scene.owl, accept: false)])
        #expect(!scene.text(Scene.puma).contains("more wait"))
        #expect(scene.text(Scene.puma).contains("Lynx wants to play, over bluetooth"))
        #expect(scene.type(Scene.puma, "Y") == [.answer(Scene.lynx, accept: true)])
        #expect(!scene.text(Scene.puma).contains("wants to play"))
        #expect(scene.type(Scene.puma, "yn") == [])
        // Somebody who was answered may ask again.
        scene.seatRequests = []
        scene.show(Scene.puma)
        scene.ask(owl)
        #expect(scene.text(Scene.puma).contains("Owl wants to play, over tcp"))
        #expect(scene.type(Scene.puma, "q") == [.leave])
    }

    @Test func `A watcher takes the seat of a player that left with y, or declines it with n`() throws {
        var scene = try Scene.playing("dd", watched: true)
        #expect(scene.type(Scene.owl, "yn") == [])
        var screen = try scene.offered()
        let expected: [UserRequest] = [.answerOffer(takesSeat: true), .answerOffer(takesSeat: false), .leave]
        #expect(screen.type("ynq") == expected)
    }

    // MARK: Words

    @Test func `Text typed after c is sent with Enter, and discarded with Esc`() throws {
        var scene = try Scene.playing()
        let words = UserRequest.act(.say(Scene.words("x? quit")))
        #expect(scene.type(Scene.lynx, "cx? quite\u{7}⌫↵") == [words])
        #expect(scene.type(Scene.lynx, "cno⎋c↵c") == [])
        #expect(scene.press(Scene.lynx, .paste(String(repeating: "long ", count: 100))) == [])
        let longest = UserRequest.act(.say(Scene.words(String(repeating: "long ", count: 40))))
        #expect(scene.type(Scene.lynx, "↵") == [longest])
    }

    @Test func `Nobody can write to a player who is gone`() throws {
        var scene = try Scene.playing()
        #expect(scene.type(Scene.puma, "chello") == [])
        scene.guestGoes()
        #expect(!scene.text(Scene.puma).contains("Say:"))
        #expect(scene.type(Scene.puma, "c") == [])
        #expect(!scene.text(Scene.puma).contains("Say:"))
    }
}
