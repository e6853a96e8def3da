import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

/// Puma's table with Lynx as its guest and Owl as a watcher, and the screen of each. The tables of Puma and Lynx are
/// real; the views are as a lobby makes them.
struct Scene {
    static let puma = peer(1)
    static let lynx = peer(2)
    static let owl = peer(3)
    static let small = TerminalSize(columns: 80, rows: 24)
    /// Unicode, without animation.
    static let still = ScreenStyle(isUnicode: true, animates: false)
    static let start = Moment(nanoseconds: 5_000_000_000)
    /// Moves with which red wins with a vertical line.
    static let line = "dcdcdcd"
    /// A code of 33 modules, as most are.
    static let code = GuestCode(
        GuestInvitation(
            url: "http://raspberrypi.local:8080/#abcdefghijklmnopqrstuvwxyz",
            alternatives: ["http://192.168.1.20:8080/#abcdefghijklmnopqrstuvwxyz"], validity: .seconds(300)))
    static let tables = [
        table(2, "Lynx", transports: ["bluetooth"], quality: 0.6),
        table(1, "Puma", hasFreeSeat: false, transports: ["tcp", "bluetooth"]),
        table(4, "Wren with a name that is longer than what there is room for"),
    ]

    var now = Self.start
    private(set) var host = HostTable()
    private(set) var guest = VisitorTable()
    /// Requests of the guest that the host has not received yet.
    private(set) var undelivered: [[UInt8]] = []
    var screens: [PeerID: Screen] = [:]
    /// State that is not part of the tables.
    var seatRequests: [SeatRequest] = []
    var addresses: [TransportAddress] = []
    /// Whether Lynx is a guest in a browser.
    var lynxIsGuest = false
    var link = (transport: "tcp" as String?, linkLostAt: Moment?.none, roundTrip: Duration?.none)

    static func peer(_ number: UInt8) -> PeerID {
        guard let peer = PeerID(bytes: [UInt8](repeating: number, count: PeerID.byteCount)) else {
            preconditionFailure("no PeerID")
        }
        return peer
    }

    static func words(_ text: String) -> SafeText {
        guard let words = SafeText(text) else { preconditionFailure("no words: \(text)") }
        return words
    }

    static func table(
        _ number: UInt8, _ name: String, hasFreeSeat: Bool = true, transports: [String] = ["tcp"],
        quality: Double? = nil
    ) -> TableListing {
        TableListing(
            id: peer(number), name: name, hasFreeSeat: hasFreeSeat, transports: transports, quality: quality)
    }

    /// The screen of Owl in the lobby.
    static func lobby(_ tables: [TableListing] = tables, at place: Place = .lobby) -> Screen {
        var view = LobbyView(name: "Owl", id: owl, tables: tables)
        view.place = place
        return Screen(view, style: still, now: start)
    }

    /// Puma waits at a table of its own.
    init(style: ScreenStyle = still) {
        for peer in [Self.puma, Self.lynx, Self.owl] {
            let lobby = LobbyView(name: Self.name(peer), id: peer)
            screens[peer] = Screen(lobby, style: style, now: now)
        }
        show(Self.puma)
    }

    /// A game after these moves. Puma moves first.
    static func playing(
        _ letters: String = "", watched: Bool = false, style: ScreenStyle = still
    ) throws -> Scene {
        var scene = Scene(style: style)
        scene.seat()
        if watched { scene.watch() }
        for letter in letters { try scene.move(String(letter)) }
        return scene
    }

    static func name(_ peer: PeerID) -> String {
        peer == puma ? "Puma" : peer == lynx ? "Lynx" : "Owl"
    }

    /// Lets Puma show a code for guests.
    mutating func takeCode() {
        addresses.append(TransportAddress(scheme: "web", value: "192.168.1.20:8080"))
        show(Self.puma)
        screens[Self.puma]?.take(Self.code)
    }

    /// Lets these peers ask for the seat of Puma's table.
    mutating func ask(_ requests: SeatRequest...) {
        seatRequests = requests
        show(Self.puma, .seatRequested(requests[0]))
    }

    // MARK: Events

    mutating func seat() { carry(host.seat(Self.lynx, name: Self.words("Lynx"))) }

    /// A second visit of the same guest.
    mutating func reseat() {
        guest = VisitorTable()
        undelivered = []
        seat()
    }

    /// Adds a watcher. Of all watchers, only Owl has a screen.
    mutating func watch(_ peer: PeerID = owl) {
        carry(host.watch(peer) ?? [])
        if peer == Self.owl { show(peer, .table(.joined(seated: false))) }
    }

    mutating func guestGoes() { carry(host.remove(Self.lynx)) }

    mutating func move(_ letter: String) throws {
        let column = try #require(Column.allCases.first { $0.description == letter })
        try act(try #require(host.table.game?.turn), .move(column))
    }

    mutating func act(_ disc: Disc, _ action: Action) throws {
        switch disc {
        case .red: carry(try host.act(action))
        case .yellow:
            try request(action)
            deliver()
        }
    }

    /// The guest requests an action. The host does not receive the request before `deliver()`.
    mutating func request(_ action: Action) throws { carry(try guest.act(action)) }

    mutating func deliver() {
        let bytes = undelivered
        undelivered = []
        for message in bytes { carry(host.received(message, from: Self.lynx)) }
    }

    /// Shows a player the current view, with news that belong to no table.
    mutating func show(_ peer: PeerID, _ news: LobbyNews? = nil) {
        let view = view(of: peer)
        screens[peer]?.update(view, news, now: now)
    }

    private mutating func carry(_ outputs: [HostTable.Output]) {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes, let peers):
                if peers.contains(Self.lynx) { carry(guest.received(bytes)) }
            }
        }
        show(Self.puma, news)
        if host.watchers.contains(Self.owl) { show(Self.owl, news) }
    }

    private mutating func carry(_ outputs: [VisitorTable.Output]) {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes): undelivered.append(bytes)
            case .leave(let breach): Issue.record("Lynx left: \(breach)")
            }
        }
        show(Self.lynx, news)
    }

    private mutating func show(_ peer: PeerID, _ news: [TableNews]) {
        show(peer)
        for news in news { show(peer, .table(news)) }
    }

    // MARK: Views

    func view(of peer: PeerID) -> LobbyView {
        var view = LobbyView(name: Self.name(peer), id: peer, addresses: peer == Self.puma ? addresses : [])
        if peer == Self.puma {
            view.seatRequests = seatRequests
            let other = host.guest.map { person($0) }
            view.place = .hosting(TableView(table: host.table, ownDisc: .red, guest: other))
        } else if peer == Self.lynx, let table = guest.table {
            view.place = .visiting(
                TableView(
                    table: table, ownDisc: .yellow, host: person(Self.puma), pending: guest.pending))
        } else if host.watchers.contains(peer) {
            view.place = .visiting(TableView(table: host.table, host: person(Self.puma)))
        }
        return view
    }

    func person(_ peer: PeerID) -> Person {
        Person(
            id: peer, name: Self.name(peer), trust: lynxIsGuest && peer == Self.lynx ? .guest : nil,
            transport: link.linkLostAt == nil ? link.transport : nil,
            linkLostAt: link.linkLostAt, roundTrip: link.roundTrip)
    }

    /// The screen of Owl, who watches and is offered the seat that the guest left.
    func offered() throws -> Screen {
        var view = view(of: Self.owl)
        var tableView = try #require(view.place.tableView)
        tableView.table.guest = nil
        tableView.isSeatOffered = true
        view.place = .visiting(tableView)
        var screen = try #require(screens[Self.owl])
        screen.update(view, .table(.seatOffered), now: now)
        return screen
    }

    func text(_ peer: PeerID, _ size: TerminalSize = small) -> String {
        screens[peer]?.canvas(size, now: now).text ?? ""
    }

    mutating func press(_ peer: PeerID, _ input: Input, _ size: TerminalSize = small) -> [UserRequest] {
        let now = now
        return screens[peer]?.handle(input, size: size, now: now) ?? []
    }

    mutating func type(_ peer: PeerID, _ keys: String, _ size: TerminalSize = small) -> [UserRequest] {
        let now = now
        return screens[peer]?.type(keys, size, now: now) ?? []
    }
}

extension Screen {
    /// The symbols of keys that write nothing.
    private static let keys: [Unicode.Scalar: Input] = [
        "↵": .key(.enter), "⎋": .key(.escape), "⌫": .key(.backspace), "←": .key(.left), "→": .key(.right),
        "↑": .key(.up), "↓": .key(.down), "⇱": .key(.home), "⇲": .key(.end),
        "␃": .control("c"), "␌": .control("l"), "␚": .control("z"),
    ]

    /// Presses keys one after the other, each written as its character or its symbol.
    mutating func type(
        _ keys: String, _ size: TerminalSize = Scene.small, now: Moment = Scene.start
    ) -> [UserRequest] {
        keys.unicodeScalars.flatMap {
            handle(Self.keys[$0] ?? .character($0), size: size, now: now)
        }
    }
}
