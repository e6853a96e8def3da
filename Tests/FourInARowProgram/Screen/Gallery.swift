import NighCore
import Terminal

@testable import FourInARow
@testable import fourinarow

/// A screen at one moment.
struct Picture {
    let name: String
    var screen: Screen
    var size = Scene.small
    var now = Scene.start

    var text: String { screen.canvas(size, now: now).text }
}

/// One screen of each kind. Each is compared with its snapshot, and the rules for all screens are tried on them.
enum Gallery {
    static func pictures() throws -> [Picture] { lobbies() + waiting() + (try tables()) + (try sizes()) }

    private static func lobbies() -> [Picture] {
        var empty = LobbyView(name: "Owl", id: Scene.owl)
        empty.brokenTransports = [
            "bluetooth": NighError(
                .starting, .unavailable("the adapter is powered off"), advice: "run `bluetoothctl power on`")
        ]
        var level = Scene.lobby()
        _ = level.type("b")
        var help = Scene.lobby()
        _ = help.type("?")
        var refused = Scene.lobby()
        let declined = NighError(.inviting, .declined("after lunch"), peer: "Lynx")
        let unreachable = NighError(
            .connecting, .unreachable, peer: "Puma",
            advice: "put both devices into the same network, or give each of them Bluetooth")
        for (name, error) in [("Lynx", declined), ("Puma", unreachable)] {
            refused.update(refused.view, .couldNotJoin(name: name, error), now: Scene.start)
        }
        return [
            Picture(
                name: "lobby-empty",
                screen: Screen(
                    empty, style: Scene.still, transports: ["tcp", "bluetooth"], now: Scene.start)),
            Picture(name: "lobby-tables", screen: Scene.lobby()),
            Picture(name: "lobby-joining", screen: Scene.lobby(at: .joining(name: "Puma", .seat))),
            Picture(name: "lobby-level", screen: level),
            Picture(name: "lobby-help", screen: help),
            Picture(name: "lobby-refused", screen: refused),
        ]
    }

    private static func waiting() -> [Picture] {
        var alone = Scene()
        alone.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.20:4000"),
            TransportAddress(scheme: "bluetooth", value: "00:1A:7D:DA:71:13/3"),
        ]
        alone.show(Scene.puma)
        var asked = Scene()
        asked.ask(
            SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp"),
            SeatRequest(id: Scene.lynx, name: "Lynx", transport: "bluetooth"))
        return [picture("waiting", alone, Scene.puma), picture("waiting-asked", asked, Scene.puma)]
    }

    private static func tables() throws -> [Picture] {
        var playing = try Scene.playing("dcde", watched: true)
        playing.link.roundTrip = .microseconds(1_234)
        for peer in [Scene.puma, Scene.lynx, Scene.owl] { playing.show(peer) }
        var pending = playing
        try pending.move("d")
        try pending.request(.move(.middle))
        var chat = try Scene.playing("d")
        try chat.act(.yellow, .say(Scene.words("good luck")))
        try chat.act(
            .red, .say(Scene.words("to you too: I have not played for years, so be a little patient")))
        _ = chat.type(Scene.lynx, "cdon't worry")
        var away = try Scene.playing("d")
        away.link.linkLostAt = away.now
        away.show(Scene.puma, .linkLost(away.person(Scene.lynx), waiting: .seconds(10)))
        away.now = away.now + .milliseconds(3_200)
        var leaving = try Scene.playing("d")
        _ = leaving.type(Scene.lynx, "q")
        let won = try Scene.playing(Scene.line, watched: true)
        let draw = try Scene.playing("fefagceffaebbaefgfdbbccgcggdgcadaddedbecba")
        return [
            picture("table-own-turn", playing, Scene.puma), picture("table-watched", playing, Scene.owl),
            picture("table-pending", pending, Scene.lynx), picture("table-chat", chat, Scene.lynx),
            picture("table-away", away, Scene.puma), picture("table-leaving", leaving, Scene.lynx),
            Picture(name: "table-offered", screen: try playing.offered(), now: playing.now),
            picture("end-won", won, Scene.puma), picture("end-draw", draw, Scene.lynx),
        ]
    }

    private static func sizes() throws -> [Picture] {
        let ascii = try Scene.playing(
            Scene.line, style: ScreenStyle(isUnicode: false, animates: false))
        let won = try Scene.playing(Scene.line)
        var playing = try Scene.playing("dcd")
        let medium = playing
        var narrow = playing
        _ = narrow.type(Scene.lynx, "c")
        playing.now = playing.now + .seconds(60)
        return [
            Picture(
                name: "size-lobby-29x12", screen: Scene.lobby(), size: TerminalSize(columns: 29, rows: 12)),
            picture("size-29x12", playing, Scene.lynx, 29, 12),
            picture("size-40x14", narrow, Scene.lynx, 40, 14),
            picture("size-60x20", medium, Scene.lynx, 60, 20),
            picture("size-124x44", won, Scene.lynx, 124, 44),
            picture("ascii", ascii, Scene.puma), picture("ascii-100x34", ascii, Scene.lynx, 100, 34),
        ]
    }

    private static func picture(
        _ name: String, _ scene: Scene, _ peer: PeerID, _ columns: Int = 80, _ rows: Int = 24
    ) -> Picture {
        guard let screen = scene.screens[peer] else { preconditionFailure("\(peer.short) has no screen") }
        return Picture(
            name: name, screen: screen, size: TerminalSize(columns: columns, rows: rows), now: scene.now)
    }
}
