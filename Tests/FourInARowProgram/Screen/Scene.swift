import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

/// Puma's table with Lynx as its guest and Owl as a watcher, and the screen of each. The tables are real; the
/// views are as a lobby makes them.
struct Scene {
    static let puma = peer(1)
    static let lynx = peer(2)
    static let owl = peer(3)
    static let small = TerminalSize(columns: 80, rows: 24)
    /// A code of 33 modules, as most are.
    static let code = GuestCode(
        GuestInvitation(
            url: "http://raspberrypi.local:8080/#abcdefghijklmnopqrstuvwxyz",
            alternatives: ["http://192.168.1.20:8080/#abcdefghijklmnopqrstuvwxyz"], validity: .seconds(300)))

    var now = Moment(nanoseconds: 5_000_000_000)
    private(set) var host = HostTable()
    private(set) var guest = VisitorTable()
    private(set) var watcher = VisitorTable()
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

    static func words(_ text: String) -> Words {
        guard let words = Words(text) else { preconditionFailure("no words: \(text)") }
        return words
    }

    /// Puma waits at a table of its own.
    init(style: ScreenStyle = ScreenStyle(isUnicode: true, animates: false)) {
        for peer in [Self.puma, Self.lynx, Self.owl] {
            let lobby = LobbyView(name: Self.name(peer), id: peer)
            screens[peer] = Screen(lobby, style: style, now: now)
        }
        show(Self.puma, [])
    }

    /// A game after these moves. Puma moves first.
    static func playing(
        _ letters: String = "", watched: Bool = false,
        style: ScreenStyle = ScreenStyle(isUnicode: true, animates: false)
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
        show(Self.puma, LobbyNews?.none)
        screens[Self.puma]?.take(Self.code)
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
    mutating func watch(_ peer: PeerID = owl) { carry(host.watch(peer) ?? []) }

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
    mutating func request(_ action: Action) throws { carry(try guest.act(action), Self.lynx) }

    mutating func deliver() {
        let bytes = undelivered
        undelivered = []
        for message in bytes { carry(host.received(message, from: Self.lynx)) }
    }

    /// Shows a player the current view, with news that belong to no table.
    mutating func show(_ peer: PeerID, _ news: LobbyNews?) {
        let view = view(of: peer)
        screens[peer]?.update(view, news, now: now)
    }

    private mutating func carry(_ outputs: [HostTable.Output]) {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes, let peers):
                if peers.contains(Self.lynx) { carry(guest.received(bytes), Self.lynx) }
                if peers.contains(Self.owl) { carry(watcher.received(bytes), Self.owl) }
            }
        }
        show(Self.puma, news)
    }

    private mutating func carry(_ outputs: [VisitorTable.Output], _ peer: PeerID) {
        var news: [TableNews] = []
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes): undelivered.append(bytes)
            case .leave(let breach): Issue.record("\(peer.short) left: \(breach)")
            }
        }
        show(peer, news)
    }

    private mutating func show(_ peer: PeerID, _ news: [TableNews]) {
        show(peer, LobbyNews?.none)
        for news in news { show(peer, .table(news)) }
    }

    // MARK: Views

    func view(of peer: PeerID) -> LobbyView {
        var view = LobbyView(name: Self.name(peer), id: peer, addresses: peer == Self.puma ? addresses : [])
        let tables = [Self.lynx: guest, Self.owl: watcher]
        if peer == Self.puma {
            view.seatRequests = seatRequests
            let other = host.guest.map { person($0) }
            view.place = .hosting(
                TableView(table: host.table, ownDisc: .red, host: nil, guest: other, pending: nil))
        } else if let visitor = tables[peer], let table = visitor.table {
            view.place = .visiting(
                TableView(
                    table: table, ownDisc: visitor.isSeated ? .yellow : nil, host: person(Self.puma),
                    guest: nil, pending: visitor.pending))
        }
        return view
    }

    func person(_ peer: PeerID) -> Person {
        Person(
            id: peer, name: Self.name(peer), trust: lynxIsGuest && peer == Self.lynx ? .guest : nil,
            transport: link.linkLostAt == nil ? link.transport : nil,
            linkLostAt: link.linkLostAt, roundTrip: link.roundTrip)
    }

    func text(_ peer: PeerID, _ size: TerminalSize = small) -> String {
        screens[peer]?.canvas(size, now: now).text ?? ""
    }

    mutating func press(_ peer: PeerID, _ input: Input, _ size: TerminalSize = small) -> [UserRequest] {
        let now = now
        return screens[peer]?.handle(input, size: size, now: now) ?? []
    }

    /// Types characters one after the other.
    mutating func type(_ peer: PeerID, _ text: String) -> [UserRequest] {
        text.unicodeScalars.flatMap { press(peer, .character($0)) }
    }
}
