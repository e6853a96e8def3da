import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// A session over two transports, the preferred one of which breaks a rule, and a peer that it reaches over both.
private final class Scene {
    let loop = VirtualEventLoop()
    let breaker: RuleBreaker
    let checked: CheckedTransport
    /// The session with the bad transport.
    let victim: SessionProbe
    let peer: SessionProbe

    init(_ rule: ContractRule?) {
        let (hub, otherHub) = (MemoryHub(), MemoryHub())
        breaker = RuleBreaker(rule, around: MemoryTransport(hub: hub, address: "victim"))
        checked = CheckedTransport(breaker)
        victim = Self.probe(1, checked, otherHub, loop)
        peer = Self.probe(2, MemoryTransport(hub: hub, address: "peer"), otherHub, loop)
    }

    private static func probe(
        _ number: Int, _ transport: any Transport, _ otherHub: MemoryHub, _ loop: VirtualEventLoop
    ) -> SessionProbe {
        let faulty = FaultyTransport(MemoryTransport(hub: otherHub))
        var configuration = SessionConfiguration(
            service: "test", name: DisplayName(fitting: "member \(number)"))
        configuration.seed = UInt64(number)
        configuration.security = .none
        configuration.checksTransports = true
        let session = Session(
            configuration, identity: .ephemeral(seed: UInt64(number)),
            transports: [transport, RelabelledTransport(faulty, scheme: "other", priority: 50)], loop: loop)
        let probe = SessionProbe(number: number, session: session, faults: faulty.control)
        probe.start(reading: .handler, accepting: true)
        return probe
    }

    func run(_ duration: Duration) throws { try loop.run(for: duration) }

    func connect() throws {
        try run(.seconds(1))
        victim.session.invite(peer.id) { _ in }
        try run(.seconds(1))
    }

    /// The transport that carries the conversation of the two.
    var carrier: String? { victim.session.inspection(of: peer.id)?.transport }

    /// The reports to the program about transports that went down.
    var downs: [(scheme: String, error: NighError)] { Self.downs(of: victim) }

    static func downs(of probe: SessionProbe) -> [(scheme: String, error: NighError)] {
        probe.events.compactMap {
            if case .transportDown(let scheme, let error) = $0 { (scheme, error) } else { nil }
        }
    }

    /// Makes the transport break its rule, and gives it the opportunity that it needs.
    func provoke(_ rule: ContractRule) throws {
        breaker.misbehave()
        try run(.milliseconds(100))
        let session = victim.session
        switch rule {
        case .toldInALaterTurn: session.update(info: try DiscoveryInfo(["table": "open"]))
        case .traitsConstant: session.startBrowsing()
        case .placesToldOnce: checked.places(behind: breaker.nowhere) { _ in }
        case .routeWhileBrowsing, .dialQuietAfterCancel: session.stopBrowsing()
        case .inboundWhileAdvertising, .listeningWhileAdvertising: session.stopAdvertising()
        case .pipeQuietAfterClose: session.disconnect(peer.id)
        case .quietAfterShutdown: session.close {}
        case .writeTakesAll, .countsWhatItTakes:
            try session.trySend([UInt8](repeating: 1, count: 100), to: peer.id)
        case .countsWhatItTells:
            for _ in 0..<2 {
                try peer.session.trySend([UInt8](repeating: 1, count: 100), to: victim.id)
                try run(.milliseconds(1))
            }
        case .pausedPipeIsQuiet:
            for connection in session.driver.connections.values { connection.pipe.pauseReading() }
            let message = [UInt8](repeating: 1, count: 64 << 10)
            var count = 0
            while count < 80, carrier == "memory", (try? peer.session.trySend(message, to: victim.id)) != nil
            {
                try run(.milliseconds(1))
                count += 1
            }
            for connection in session.driver.connections.values { connection.pipe.resumeReading() }
        default: break
        }
        try run(.seconds(20))
        if rule == .routeWhileBrowsing || rule == .dialQuietAfterCancel { session.startBrowsing() }
        if rule == .inboundWhileAdvertising || rule == .listeningWhileAdvertising {
            session.startAdvertising()
        }
    }
}

/// Tests a session over a transport that breaks its contract.
@Suite struct TransportChecksTests {
    private static let beforeTheEnd = ContractRule.allCases.filter { $0 != .quietAfterShutdown }

    @Test(arguments: beforeTheEnd)
    func `A broken rule is named, the transport is reported as down, and the session continues with another`(
        _ rule: ContractRule
    ) throws {
        let scene = Scene(rule)
        try scene.connect()
        let isBrokenFromTheStart = rule == .schemeWellFormed || rule == .capabilitiesPossible
        #expect(scene.carrier == (isBrokenFromTheStart ? "other" : "memory"))
        try scene.provoke(rule)

        #expect(scene.downs.count == 1)
        let down = try #require(scene.downs.first)
        guard case .contractBroken(rule, let detail) = down.error.cause else {
            Issue.record("another cause: \(down.error)")
            return
        }
        #expect(!detail.isEmpty)
        #expect(down.scheme == scene.breaker.scheme && down.error.transport == down.scheme)
        #expect(down.error.advice?.contains("the transport \"\(down.scheme)\", not in the network") == true)
        #expect("\(down.error)".contains("\"\(rule.rawValue)\""))
        #expect(scene.checked.breach == down.error)
        #expect(scene.breaker.isShutDown)
        #expect(Scene.downs(of: scene.peer).isEmpty)

        try scene.run(.seconds(1))
        if scene.victim.state(of: scene.peer.id) != .connected { try scene.connect() }
        #expect(scene.carrier == "other")
        try scene.victim.session.trySend(Array("still here".utf8), to: scene.peer.id)
        try scene.run(.seconds(1))
        #expect(scene.peer.texts.last == "still here")
        scene.victim.session.close {}
        try scene.run(.seconds(10))
        #expect(scene.victim.isOver)
        #expect(scene.downs.count == 1)
    }

    @Test func `An event after the shutdown is recorded, and not reported`() throws {
        let scene = Scene(.quietAfterShutdown)
        try scene.connect()
        try scene.provoke(.quietAfterShutdown)
        guard case .contractBroken(.quietAfterShutdown, _)? = scene.checked.breach?.cause else {
            Issue.record("\(String(describing: scene.checked.breach))")
            return
        }
        #expect(scene.downs.isEmpty && scene.victim.isOver)
    }

    @Test func `A transport that keeps the contract causes no report`() throws {
        let scene = Scene(nil)
        try scene.connect()
        for rule in ContractRule.allCases where rule != .quietAfterShutdown {
            try scene.provoke(rule)
            if scene.victim.state(of: scene.peer.id) != .connected { try scene.connect() }
            #expect(scene.checked.breach == nil, "\(rule)")
        }
        scene.victim.session.close {}
        try scene.run(.seconds(10))
        #expect(scene.checked.breach == nil)
        #expect(scene.downs.isEmpty)
    }
}

extension SessionProbe {
    /// Whether its session has reported that it is closed.
    fileprivate var isOver: Bool { if case .closed? = events.last { true } else { false } }
}
