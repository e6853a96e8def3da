import Testing

@testable import NighCore

/// Tests which broken rules the ledgers of a checked transport find, without a loop.
@Suite struct LedgerTests {
    private let sighting = ScriptedTransport.sighting
    private var somewhere: TransportAddress { sighting.address }

    private func rule(_ body: () throws -> Void) -> ContractRule? {
        do { try body() } catch { return (error as? ContractBreach)?.rule }
        return nil
    }

    private func browsing() throws -> TransportLedger {
        var ledger = TransportLedger(scheme: "script")
        ledger.browse(ScriptedTransport.service)
        try ledger.found(sighting)
        return ledger
    }

    @Test
    func `A route is found once, and again after another browse, a stop, or a time without the transport`()
        throws
    {
        var ledger = try browsing()
        ledger.browse(ScriptedTransport.service)
        try ledger.changed(sighting)
        try ledger.found(sighting)
        #expect(rule { try ledger.found(sighting) } == .routeFoundOnce)
        ledger.browse(ScriptedTransport.service)
        try ledger.lost(somewhere)
        #expect(rule { try ledger.lost(somewhere) } == .routeFoundFirst)
        ledger = try browsing()
        ledger.stopBrowsing()
        #expect(rule { try ledger.lost(somewhere) } == .routeWhileBrowsing)
        ledger.browse(ScriptedTransport.service)
        #expect(rule { try ledger.changed(sighting) } == .routeFoundFirst)
        try ledger.found(sighting)
        try ledger.became(.down(ScriptedTransport.error(.starting)))
        try ledger.became(.up)
        try ledger.found(sighting)
        #expect(rule { try ledger.found(sighting) } == .routeFoundOnce)
    }

    @Test func `A limited number of ended dials is remembered; older ones count as unknown`() throws {
        var ledger = TransportLedger(scheme: "script")
        let (first, second) = (DialID(number: 1), DialID(number: 2))
        ledger.dial(first)
        try ledger.opened(first)
        ledger.dial(second)
        ledger.cancel(second)
        #expect(rule { try ledger.opened(first) } == .dialEndsOnce)
        #expect(rule { try ledger.opened(second) } == .dialQuietAfterCancel)
        for number in 3..<UInt64(TransportLedger.endedDialsRemembered) + 2 {
            ledger.dial(DialID(number: number))
            try ledger.failed(DialID(number: number), ScriptedTransport.error())
        }
        #expect(rule { try ledger.opened(first) } == .dialIsKnown)
        #expect(rule { try ledger.opened(second) } == .dialQuietAfterCancel)
    }

    @Test func `That nothing is listened on may be reported at any time`() throws {
        var ledger = TransportLedger(scheme: "script")
        try ledger.listens(at: [])
        #expect(rule { try ledger.listens(at: [somewhere]) } == .listeningWhileAdvertising)
        ledger.advertise()
        try ledger.listens(at: [somewhere])
        ledger.stopAdvertising()
        try ledger.listens(at: [])
        #expect(rule { try ledger.advertised() } == .listeningWhileAdvertising)
        #expect(rule { try ledger.opened(nil) } == .inboundWhileAdvertising)
    }

    @Test(
        "A failed pipe need not count written bytes, must never count any again, and no more wait than were written"
    )
    func failedPipe() throws {
        var (ledger, counters) = (PipeLedger(), PipeCounters())
        counters.bytesWritten = 5
        try ledger.wrote(5, left: 0, counters)
        counters.bytesWaiting = 6
        #expect(rule { try ledger.check(counters) } == .countsWhatItTakes)
        counters.bytesWaiting = 0
        try ledger.wrote(5, left: 0, counters)
        try ledger.check(counters)
        counters.bytesWritten = 10
        #expect(rule { try ledger.wrote(5, left: 0, counters) } == .countsWhatItTakes)
    }

    @Test func `A slice may be counted before or after it is delivered; earlier slices are counted`() throws {
        var (ledger, counters) = (PipeLedger(), PipeCounters())
        try ledger.received(5, counted: 0)
        try ledger.received(5, counted: 10)
        counters.bytesReceived = 10
        try ledger.check(counters)
        #expect(rule { try ledger.received(5, counted: 9) } == .countsWhatItTells)
        counters.bytesReceived = 11
        #expect(rule { try ledger.check(counters) } == .countsWhatItTells)
    }

    @Test func `The bytes that a paused pipe may deliver are counted from the pause`() throws {
        var ledger = PipeLedger()
        for _ in 0..<3 {
            ledger.paused()
            try ledger.received(PipeLedger.pausedByteLimit, counted: .max)
            ledger.resumed()
            try ledger.received(PipeLedger.pausedByteLimit, counted: .max)
        }
        ledger.paused()
        try ledger.received(PipeLedger.pausedByteLimit, counted: .max)
        ledger.paused()
        #expect(rule { try ledger.received(1, counted: .max) } == .pausedPipeIsQuiet)
    }
}

@Suite struct RulesPageTests {
    @Test(
        "The page for authors of transports lists every rule with its sentence, in order, and how it is noticed"
    )
    func complete() {
        let page = ProtocolPage("transport-rules.md")
        let cells = page.allRows.filter { $0[0].hasPrefix("`") }
        #expect(cells.map(\.first) == ContractRule.allCases.map { "`\($0.rawValue)`" })
        #expect(cells.map { $0[1] } == ContractRule.allCases.map(\.sentence))
        #expect(cells.allSatisfy { $0.count == 3 && !$0[2].isEmpty })
    }
}
