import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Keys in the lobby")
struct LobbyKeysTests {
    private func press(_ screen: inout Screen, _ inputs: Input...) -> [UserRequest] {
        inputs.flatMap { screen.handle($0, size: Scene.small, now: LobbyScenes.now) }
    }

    @Test("Enter joins the chosen table, or watches if its seat is taken")
    func enter() {
        var screen = LobbyScenes.three
        #expect(press(&screen, .key(.enter)) == [.join(Scene.lynx, .seat)])
        #expect(press(&screen, .key(.down), .key(.enter)) == [.join(Scene.puma, .watch)])
        #expect(press(&screen, .key(.end), .key(.enter)) == [.join(Scene.peer(4), .seat)])
        #expect(press(&screen, .key(.down), .key(.down), .key(.enter)) == [.join(Scene.peer(4), .seat)])
        #expect(press(&screen, .key(.up), .key(.up), .key(.up), .key(.enter)) == [.join(Scene.lynx, .seat)])
    }

    @Test("w watches even if the seat is free, h hosts, q and Ctrl-C quit, Ctrl-Z suspends")
    func letters() {
        var screen = LobbyScenes.three
        #expect(press(&screen, .character("w")) == [.join(Scene.lynx, .watch)])
        #expect(press(&screen, .character("h")) == [.host])
        #expect(press(&screen, .character("q")) == [.quit])
        #expect(press(&screen, .control("c")) == [.quit])
        #expect(press(&screen, .control("z")) == [.suspend])
        #expect(press(&screen, .control("l"), .character("y"), .character("r"), .key(.escape)) == [])
    }

    @Test("Without a table, no key joins one")
    func nobody() {
        var screen = LobbyScenes.empty
        #expect(press(&screen, .key(.down), .key(.enter), .character("w")) == [])
    }

    @Test("The bot plays at the chosen level, 5 if none is chosen, and not at all after Esc")
    func bot() {
        var screen = LobbyScenes.three
        #expect(press(&screen, .character("b"), .key(.enter)) == [.playBot(level: 5)])
        #expect(press(&screen, .character("b"), .character("8"), .key(.enter)) == [.playBot(level: 8)])
        #expect(press(&screen, .character("b"), .character("0"), .key(.enter)) == [.playBot(level: 1)])
        #expect(
            press(&screen, .character("b"), .key(.end), .key(.up), .key(.enter)) == [.playBot(level: 9)])
        #expect(press(&screen, .character("b"), .key(.escape)) == [])
        #expect(press(&screen, .key(.enter)) == [.join(Scene.lynx, .seat)])
    }

    @Test("While joining a table, Esc and q cancel, and other keys have no effect")
    func joining() {
        var screen = LobbyScenes.joining
        #expect(press(&screen, .key(.enter), .character("h"), .character("w"), .character("b")) == [])
        #expect(press(&screen, .key(.escape)) == [.leave])
        #expect(press(&screen, .character("q")) == [.leave])
        #expect(press(&screen, .control("c")) == [.quit])
    }

    @Test("The same table stays chosen when other tables appear before it")
    func staysChosen() {
        var screen = LobbyScenes.screen([LobbyScenes.tables[1]])
        #expect(press(&screen, .key(.enter)) == [.join(Scene.puma, .watch)])
        screen.update(
            LobbyView(name: "Owl", id: Scene.owl, tables: LobbyScenes.tables), nil, now: LobbyScenes.now)
        #expect(press(&screen, .key(.enter)) == [.join(Scene.puma, .watch)])
    }

    @Test("A click chooses a table, and a second click soon after joins it")
    func clicks() {
        var screen = LobbyScenes.three
        let text = screen.canvas(Scene.small, now: LobbyScenes.now).text
        let row = text.split(separator: "\n", omittingEmptySubsequences: false)
            .firstIndex { $0.contains("being played") }
        let click = Input.mouse(MouseInput(.press(.left), at: CellPosition(column: 10, row: row ?? 0)))
        #expect(press(&screen, click) == [])
        let late = LobbyScenes.now + .seconds(2)
        #expect(screen.handle(click, size: Scene.small, now: late) == [])
        #expect(
            screen.handle(click, size: Scene.small, now: late + .milliseconds(200))
                == [.join(Scene.puma, .watch)])
    }

    @Test("With more tables than rows, the rows around the chosen table are shown")
    func manyTables() {
        let tables = (1...60).map {
            TableListing(
                id: Scene.peer(UInt8($0)), name: "Table \($0)", hasFreeSeat: true, transports: ["tcp"],
                quality: nil)
        }
        var screen = LobbyScenes.screen(tables)
        #expect(press(&screen, .key(.end), .key(.up), .key(.enter)) == [.join(Scene.peer(59), .seat)])
        let text = screen.canvas(Scene.small, now: LobbyScenes.now).text
        #expect(text.contains("▸ Table 59 "))
        #expect(text.contains("Table 60 "))
        #expect(!text.contains("Table 1 "))
        #expect(text.contains("59 of 60"))
    }

    @Test("The list of keys stays until a key is pressed, which does nothing else")
    func help() {
        var screen = LobbyScenes.three
        let before = screen.canvas(Scene.small, now: LobbyScenes.now)
        let move = MouseInput(.move(nil), at: CellPosition(column: 3, row: 3))
        #expect(press(&screen, .character("?"), .focus(false), .mouse(move)) == [])
        #expect(screen.canvas(Scene.small, now: LobbyScenes.now).text.contains("Ctrl-L  redraw"))
        #expect(press(&screen, .character("q")) == [])
        #expect(screen.canvas(Scene.small, now: LobbyScenes.now) == before)
    }

    @Test("On a terminal that is too small, only quit and suspend have an effect")
    func tooSmall() {
        var screen = LobbyScenes.three
        let size = TerminalSize(columns: 28, rows: 24)
        for input in [Input.key(.enter), .character("h"), .character("q"), .character("b")] {
            #expect(screen.handle(input, size: size, now: LobbyScenes.now) == [])
        }
        #expect(screen.handle(.control("c"), size: size, now: LobbyScenes.now) == [.quit])
        #expect(screen.handle(.control("z"), size: size, now: LobbyScenes.now) == [.suspend])
    }
}
