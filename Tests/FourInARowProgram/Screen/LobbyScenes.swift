import NighCore
import Terminal

@testable import FourInARow
@testable import fourinarow

/// Lobbies as Owl sees them, for several tests.
enum LobbyScenes {
    static let now = Moment(nanoseconds: 5_000_000_000)
    static let unicode = ScreenStyle(isUnicode: true, animates: false)

    static let tables = [
        TableListing(
            id: Scene.lynx, name: "Lynx", hasFreeSeat: true, transports: ["bluetooth"], quality: 0.6),
        TableListing(
            id: Scene.puma, name: "Puma", hasFreeSeat: false, transports: ["tcp", "bluetooth"], quality: nil),
        TableListing(
            id: Scene.peer(4), name: "Wren with a name that is longer than what there is room for",
            hasFreeSeat: true, transports: ["tcp"], quality: nil),
    ]

    static var empty: Screen {
        var view = LobbyView(name: "Owl", id: Scene.owl)
        view.brokenTransports = [
            "bluetooth": NighError(
                .starting, .unavailable("the adapter is powered off"), advice: "run `bluetoothctl power on`")
        ]
        return Screen(view, style: unicode, transports: ["tcp", "bluetooth"], now: now)
    }

    static var three: Screen { screen(tables) }

    static var joining: Screen {
        var view = LobbyView(name: "Owl", id: Scene.owl, tables: tables)
        view.place = .joining(name: "Puma", .seat)
        return Screen(view, style: unicode, now: now)
    }

    static func screen(_ tables: [TableListing]) -> Screen {
        Screen(LobbyView(name: "Owl", id: Scene.owl, tables: tables), style: unicode, now: now)
    }
}
