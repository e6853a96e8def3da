import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Pings beside the link, between two sessions in virtual time.
@Suite("A ping beside the link") struct PacketPingTests {
    private func ping(
        _ puma: SessionProbe, _ lynx: SessionProbe, in place: Neighbourhood, for time: Duration
    ) throws -> Result<Duration, NighError>? {
        nonisolated(unsafe) var outcome: Result<Duration, NighError>?  // the loop is virtual: one thread
        puma.session.ping(lynx.id, over: .packets) { outcome = $0 }
        try place.run(time)
        return outcome
    }

    private func cause(_ outcome: Result<Duration, NighError>?) -> NighError.Cause? {
        if case .failure(let error) = outcome { error.cause } else { nil }
    }

    @Test("begins the path, waits for it, and then measures one round trip of it")
    func first() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.delay = .milliseconds(10)
        let (puma, lynx) = try place.pair(plan: plan)
        // Both ends are faulty, so each packet is delayed twice.
        for _ in 0..<3 {
            let roundTrip = try #require(try ping(puma, lynx, in: place, for: .milliseconds(500))).get()
            #expect(roundTrip >= .milliseconds(40) && roundTrip < .milliseconds(60), "\(roundTrip)")
            #expect(puma.peer(lynx.id)?.hasDatagrams == true)
        }
    }

    @Test("is lost with its packet, and fails after 5 s")
    func lost() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        _ = try #require(try ping(puma, lynx, in: place, for: .seconds(1))).get()
        var plan = FaultPlan()
        plan.loss = .all
        puma.faults.plan = plan
        nonisolated(unsafe) var lost: Result<Duration, NighError>?  // the loop is virtual: one thread
        puma.session.ping(lynx.id, over: .packets) { lost = $0 }
        try place.run(.milliseconds(100))
        puma.faults.plan = .none
        _ = try #require(try ping(puma, lynx, in: place, for: .milliseconds(100))).get()
        try place.run(.milliseconds(4_700))
        #expect(lost == nil)
        try place.run(.milliseconds(200))
        #expect(cause(lost) == .timedOut)
    }

    @Test("fails within a second where packets do not pass, and succeeds once they do")
    func blocked() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.loss = .all
        let (puma, lynx) = try place.pair(plan: plan)
        #expect(cause(try ping(puma, lynx, in: place, for: .seconds(1))) == .unreachable)
        #expect(cause(try ping(puma, lynx, in: place, for: .zero)) == .unreachable)
        puma.faults.plan = .none
        lynx.faults.plan = .none
        try place.run(.seconds(3))
        _ = try #require(try ping(puma, lynx, in: place, for: .seconds(1))).get()
    }

    @Test("fails at once if either side has no packets, and says which")
    func unsupported() throws {
        for isTheirs in [true, false] {
            let place = Neighbourhood()
            let puma = place.join("puma") { $0.datagrams = isTheirs }
            let lynx = place.join("lynx") { $0.datagrams = !isTheirs }
            try place.run(.seconds(1))
            puma.invite(lynx)
            try place.run(.seconds(1))
            switch cause(try ping(puma, lynx, in: place, for: .zero)) {
            case .unsupported: #expect(isTheirs)
            case .unavailable: #expect(!isTheirs)
            default: Issue.record("it does not fail")
            }
        }
    }

    @Test("fails with its link")
    func cut() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        var plan = FaultPlan()
        plan.loss = .all
        puma.faults.plan = plan
        nonisolated(unsafe) var outcome: Result<Duration, NighError>?  // the loop is virtual: one thread
        puma.session.ping(lynx.id, over: .packets) { outcome = $0 }
        try place.run(.milliseconds(100))
        #expect(outcome == nil)
        puma.faults.cut()
        try place.run(.milliseconds(100))
        #expect(cause(outcome) == .linkLost)
    }

    @Test("is limited in number like any other")
    func limit() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        nonisolated(unsafe) var refused = 0  // the loop is virtual: one thread
        for _ in 0..<SessionLimits().pendingPings + 3 {
            puma.session.ping(lynx.id, over: .packets) { if case .failure = $0 { refused += 1 } }
        }
        #expect(refused == 3)
    }
}
