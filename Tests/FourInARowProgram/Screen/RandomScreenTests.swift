import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

struct RandomScreenTests {
    private static let typed = "123456789abcdegmnpqrwxyABG? hé漢".unicodeScalars.map(Input.character)
    private static let keys: [Input.Key] = [
        .enter, .escape, .tab, .backTab, .backspace, .delete, .insert, .up, .down, .left, .right, .home,
        .end, .pageUp, .pageDown, .function(1), .function(12),
    ]
    private static let mouseActions: [MouseInput.Action] = [
        .press(.left), .press(.right), .release(.left), .move(nil), .move(.left), .wheelUp, .wheelDown,
    ]
    private static let answers: [Input] = [.key(.enter), .key(.escape), .character("y")]
    private static let others: [Input] = [
        .paste("some\u{1B}[2J words\nand more"), .focus(true), .control("l"), .control("u"), .alternate("x"),
    ]

    private static func size(_ random: inout SeededGenerator) -> TerminalSize {
        guard random.oneIn(3) else { return Scene.small }
        return TerminalSize(
            columns: .random(in: 0...130, using: &random), rows: .random(in: 0...45, using: &random))
    }

    private static func input(_ random: inout SeededGenerator) throws -> Input {
        let inputs: [Input]
        switch Int.random(in: 0..<12, using: &random) {
        case 0...3: inputs = typed
        case 4, 5: inputs = keys.map(Input.key)
        case 6:
            let place = CellPosition(
                column: .random(in: -2...140, using: &random), row: .random(in: -2...50, using: &random))
            inputs = mouseActions.map { .mouse(MouseInput($0, at: place)) }
        case 7...10: inputs = answers
        default: inputs = others
        }
        return try #require(inputs.randomElement(using: &random))
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `Random keys at random sizes never trap, and request nothing that the table refuses`(
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var scene = Scene(style: ScreenStyle(isUnicode: random.oneIn(2), animates: random.oneIn(2)))
        scene.watch()
        var moves = 0
        for step in 0..<400 {
            let peer = [Scene.puma, Scene.lynx, Scene.owl].randomElement(using: &random) ?? Scene.puma
            let size = Self.size(&random)
            for request in scene.press(peer, try Self.input(&random), size) {
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
                scene.ask(SeatRequest(id: Scene.lynx, name: "Lynx", transport: "tcp"))
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

    private let evil = "\u{1B}]0;x\u{7}\u{9B}2J\u{202E}evil\u{2066}\r\n\u{0}👩‍👩‍👧‍👦é\u{300}\u{301}\u{302}\u{303}漢"

    @Test func `A stranger's name has no effect on a screen, wherever it is shown`() {
        var view = LobbyView(name: evil, id: Scene.owl)
        view.tables = [
            TableListing(
                id: Scene.puma, name: evil, hasFreeSeat: true, transports: [evil], quality: .nan)
        ]
        view.brokenTransports = [evil: NighError(.starting, .unavailable(evil))]
        view.addresses = [TransportAddress(scheme: evil, value: evil)]
        view.seatRequests = [SeatRequest(id: Scene.lynx, name: evil, transport: evil)]
        let person = Person(id: Scene.puma, name: evil, transport: evil)
        let tableView = TableView(table: Table(), ownDisc: .red, guest: person)
        for place in [Place.lobby, .joining(name: evil, .seat), .hosting(tableView), .visiting(tableView)] {
            view.place = place
            var screen = Screen(
                view, style: ScreenStyle(isUnicode: true, animates: true), transports: [evil],
                now: Scene.start)
            screen.update(view, .linkRestored(person), now: Scene.start)
            screen.addNotice(evil, now: Scene.start)
            let text = screen.canvas(Scene.small, now: Scene.start).text
            #expect(text.contains("evil") && text.isHarmless)
        }
    }

    @Test func `A stranger's words have no effect on a screen`() throws {
        var scene = try Scene.playing()
        let words = try #require(SafeText(fitting: evil + String(repeating: "👩‍👩‍👧‍👦 ", count: 20)))
        try scene.act(.yellow, .say(words))
        #expect(scene.text(Scene.puma).contains("evil") && scene.text(Scene.puma).isHarmless)
    }
}

extension String {
    /// Whether the text has no characters that control a terminal or change the direction of reading.
    var isHarmless: Bool {
        unicodeScalars.allSatisfy {
            $0 == "\n" || ![.control, .format, .lineSeparator].contains($0.properties.generalCategory)
        }
    }
}
