import NighCore
import Testing

@testable import FourInARow

/// The tables of a host, its guest and its watchers, of whom any may leave. Messages wait until the test delivers them.
struct TableSimulation {
    static let puma = peer(9)
    static let lynx = peer(1)
    static let owls = (2...5).map { peer($0) }

    /// The peer that hosts now.
    private(set) var hostID = Self.puma
    var host = HostTable()
    var visitors: [PeerID: VisitorTable] = [:]
    private(set) var news: [PeerID: [TableNews]] = [:]
    /// The breaches for which visitors have left.
    private(set) var leavings: [Breach] = []
    var toHost: [(sender: PeerID, bytes: [UInt8])] = []
    var toVisitors: [PeerID: [[UInt8]]] = [:]
    /// Those whom messages of the host do not reach.
    var unreached: Set<PeerID> = []
    /// Whether the host gets messages.
    var hostHears = true

    static func peer(_ number: UInt8) -> PeerID {
        guard let peer = PeerID(bytes: [UInt8](repeating: number, count: PeerID.byteCount)) else {
            preconditionFailure("no PeerID")
        }
        return peer
    }

    static func name(_ peer: PeerID) throws -> SafeText {
        try words(peer == puma ? "Puma" : peer == lynx ? "Lynx" : "Owl \(peer.bytes[0])")
    }

    /// A table where Lynx has sat down, Owls watch, and these moves were made. Without `canStay`, its visitors run
    /// older programs, which cannot go on without the host.
    static func playing(
        _ letters: String = "", watchers: Int = 0, canStay: Bool = false
    ) throws -> TableSimulation {
        var simulation = TableSimulation()
        try simulation.seat(lynx, canStay: canStay)
        for owl in owls.prefix(watchers) { try simulation.watch(owl, canStay: canStay) }
        for letter in letters { try simulation.move(String(letter)) }
        return simulation
    }

    /// The guest Lynx.
    var guest: VisitorTable? {
        get { visitors[Self.lynx] }
        set { visitors[Self.lynx] = newValue }
    }
    var hostNews: [TableNews] { news[hostID] ?? [] }
    var guestNews: [TableNews] { news[Self.lynx] ?? [] }

    /// Whether all at the table see the same.
    var isOneTable: Bool { leavings.isEmpty && visitors.values.allSatisfy { $0.table == host.table } }
    /// The columns of the game, as the host sees it.
    var letters: String { host.table.game?.moves.map(\.description).joined() ?? "" }

    // MARK: Coming and going

    mutating func seat(_ peer: PeerID, canStay: Bool = false) throws {
        visitors[peer] = VisitorTable()
        toVisitors[peer] = nil
        carryOut(host.seat(peer, name: try Self.name(peer), canStay: canStay))
        deliverAll()
    }

    mutating func watch(_ peer: PeerID, canStay: Bool = false) throws {
        visitors[peer] = VisitorTable()
        let outputs = host.watch(peer, stayingAs: canStay ? try Self.name(peer) : nil)
        carryOut(try #require(outputs))
        deliverAll()
    }

    mutating func leave(_ peer: PeerID) {
        visitors[peer] = nil
        carryOut(host.remove(peer))
        deliverAll()
    }

    // MARK: Messages

    mutating func carryOut(_ outputs: [HostTable.Output]) {
        for output in outputs {
            switch output {
            case .show(let one): news[hostID, default: []].append(one)
            case .send(let bytes, let peers):
                for peer in peers where !unreached.contains(peer) {
                    toVisitors[peer, default: []].append(bytes)
                }
            }
        }
    }

    private mutating func carryOut(_ outputs: [VisitorTable.Output], _ peer: PeerID) {
        for output in outputs {
            switch output {
            case .show(let one): news[peer, default: []].append(one)
            case .send(let bytes): if hostHears { toHost.append((peer, bytes)) }
            case .leave(let breach): leavings.append(breach)
            }
        }
    }

    /// Delivers the host's next message to this visitor. Returns whether there was one.
    @discardableResult
    mutating func deliver(to peer: PeerID) -> Bool {
        guard let bytes = toVisitors[peer]?.first else { return false }
        toVisitors[peer]?.removeFirst()
        carryOut(visitors[peer]?.received(bytes) ?? [], peer)
        return true
    }

    /// Delivers the next message to the host. Returns whether there was one.
    @discardableResult
    mutating func deliverToHost() -> Bool {
        guard !toHost.isEmpty else { return false }
        let (sender, bytes) = toHost.removeFirst()
        carryOut(host.received(bytes, from: sender))
        return true
    }

    /// Delivers all messages, one to each in turn.
    mutating func deliverAll() {
        var isBusy = true
        while isBusy {
            isBusy = deliverToHost()
            for peer in toVisitors.keys.sorted() where deliver(to: peer) { isBusy = true }
        }
    }

    /// Gives the guest Lynx these bytes instead of what the host has sent.
    mutating func mislead(_ bytes: [UInt8]) {
        toVisitors[Self.lynx] = [bytes]
        deliver(to: Self.lynx)
    }

    // MARK: Playing

    mutating func act(_ action: Action, by disc: Disc) throws {
        if disc == .red { return carryOut(try host.act(action)) }
        let guest = try #require(host.guest)
        guard let outputs = try visitors[guest]?.act(action) else { return }
        carryOut(outputs, guest)
    }

    /// Makes the side whose turn it is move, and delivers all messages.
    mutating func move(_ letter: String) throws {
        try act(.move(try column(letter)), by: try #require(host.table.turn))
        deliverAll()
    }

    // MARK: The seat of a host that left

    mutating func offerSeat() {
        carryOut(host.offerSeat())
        deliverAll()
    }

    mutating func answer(_ peer: PeerID, takesSeat: Bool) {
        let outputs = visitors[peer]?.answerOffer(takesSeat: takesSeat) ?? []
        carryOut(outputs, peer)
        deliverAll()
    }

    /// The host is gone. Returns whether somebody has taken over the table. The others follow in `order`.
    mutating func loseHost(_ order: [PeerID]? = nil) throws -> Bool {
        let losses = visitors.mapValues { $0.afterLoss(of: hostID) }
        let successors = losses.filter { if case .takeOver = $0.value { true } else { false } }
        #expect(successors.count <= 1)
        (visitors, toHost, toVisitors, unreached, hostHears) = ([:], [], [:], [], true)
        guard let (successor, loss) = successors.first, case .takeOver(let table) = loss else {
            for case .follow in losses.values { Issue.record("somebody follows nobody") }
            return false
        }
        host = table
        hostID = successor
        for peer in order ?? losses.keys.sorted() where peer != successor {
            guard case .follow(let wanted, let lostTable)? = losses[peer] else { continue }
            #expect(wanted == successor)
            let request = JoinRequest(.watch, lostTable: lostTable)
            let read = try JoinRequest(request.bytes)
            #expect(read == request)
            if let table = read.lostTable { carryOut(host.adopt(table)) }
            try watch(peer, canStay: true)
        }
        return true
    }
}
