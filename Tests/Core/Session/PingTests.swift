import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Pings over links and beside them, between two sessions in virtual time.
@Suite struct PingTests {
    private let network = SimulatedNetwork()

    /// Pings beside the link, and lets time pass.
    private func ping(
        _ puma: SessionProbe, _ lynx: SessionProbe, for time: Duration
    ) throws -> Answer<Duration> {
        let answer = Answer<Duration>()
        puma.session.ping(lynx.id, over: .packets, completion: answer.take)
        try network.run(for: time)
        return answer
    }

    private let losingAllPackets: FaultPlan

    init() throws { losingAllPackets = try FaultPlan(parsing: "loss=all") }

    @Test func `A ping beside the link begins the path, waits for it, and measures its round trip`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "delay=10ms"))
        // Both ends are faulty, so each packet is delayed twice.
        for _ in 0..<3 {
            let roundTrip = try #require(try ping(puma, lynx, for: .milliseconds(500)).result).get()
            #expect(roundTrip >= .milliseconds(40) && roundTrip < .milliseconds(60), "\(roundTrip)")
            #expect(puma.peer(lynx.id)?.hasDatagrams == true)
        }
    }

    @Test func `A ping beside the link fails within a second where packets do not pass, until they do`()
        throws
    {
        let (puma, lynx) = try network.connectedPair(plan: losingAllPackets)
        #expect(try ping(puma, lynx, for: .seconds(1)).cause == .unreachable)
        #expect(try ping(puma, lynx, for: .zero).cause == .unreachable)
        for member in [puma, lynx] { member.faults.plan = .none }
        try network.run(for: .seconds(3))
        #expect(try ping(puma, lynx, for: .seconds(1)).isSuccess)
    }

    @Test(arguments: [true, false])
    func `A ping beside the link fails at once if either side has no packets`(isTheirs: Bool) throws {
        let puma = network.join("Puma") { $0.datagrams = isTheirs }
        let lynx = network.join("Lynx") { $0.datagrams = !isTheirs }
        try network.connect(puma, lynx)
        switch try ping(puma, lynx, for: .zero).cause {
        case .unsupported: #expect(isTheirs)
        case .unavailable: #expect(!isTheirs)
        default: Issue.record("it does not fail")
        }
    }

    @Test(arguments: [PingPath.link, .packets])
    func `A ping fails with its link and not later`(path: PingPath) throws {
        let (puma, lynx) = try network.connectedPair()
        puma.faults.plan = losingAllPackets
        if path == .link { puma.faults.stall() }
        let answer = Answer<Duration>()
        puma.session.ping(lynx.id, over: path, completion: answer.take)
        try network.run(for: .milliseconds(100))
        #expect(answer.result == nil)
        puma.faults.cut()
        try network.run(for: .milliseconds(100))
        #expect(answer.cause == .linkLost)
    }

    @Test(arguments: [PingPath.link, .packets])
    func `Pings beyond the limit are refused`(path: PingPath) throws {
        let (puma, lynx) = try network.connectedPair()
        let answers = (0..<SessionLimits().pendingPings + 3).map { _ in Answer<Duration>() }
        for answer in answers { puma.session.ping(lynx.id, over: path, completion: answer.take) }
        #expect(answers.count { $0.cause != nil } == 3)
        try network.run(for: .seconds(1))
        #expect(answers.count(where: \.isSuccess) == answers.count - 3)
    }

    /// The answers to a flood wait for the pipe to take them. Meanwhile the flood is not read; afterwards it is.
    @Test func `A flood of pings is read at the speed of its answers`() throws {
        let (puma, lynx) = try network.connectedPair()
        let driver = puma.session.driver
        let link = try #require(puma.link(to: lynx.id))
        lynx.faults.stall(.all, .outgoing)
        for number in 1...1_000 {
            link.machine.ping(
                token: UInt64(number), payload: [UInt8](repeating: 0, count: 1_000), now: network.loop.now)
        }
        driver.machine.markDirty(link)
        driver.flushSoon()
        try puma.session.trySend(Array("after".utf8), to: lynx.id)
        try network.run(for: .seconds(1))
        #expect(lynx.texts == [] && lynx.session.mostBytesHeld < 256 << 10)
        lynx.faults.release()
        try network.run(for: .seconds(1))
        #expect(lynx.texts == ["after"])
    }
}
