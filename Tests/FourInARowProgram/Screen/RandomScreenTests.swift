import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens under random input")
struct RandomScreenTests {
    private static func size(_ random: inout SeededGenerator) -> TerminalSize {
        random.oneIn(3)
            ? TerminalSize(
                columns: .random(in: 0...130, using: &random), rows: .random(in: 0...45, using: &random))
            : Scene.small
    }

    private static func input(_ random: inout SeededGenerator) -> Input {
        let keys: [Input.Key] = [
            .enter, .escape, .tab, .backTab, .backspace, .delete, .insert, .up, .down, .left, .right, .home,
            .end, .pageUp, .pageDown, .function(1), .function(12),
        ]
        let actions: [MouseInput.Action] = [
            .press(.left), .press(.right), .release(.left), .move(nil), .move(.left), .wheelUp, .wheelDown,
        ]
        switch Int.random(in: 0..<12, using: &random) {
        case 0...3:
            let scalars = Array("123456789abcdegmnpqrwxyABG? hé漢".unicodeScalars)
            return .character(scalars.randomElement(using: &random) ?? "y")
        case 4, 5: return .key(keys.randomElement(using: &random) ?? .enter)
        case 6:
            let place = CellPosition(
                column: .random(in: -2...140, using: &random), row: .random(in: -2...50, using: &random))
            return .mouse(MouseInput(actions.randomElement(using: &random) ?? .wheelUp, at: place))
        case 7...10:
            return [.key(.enter), .key(.escape), .character("y")].randomElement(using: &random)
                ?? .key(.enter)
        default:
            return [
                .paste("some\u{1B}[2J words\nand more"), .focus(true), .control("l"), .control("u"),
                .alternate("x"),
            ].randomElement(using: &random) ?? .focus(false)
        }
    }

    @Test(
        "Random keys at random sizes never trap, and request nothing that the table refuses", arguments: 0..<8
    )
    func inputs(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var scene = Scene(style: ScreenStyle(isUnicode: random.oneIn(2), animates: random.oneIn(2)))
        scene.watch()
        var moves = 0
        for step in 0..<400 {
            let peer = [Scene.puma, Scene.lynx, Scene.owl].randomElement(using: &random) ?? Scene.puma
            let size = Self.size(&random)
            for request in scene.press(peer, Self.input(&random), size) {
                switch request {
                case .act(let action):
                    #expect(peer != Scene.owl)
                    if case .move = action { moves += 1 }
                    if peer == Scene.puma { try scene.act(.red, action) } else { try scene.request(action) }
                case .answer(let other, _):
                    #expect(peer == Scene.puma && other == Scene.lynx)
                    scene.seatRequests = []
                    scene.reseat()
                case .answerOffer: Issue.record("no seat was offered")
                case .leave, .quit: break
                case .host, .join, .playBot, .newCode, .suspend: #expect(scene.view(of: peer).place == .lobby)
                }
            }
            if random.oneIn(3) { scene.deliver() }
            if random.oneIn(20) { scene.takeCode() }
            if scene.host.hasFreeSeat, scene.seatRequests.isEmpty {
                scene.seatRequests = [SeatRequest(id: Scene.lynx, name: "Lynx", transport: "tcp")]
                scene.show(Scene.puma, .seatRequested(scene.seatRequests[0]))
            } else if !scene.host.hasFreeSeat, random.oneIn(200) {
                scene.guestGoes()
            }
            scene.now = scene.now + .milliseconds(.random(in: 0...900, using: &random))
            if step % 8 == 0 {
                let canvas = scene.screens[peer]?.canvas(size, now: scene.now)
                #expect(canvas?.size == size)
                let next = scene.screens[peer]?.nextChange(after: scene.now)
                #expect(next.map { $0 > scene.now } ?? true)
            }
        }
        #expect(moves > 0)
    }

    /// Returns whether a text has no characters that control a terminal or change the direction of reading.
    private func isHarmless(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy {
            $0 == "\n" || ![.control, .format, .lineSeparator].contains($0.properties.generalCategory)
        }
    }

    private let evil = "\u{1B}]0;x\u{7}\u{9B}2J\u{202E}evil\u{2066}\r\n\u{0}👩‍👩‍👧‍👦é\u{300}\u{301}\u{302}\u{303}漢"

    @Test("A stranger's name has no effect on a screen, wherever it is shown")
    func names() {
        var view = LobbyView(name: evil, id: Scene.owl)
        view.tables = [
            TableListing(
                id: Scene.puma, name: evil, hasFreeSeat: true, transports: [evil], quality: .nan)
        ]
        view.brokenTransports = [evil: NighError(.starting, .unavailable(evil))]
        view.addresses = [TransportAddress(scheme: evil, value: evil)]
        view.seatRequests = [SeatRequest(id: Scene.lynx, name: evil, transport: evil)]
        let person = Person(id: Scene.puma, name: evil, transport: evil)
        let tableView = TableView(table: Table(), ownDisc: .red, host: nil, guest: person, pending: nil)
        for place in [Place.lobby, .joining(name: evil, .seat), .hosting(tableView), .visiting(tableView)] {
            view.place = place
            var screen = Screen(
                view, style: ScreenStyle(isUnicode: true, animates: true), transports: [evil],
                now: LobbyScenes.now)
            screen.update(view, .linkRestored(person), now: LobbyScenes.now)
            screen.addNotice(evil, now: LobbyScenes.now)
            let text = screen.canvas(Scene.small, now: LobbyScenes.now).text
            #expect(text.contains("evil"))
            #expect(isHarmless(text))
        }
    }

    @Test("A stranger's words have no effect on a screen")
    func words() throws {
        var scene = try Scene.playing()
        let words = try #require(Words(fitting: evil + String(repeating: "👩‍👩‍👧‍👦 ", count: 20)))
        try scene.act(.yellow, .say(words))
        #expect(scene.text(Scene.puma).contains("evil"))
        #expect(isHarmless(scene.text(Scene.puma)))
    }

    @Test("The longest possible name hides nothing that matters")
    func longNames() {
        let name = String(repeating: "long name ", count: 6)
        var view = LobbyView(name: name, id: Scene.puma)
        let person = Person(
            id: Scene.lynx, name: name, transport: nil, linkLostAt: LobbyScenes.now, roundTrip: nil)
        view.seatRequests = [SeatRequest(id: Scene.owl, name: name, transport: "bluetooth")]
        view.place = .hosting(
            TableView(table: Table(), ownDisc: .red, host: nil, guest: person, pending: nil))
        let screen = Screen(view, style: LobbyScenes.unicode, now: LobbyScenes.now)
        let text = screen.canvas(Scene.small, now: LobbyScenes.now).text
        for part in ["(you)", "wants to", "over bluetooth", "y/n", "come back"] {
            #expect(text.contains(part))
        }
    }
}
