import NighMemory
import NighTestKit
import Testing

@testable import NighCore
@testable import nigh

/// Tests the relay of `nigh inject`, over memory and in virtual time.
@Suite(.callsPrograms) struct RelayTests {
    /// A transport of the test, and the pipes that it opened.
    private struct Station {
        let transport: MemoryTransport
        private let recorder: TransportRecorder

        init(_ name: String, on hub: MemoryHub, _ loop: VirtualEventLoop, reads: Bool = true) {
            transport = MemoryTransport(hub: hub, address: name)
            recorder = TransportRecorder { if !reads { $0.pipe.pauseReading() } }
            transport.start(on: loop, events: recorder)
        }

        var ends: [PipeRecorder] { recorder.pipes }
    }

    private final class RelayHarness {
        let loop = VirtualEventLoop()
        let hub = MemoryHub()
        let caller: Station
        let target: Station
        let relay: Relay
        private let log = EventLog()

        /// `@unchecked Sendable`: everything happens on the one virtual loop.
        private final class EventLog: @unchecked Sendable {
            var lines: [String] = []
        }

        var events: [String] { log.lines }

        init(_ faults: String = "", targetIsThere: Bool = true, targetReads: Bool = true) throws {
            caller = Station("caller", on: hub, loop)
            target = Station("target", on: hub, loop, reads: targetReads)
            relay = Relay(
                from: MemoryTransport(hub: hub, address: "relay"),
                through: FaultyTransport(
                    MemoryTransport(hub: hub, address: "out"), plan: try FaultPlan(parsing: faults)),
                to: TransportAddress(scheme: "memory", value: "target"), on: loop
            ) { [log] event in
                switch event {
                case .opened(let number, _): log.lines.append("opened \(number)")
                case .connected(let number): log.lines.append("connected \(number)")
                case .failed(let number, let error): log.lines.append("failed \(number): \(error.cause)")
                case .closed(let number, let traffic, let reason):
                    log.lines.append("closed \(number) \(traffic.bytesOut) \(traffic.bytesIn): \(reason)")
                case .rejected: log.lines.append("turned away")
                case .listening, .down, .advertisingFailed: break
                }
            }
            if targetIsThere {
                target.transport.advertise(
                    Advertisement(
                        service: "test", peer: Identity.ephemeral().peerID,
                        name: DisplayName(fitting: "target")))
            }
            relay.start(service: "test")
            try loop.runQueued()
        }

        func dial(_ count: Int = 1) throws {
            for number in 0..<count {
                caller.transport.dial(
                    TransportAddress(scheme: "memory", value: "relay"), as: DialID(number: UInt64(number)),
                    timeout: .seconds(5))
            }
            try loop.run(for: .milliseconds(50))
        }
    }

    private static let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) }

    @Test func `Bytes pass unchanged both ways, and a close follows the bytes that were sent before it`()
        throws
    {
        let harness = try RelayHarness()
        try harness.dial()
        #expect(harness.events == ["opened 1", "connected 1"])
        let (caller, target) = (harness.caller.ends[0], harness.target.ends[0])
        caller.send(Self.bytes)
        target.send([1, 2, 3])
        try harness.loop.run(for: .milliseconds(50))
        #expect(target.received == Self.bytes && caller.received == [1, 2, 3])
        caller.send([9])
        caller.pipe.close(.afterWriting)
        try harness.loop.run(for: .seconds(1))
        #expect(target.received.last == 9 && target.log == ["ended", "closed"])
        #expect(harness.events.last?.hasPrefix("closed 1 300001 3: the caller") == true, "\(harness.events)")
        #expect(harness.relay.open.isEmpty)
    }

    @Test func `A reader that pauses backs up its writer, and little is buffered in between`() throws {
        let harness = try RelayHarness(targetReads: false)
        try harness.dial()
        let caller = harness.caller.ends[0]
        var sent = 0
        for _ in 0..<200 where caller.pipe.writableBytes > 0 {
            caller.send(Self.bytes)
            sent += Self.bytes.count
            try harness.loop.run(for: .milliseconds(10))
        }
        #expect(caller.pipe.writableBytes <= 0)
        // Each end of the two memory pipes holds up to a high-water mark, plus the excess of one write.
        #expect(sent < 4 * (256 * 1_024 + Self.bytes.count), "\(sent)")
        let target = harness.target.ends[0]
        target.pipe.resumeReading()
        try harness.loop.run(for: .seconds(1))
        #expect(target.received.count == sent)
        #expect(caller.pipe.writableBytes > 0 && caller.log.last == "writable")
    }

    @Test func `Faults apply to the bytes that pass, and can be changed at run time`() throws {
        let harness = try RelayHarness("delay=200ms")
        try harness.dial()
        let (caller, target) = (harness.caller.ends[0], harness.target.ends[0])
        caller.send([1])
        try harness.loop.run(for: .milliseconds(199))
        #expect(target.received == [])
        try harness.loop.run(for: .milliseconds(2))
        #expect(target.received == [1])
        harness.relay.control.plan = .none
        let number = try #require(harness.relay.target(of: 1))
        #expect(harness.relay.target(of: 2) == nil)
        harness.relay.control.stall(number, .outgoing)
        caller.send([2])
        target.send([3])
        try harness.loop.run(for: .seconds(1))
        #expect(target.received == [1] && caller.received == [3])
        harness.relay.control.release(number)
        try harness.loop.run(for: .milliseconds(1))
        #expect(target.received == [1, 2])
        harness.relay.control.cut(number)
        try harness.loop.run(for: .seconds(1))
        #expect(caller.log.last?.hasPrefix("closed") == true && target.log.last?.hasPrefix("closed") == true)
        #expect(harness.events.last == "closed 1 2 1: the target: the link was lost", "\(harness.events)")
    }

    @Test
    func `If the target cannot be reached, the caller is closed; a caller that leaves before is forgotten`()
        throws
    {
        let harness = try RelayHarness(targetIsThere: false)
        try harness.dial()
        try harness.loop.run(for: .seconds(11))
        #expect(harness.events.count == 2 && harness.events[1].hasPrefix("failed 1"), "\(harness.events)")
        #expect(harness.caller.ends[0].log.last?.hasPrefix("closed") == true)

        let slow = try RelayHarness("dial-delay=5s")
        try slow.dial()
        slow.caller.ends[0].send([1])
        slow.caller.ends[0].pipe.close(.afterWriting)
        try slow.loop.run(for: .seconds(20))
        #expect(
            slow.events.contains { $0.hasPrefix("closed 1") }
                || slow.events.contains { $0.hasPrefix("failed 1") }
                || slow.target.ends.allSatisfy { $0.log.last == "closed" }, "\(slow.events)")
        #expect(slow.relay.open.isEmpty)
    }

    @Test func `The number of connections is limited`() throws {
        let harness = try RelayHarness()
        try harness.dial(Relay.connectionLimit + 3)
        #expect(harness.events.filter { $0 == "turned away" }.count == 3)
        #expect(harness.relay.open.count == Relay.connectionLimit)
        harness.relay.stop()
        #expect(harness.relay.open.isEmpty)
        try harness.loop.run(for: .seconds(20))
        #expect(harness.target.ends.allSatisfy { $0.log.last?.hasPrefix("closed") == true })
    }

    @Test func `Typed commands are understood, or answered with an error`() throws {
        let understood: [(String, RelayCommand?)] = [
            ("", nil), ("  ", nil), ("cut", .cut(nil)), ("cut 3", .cut(3)), ("stall", .stall(.both, nil)),
            ("stall in 2", .stall(.incoming, 2)), ("release", .release(nil)),
            ("block", .block(.both, .timeOut)),
            ("block out refuse", .block(.outgoing, .refuse)), ("unblock", .unblock), ("faults", .faults(nil)),
            ("faults none", .faults(FaultPlan.none)), ("status", .status), ("help", .help), ("quit", .quit),
            ("faults delay=1s", .faults(try FaultPlan(parsing: "delay=1s"))),
        ]
        for (line, command) in understood { #expect(try RelayCommand.parse(line) == command, "\(line)") }
        for line in [
            "jump", "cut x", "cut 0", "cut 1 2", "status 3", "unblock out", "faults delay", "cut refuse",
            "faults a=1 b=2",
        ] {
            #expect(throws: (any Error).self, "\(line)") { try RelayCommand.parse(line) }
        }
    }
}
