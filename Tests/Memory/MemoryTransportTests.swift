import NighCore
import NighMemory
import NighTestKit
import Testing

struct MemoryTransportTests {
    @Test func `Advertisements are found changed and lost`() throws {
        let pair = try Pair()
        pair.client.transport.browse("test")
        try pair.loop.runQueued()
        pair.server.transport.updateAdvertisement(advertisement("Puma"))
        pair.server.transport.updateAdvertisement(advertisement("Puma"))
        try pair.loop.runQueued()
        pair.server.transport.stopAdvertising()
        try pair.loop.runQueued()
        #expect(
            pair.client.takeLog() == [
                "found memory://server Server", "changed memory://server Puma", "lost memory://server",
            ])
        #expect(pair.server.takeLog() == ["listening [memory://server]", "listening []"])
        pair.client.dial(Pair.serverAddress)
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == ["failed 1: nobody listens there"])
    }

    @Test func `A service is seen by its own browsers only`() throws {
        let pair = try Pair()
        pair.client.transport.browse("other")
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == [])
        pair.server.transport.advertise(advertisement("Server", service: "other"))
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == ["found memory://server Server"])
        pair.client.transport.browse("test")
        pair.server.transport.advertise(advertisement("Server"))
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == ["found memory://server Server"])
    }

    @Test func `A taken address is reported and taken over later`() throws {
        let loop = VirtualEventLoop()
        let hub = MemoryHub()
        let first = RecordedTransport(MemoryTransport(hub: hub, address: "x"), on: loop)
        let second = RecordedTransport(MemoryTransport(hub: hub, address: "x"), on: loop)
        first.transport.advertise(advertisement("First"))
        second.transport.advertise(advertisement("Second"))
        try loop.runQueued()
        #expect(second.takeLog().first?.contains("which is taken; leave out address=") == true)
        #expect(second.transport.diagnose().contains { $0.verdict == .fail })
        first.transport.shutdown()
        try loop.runQueued()
        #expect(second.takeLog() == ["listening [memory://x]"])
    }

    @Test func `An address of another scheme is refused`() throws {
        let pair = try Pair()
        pair.client.dial(TransportAddress(scheme: "tcp", value: "[::1]:1"))
        try pair.loop.runQueued()
        #expect(pair.client.takeLog() == ["failed 1: invalid address tcp://[::1]:1"])
    }

    @Test func `The registry creates the memory transport`() throws {
        var registry = TransportRegistry()
        try registry.register(MemoryTransport.registryEntry)
        #expect(try registry.make(TransportSpec(parsing: "memory")).scheme == "memory")
        let loop = VirtualEventLoop()
        let transports = try ["one", "two"].map {
            try registry.make(TransportSpec(parsing: "memory:hub=registry,address=\($0)"))
        }
        let recorders = transports.map { RecordedTransport($0, on: loop) }
        recorders[0].transport.advertise(advertisement("One"))
        recorders[1].transport.browse("test")
        try loop.runQueued()
        #expect(recorders[1].takeLog() == ["found memory://one One"])
        #expect(MemoryHub.named("registry") === MemoryHub.named("registry"))
        #expect(throws: NighError.self) { try registry.make(TransportSpec(parsing: "memory:address=a b")) }
        #expect(throws: NighError.self) { try registry.make(TransportSpec(parsing: "memory:port=1")) }
    }

    @Test func `On one loop the same calls give the same events`() throws {
        func run() throws -> [String] {
            let loop = VirtualEventLoop()
            let hub = MemoryHub()
            let plan = try FaultPlan(parsing: "delay=3ms,jitter=20ms,split=700,refuse=1/4,seed=11")
            let recorders = (0..<6).map { _ in
                RecordedTransport(FaultyTransport(MemoryTransport(hub: hub), plan: plan), on: loop)
            }
            for (number, recorder) in recorders.enumerated() {
                recorder.transport.advertise(advertisement("Peer \(number)"))
                recorder.transport.browse("test")
            }
            for number in 0..<40 {
                recorders[number % 6].dial(TransportAddress(scheme: "memory", value: "m\(number % 5 + 1)"))
                try loop.run(for: .milliseconds(5))
                for pipe in recorders.flatMap(\.recorder.pipes) {
                    pipe.send(Array(repeating: 1, count: 1 + number * 37))
                }
                if number == 30 { recorders[2].transport.shutdown() }
            }
            try loop.run(for: .milliseconds(10))
            return recorders.flatMap(\.log)
                + recorders.flatMap(\.recorder.pipes).map {
                    "\($0.receivedCount) in \($0.sliceCount), \($0.log)"
                }
        }
        let first = try run()
        #expect(first.count > 100)
        #expect(try run() == first)
    }

    /// The suite checks the outer one, so the inner one is itself the transport that must keep to the contract.
    @Test(arguments: TransportConformance.checks)
    func `A checked transport keeps to the contract, and finds no breach in the memory transport`(
        _ check: ConformanceCheck
    ) {
        var made: [CheckedTransport] = []
        let outcome = check.run {
            .memory(isVirtual: true) {
                made.append(CheckedTransport($0))
                return made[made.count - 1]
            }
        }
        #expect(outcome.verdict == .passed)
        #expect(made.compactMap(\.breach).isEmpty)
    }
}
