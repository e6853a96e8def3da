import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("What changes on a screen by itself")
struct TimeTests {
    private let animated = ScreenStyle(isUnicode: true, animates: true)

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

    @Test("A disc falls through its column in a quarter of a second, with acceleration")
    func falling() throws {
        var scene = Scene(style: animated)
        scene.seat()
        scene.now = scene.now + .seconds(100)
        let start = scene.now
        try scene.move("a")
        let lines = try #require(Layout(Scene.small)).board
        func row(_ text: String) -> Int? {
            let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
            return rows[lines.grid.rows].firstIndex { $0.dropFirst(2).prefix(4).contains("●") }
        }
        let rows = [row(scene.text(Scene.lynx))] + (try frames(scene, Scene.lynx)).map { row($0.1) }
        #expect(rows == (0..<6).map { lines.grid.origin.row + 1 + 2 * $0 })
        let moments = [start] + (try frames(scene, Scene.lynx)).map(\.0)
        let steps = zip(moments.dropFirst(), moments).map { $0 - $1 }
        #expect(steps == steps.sorted(by: >))
        #expect(steps[0].nanoseconds > 2 * steps[1].nanoseconds)
        #expect(moments.last == start + .milliseconds(250))
    }

    @Test("A winning line is marked once the disc has landed, not before")
    func marks() throws {
        var scene = try Scene.playing("dcdcdc", style: animated)
        scene.now = scene.now + .seconds(100)
        try scene.move("d")
        #expect(!scene.text(Scene.lynx).contains("[●]"))
        scene.now = scene.now + .milliseconds(250)
        #expect(scene.text(Scene.lynx).contains("[●]"))
    }

    @Test("Without animation a disc lands at once, and nothing changes by itself")
    func still() throws {
        var scene = try Scene.playing()
        scene.now = scene.now + .seconds(100)
        try scene.move("a")
        #expect(scene.text(Scene.lynx).contains("│(●)│"))
        #expect(try frames(scene, Scene.lynx).isEmpty)
    }

    @Test("The seconds are counted down to the last, and stop when the player is back")
    func countDown() throws {
        var scene = try Scene.playing()
        scene.now = scene.now + .seconds(100)
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

    @Test("Notices disappear one after the other, long ones later, and none is shown twice")
    func notices() throws {
        var scene = try Scene.playing()
        scene.now = scene.now + .seconds(100)
        let long = "a sentence that takes longer to be read than the one that comes after it"
        scene.screens[Scene.puma]?.addNotice(long, now: scene.now)
        for _ in 0..<3 { scene.screens[Scene.puma]?.addNotice("a short one", now: scene.now) }
        #expect(scene.text(Scene.puma).components(of: "a short one") == 1)
        let frames = try frames(scene, Scene.puma)
        #expect(frames.count == 2)
        #expect(frames.first?.1.contains(long) == true)
        #expect(frames.first?.1.contains("a short one") == false)
        #expect(frames.last?.1.contains(long) == false)
    }

    @Test("Words said at one table are not shown at the next")
    func forgets() throws {
        var scene = try Scene.playing("d")
        try scene.act(.yellow, .say(Scene.words("hello there")))
        #expect(scene.text(Scene.puma).contains("Lynx: hello there"))
        let lobby = LobbyView(name: "Puma", id: Scene.puma)
        scene.screens[Scene.puma]?.update(lobby, nil, now: scene.now)
        scene.show(Scene.puma, LobbyNews?.none)
        #expect(!scene.text(Scene.puma).contains("hello"))
        #expect(!scene.text(Scene.puma).contains("game 1 begins"))
    }
}

extension String {
    /// The number of occurrences of `part`.
    fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}
