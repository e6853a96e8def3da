import NighLoop
import NighMemory
import NighTestKit
import Testing

@testable import NighCore
@testable import nigh

/// Tests that the relay of `nigh inject` passes unreliable messages on, with two sessions over real TCP and UDP.
@Suite(.callsPrograms) struct RelayedPacketsTests {
    /// A session on each side of a relay, over loopback. Closed with the last reference.
    ///
    /// `@unchecked Sendable`: used by the thread of the test; the monitor guards what the relay reports.
    private final class Line: @unchecked Sendable {
        let caller: SessionProbe
        let target: SessionProbe
        private let relay: Relay
        private let loops: [UVEventLoop]
        private let monitor = Monitor()
        private let reports: Reports

        /// Guarded by the monitor.
        private final class Reports: @unchecked Sendable {
            var listening: [TransportAddress] = []
            var traffic: Relay.Traffic?
            var isCarriedOut = 0
            var isAsExpected = false
        }

        init(_ faults: String) throws {
            let loops = [UVEventLoop(), UVEventLoop(), UVEventLoop()]
            self.loops = loops
            func session(_ number: Int, _ role: SessionRole) -> SessionProbe {
                var configuration = SessionConfiguration(
                    service: "tests", name: DisplayName(fitting: "\(number)"), role: role)
                configuration.datagrams = true
                let transport = FaultyTransport(TCPTransport(TCPOptions(interface: "lo", discovery: .off)))
                let session = Session(
                    configuration, identity: .ephemeral(), transports: [transport], loop: loops[number])
                let probe = SessionProbe(number: number, session: session, faults: transport.control)
                probe.start(reading: .handler, accepting: true)
                return probe
            }
            (caller, target) = (session(1, .client), session(2, .server))
            try #require(target.wait { !$0.listening.isEmpty })
            func tcp() -> TCPTransport { TCPTransport(TCPOptions(interface: "lo", discovery: .off)) }
            let reports = Reports()
            self.reports = reports
            relay = Relay(
                from: tcp(), through: FaultyTransport(tcp(), plan: try FaultPlan(parsing: faults)),
                to: target.listening[0], on: loops[0]
            ) { [monitor] event in
                monitor.change {
                    if case .listening(let addresses) = event { reports.listening = addresses }
                    if case .closed(_, let traffic, _) = event { reports.traffic = traffic }
                }
            }
            carryOut(on: loops[0]) { [relay] in relay.start(service: "tests") }
            try wait { !$0.listening.isEmpty }
            caller.session.invite(at: reports.listening[0], context: []) { _ in }
            try #require(caller.wait { $0.state(of: self.target.id) == .connected })
        }

        deinit {
            for probe in [caller, target] { carryOut(on: probe.session.loop) { probe.session.crash() } }
            carryOut(on: loops[0]) { [relay] in relay.stop() }
            for loop in loops { loop.shutdown() }
        }

        /// Waits until what has passed in the one connection is as it should be.
        func waitForTraffic(_ isTrue: @escaping @Sendable (Relay.Traffic) -> Bool) throws {
            let loop = loops[0]
            @Sendable func look() {
                let isSo = relay.open.first.map { isTrue($0.traffic) } ?? false
                guard !isSo else { return monitor.change { reports.isAsExpected = true } }
                loop.schedule(at: loop.now + .milliseconds(10), look)
            }
            loop.execute(look)
            try wait { $0.isAsExpected }
        }

        /// Ends the relay, and returns what has passed.
        func end() throws -> Relay.Traffic {
            carryOut(on: loops[0]) { [relay] in relay.stop() }
            return try #require(reports.traffic)
        }

        private func wait(_ isTrue: @escaping (Reports) -> Bool) throws {
            try #require(monitor.wait(within: .seconds(20)) { isTrue(reports) })
        }

        private func carryOut(on loop: any EventLoop, _ act: @escaping @Sendable () -> Void) {
            let before = monitor.read { reports.isCarriedOut }
            loop.execute { [monitor, reports] in
                act()
                monitor.change { reports.isCarriedOut += 1 }
            }
            _ = monitor.wait(within: .seconds(20)) { reports.isCarriedOut > before }
        }
    }

    @Test("Packets take the way through the relay, and are counted there")
    func passes() throws {
        let line = try Line("")
        try line.caller.session.trySend([0], to: line.target.id, .unreliable)
        try #require(line.caller.wait { $0.peer(line.target.id)?.hasDatagrams == true })
        try #require(line.target.wait { $0.messages.count == 1 })
        for number in 1...50 as ClosedRange<UInt8> {
            try line.caller.session.trySend([number], to: line.target.id, .unreliable)
        }
        try #require(line.target.wait { $0.messages.last?.bytes == [50] })
        let traffic = try line.end()
        #expect(traffic.packetsOut.passed >= 50 && traffic.packetsIn.passed >= 1)
        #expect(traffic.packetsOut.lost == 0 && traffic.packetsIn.lost == 0)
    }

    @Test("While the relay loses all packets, messages travel within the link")
    func loses() throws {
        let line = try Line("loss=all")
        for number in 1...5 as ClosedRange<UInt8> {
            try line.caller.session.trySend([number], to: line.target.id, .unreliable)
            try #require(line.target.wait { $0.messages.last?.bytes == [number] })
        }
        // The path is tried beside the messages, perhaps after them.
        try line.waitForTraffic { $0.packetsOut.lost > 0 }
        #expect(line.caller.peer(line.target.id)?.hasDatagrams == false)
        #expect(try line.end().packetsOut.passed == 0)
    }
}
