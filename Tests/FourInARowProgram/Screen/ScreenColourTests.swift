import NighCore
import Testing

@testable import FourInARow
@testable import Terminal
@testable import fourinarow

struct ScreenColourTests {
    /// The style of a cell on a player's screen.
    private func style(_ column: Int, _ row: Int, _ peer: PeerID, _ scene: Scene) -> Style? {
        let canvas = scene.screens[peer]?.canvas(Scene.small, now: scene.now)
        return canvas.map { Array($0.row(row))[column].style }
    }

    @Test func `The number of the chosen column is bold, the others are dim`() throws {
        var scene = try Scene.playing()
        let board = try #require(Layout(Scene.small)).board
        for chosen in Column.allCases {
            #expect(scene.type(Scene.puma, String(chosen.index + 1)) == [])
            for column in Column.allCases {
                #expect(
                    style(board.middle(column), board.labelRow, Scene.puma, scene)
                        == (column == chosen ? .bold : .dim))
            }
        }
    }

    @Test func `Discs are red and yellow; an unconfirmed disc is dim, and so are old words`() throws {
        var scene = try Scene.playing("dcd")
        try scene.request(.move(try #require(Column(0))))
        let layout = try #require(Layout(Scene.small))
        func disc(_ column: Int, _ row: Int) throws -> Style? {
            let area = layout.board.area(try #require(Column(column)), row)
            return style(area.origin.column + 1, area.origin.row, Scene.lynx, scene)
        }
        #expect(try disc(3, 0)?.foreground == .brightRed)
        #expect(try disc(3, 0)?.accents == .bold)
        #expect(try disc(2, 0)?.foreground == .brightYellow)
        #expect(try disc(0, 0)?.foreground == .brightYellow)
        #expect(try disc(0, 0)?.accents == .dim)
        let now = scene.now
        scene.screens[Scene.lynx]?.addNotice("the newest", now: now)
        let first = layout.headlineRow + 1
        let accents = (first..<first + 3).map { style(layout.left, $0, Scene.lynx, scene)?.accents }
        #expect(accents == [.dim, .dim, []])
    }
}
