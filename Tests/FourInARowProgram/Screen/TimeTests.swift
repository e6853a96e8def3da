import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

/// Tests the changes of a screen that come with time alone.
struct TimeTests {
    private let animated = ScreenStyle(isUnicode: true, animates: true)

    /// A game, some time after everything that was said about it has disappeared.
    private func quiet(_ letters: String = "", style: ScreenStyle = Scene.still) throws -> Scene {
        var scene = try Scene.playing(letters, style: style)
        scene.now = scene.now + .seconds(100)
        return scene
    }

    /// The moments at which the screen announces a change, with what it shows then. It must not change before those
    /// moments.
    private func frames(_ scene: Scene, _ peer: PeerID) throws -> [(Moment, String)] {
        var scene = scene
        var frames: [(Moment, String)] = []
        let screen = try #require(scene.screens[peer])
        while let next = screen.nextChange(after: scene.now), frames.count < 100 {
            #expect(next > scene.now)
            let before = screen.canvas(Scene.small, now: scene.now)
            #expect(screen.canvas(Scene.small, now: next + .init(nanoseconds: -1)) == before)
            #expect(screen.canvas(Scene.small, now: next) != before)
            scene.now = next
            frames.append((next, scene.text(peer)))
        }
        return frames
    }

    @Test func `A disc falls through its column in a quarter of a second, with acceleration`() throws {
        var scene = try quiet(style: animated)
        let start = scene.now
        try scene.move("a")
        let grid = try #require(Layout(Scene.small)).board.grid
        func row(_ text: String) -> Int? {
            let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
            return rows[grid.rows].firstIndex { $0.dropFirst(2).prefix(4).contains("●") }
        }
        let frames = try frames(scene, Scene.lynx)
        let rows = [row(scene.text(Scene.lynx))] + frames.map { row($0.1) }
        #expect(rows == (0..<6).map { grid.origin.row + 1 + 2 * $0 })
        let moments = [start] + frames.map(\.0)
        let steps = zip(moments.dropFirst(), moments).map { $0 - $1 }
        #expect(steps == steps.sorted(by: >))
        #expect(steps[0].nanoseconds > 2 * steps[1].nanoseconds)
        #expect(moments.last == start + .milliseconds(250))
    }

    @Test func `A winning line is marked once the disc has landed, not before`() throws {
        var scene = try quiet("dcdcdc", style: animated)
        try scene.move("d")
        #expect(!scene.text(Scene.lynx).contains("[●]"))
        scene.now = scene.now + .milliseconds(250)
        #expect(scene.text(Scene.lynx).contains("[●]"))
    }

    @Test func `Without animation a disc lands at once, and nothing changes by itself`() throws {
        var scene = try quiet()
        try scene.move("a")
        #expect(scene.text(Scene.lynx).contains("│(●)│"))
        #expect(try frames(scene, Scene.lynx).isEmpty)
    }

    @Test func `The seconds are counted down to the last, and stop when the player is back`() throws {
        var scene = try quiet()
        scene.link.linkLostAt = scene.now
        scene.show(Scene.lynx, .linkLost(scene.person(Scene.puma), waiting: .seconds(3)))
        scene.now = scene.now + .milliseconds(300)
        let texts = [scene.text(Scene.lynx)] + (try frames(scene, Scene.lynx)).map(\.1)
        let expected = ["waiting 3 s", "waiting 2 s", "waiting 1 s", "waiting for them"]
        #expect(texts.count == expected.count)
        for (text, part) in zip(texts, expected) { #expect(text.contains("No connection to Puma: \(part)")) }
        scene.link.linkLostAt = nil
        scene.show(Scene.lynx, .linkRestored(scene.person(Scene.puma)))
        #expect(!scene.text(Scene.lynx).contains("waiting"))
        #expect(scene.text(Scene.lynx).contains("Puma is back"))
    }

    @Test func `Notices disappear one after the other, long ones later, and none is shown twice`() throws {
        var scene = try quiet()
        let long = "a sentence that takes longer to be read than the one that comes after it"
        for notice in [long, "a short one", "a short one", "a short one"] {
            scene.screens[Scene.puma]?.addNotice(notice, now: scene.now)
        }
        #expect(scene.text(Scene.puma).ranges(of: "a short one").count == 1)
        let frames = try frames(scene, Scene.puma).map(\.1)
        #expect(frames.map { $0.contains(long) } == [true, false])
        #expect(frames.first?.contains("a short one") == false)
    }

    @Test func `Words said at one table are not shown at the next`() throws {
        var scene = try Scene.playing("d")
        try scene.act(.yellow, .say(Scene.words("hello there")))
        #expect(scene.text(Scene.puma).contains("Lynx: hello there"))
        let lobby = LobbyView(name: "Puma", id: Scene.puma)
        scene.screens[Scene.puma]?.update(lobby, nil, now: scene.now)
        scene.show(Scene.puma)
        #expect(!scene.text(Scene.puma).contains("hello"))
        #expect(!scene.text(Scene.puma).contains("game 1 begins"))
    }
}
