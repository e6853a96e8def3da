import NighCore
import NighMemory
import NighTestKit
import Testing

/// Tests the faults of packets beside a pipe, in virtual time.
@Suite("Faults of packets") struct FaultyPacketsTests {
    /// A pair whose client injects faults, and a port beside each end of its pipe.
    private final class Ports: DatagramHandler {
        let pair: Pair
        let client: PipeRecorder
        let server: PipeRecorder
        private let sending: any DatagramPort
        private let receiving: any DatagramPort
        /// The numbers of the packets that have arrived at the server, and when.
        private(set) var arrivals: [(number: Int, time: Moment)] = []

        var numbers: [Int] { arrivals.map(\.number) }

        init(_ faults: String) throws {
            let plan = try FaultPlan(parsing: faults)
            pair = try Pair(client: { FaultyTransport($0, plan: plan) })
            (client, server) = try pair.connect()
            sending = try #require(client.pipe.openDatagrams())
            receiving = try #require(server.pipe.openDatagrams())
            receiving.start(handler: self, prefix: nil)
        }

        func datagramPort(
            _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer,
            from source: DatagramSource
        ) { arrivals.append((Int(packet.loadUnaligned(as: UInt32.self)), pair.loop.now)) }

        /// Sends the packets with these numbers, of `count` bytes each, with a pause after each.
        func send(_ numbers: Range<UInt32>, count: Int = 100, pause: Duration = .zero) throws {
            let end = try #require(sending.source(of: []))
            for number in numbers {
                let packet = withUnsafeBytes(of: number, Array.init) + [UInt8](repeating: 0, count: count - 4)
                _ = packet.withUnsafeBytes { sending.send($0, to: end) }
                if pause > .zero { try pair.loop.run(for: pause) }
            }
        }
    }

    @Test func `A share of the packets is overtaken by later ones, the same at each run`() throws {
        func run(_ seed: Int) throws -> [Int] {
            let ports = try Ports("reorder=1/10,seed=\(seed)")
            try ports.send(0..<1_000, pause: .milliseconds(5))
            try ports.pair.loop.run(for: .milliseconds(100))
            return ports.numbers
        }
        let numbers = try run(1)
        #expect(numbers.sorted() == Array(0..<1_000))
        var highest = -1
        var lateBy: [Int] = []
        for number in numbers {
            if number < highest { lateBy.append(highest - number) }
            highest = max(highest, number)
        }
        #expect((70...130).contains(lateBy.count), "\(lateBy.count)")
        // 20 to 60 ms, in which 4 to 12 packets are sent.
        #expect(lateBy.allSatisfy { (3...12).contains($0) }, "\(lateBy)")
        #expect(try run(1) == numbers)
        #expect(try run(2) != numbers)
    }

    @Test(arguments: [("20%", 8, 8.0), ("5%", 3, 3.0), ("75%", 1, 3.0), ("2%", 1, 1.0)])
    func `Losses come in bursts of the mean length that the plan says, or in the shortest that there can be`(
        _ loss: String, _ length: Int, _ expected: Double
    ) throws {
        let ports = try Ports("loss=\(loss),loss-burst=\(length),direction=out")
        let count = 60_000
        try ports.send(0..<UInt32(count), pause: .microseconds(1))
        let gaps = zip([-1] + ports.numbers, ports.numbers + [count]).map { $1 - $0 - 1 }.filter { $0 > 0 }
        let lost = gaps.reduce(0, +)
        let share = Double(lost) / Double(count)
        let wanted = try #require(FaultPlan(parsing: "loss=\(loss)").loss)
        #expect(abs(share / (Double(wanted.hits) / Double(wanted.outOf)) - 1) < 0.15, "\(share)")
        #expect(abs(Double(lost) / Double(gaps.count) / expected - 1) < 0.15)
    }

    @Test func `Bursts change nothing where all packets are lost, or none`() throws {
        for (faults, count) in [("loss=all,loss-burst=4", 0), ("loss-burst=4", 50)] {
            let ports = try Ports(faults)
            try ports.send(0..<50, pause: .milliseconds(1))
            #expect(ports.numbers.count == count)
        }
    }

    @Test func `Packets take their turn at the plan's rate, and are lost if they would wait too long`() throws
    {
        let ports = try Ports("rate=10000,direction=out")
        let start = ports.pair.loop.now
        try ports.send(0..<100, count: 1_000)
        // A stream of bytes takes its turn behind them.
        ports.client.send([UInt8](repeating: 1, count: 500))
        try ports.pair.loop.run(for: .milliseconds(349))
        // At 0, 100 and 200 ms, for 100 ms each.
        #expect(ports.numbers == [0, 1, 2])
        #expect(ports.arrivals.map { $0.time - start } == [100, 200, 300].map { .milliseconds($0) })
        #expect(ports.server.received.isEmpty)
        try ports.pair.loop.run(for: .milliseconds(1))
        #expect(ports.server.received.count == 500)
        // In the long run no more than the rate passes.
        try ports.send(100..<300, count: 1_000, pause: .milliseconds(20))
        #expect((40...46).contains(ports.numbers.count), "\(ports.numbers.count)")
    }

    @Test func `A stream that takes the whole rate delays packets, and does not keep them out`() throws {
        let ports = try Ports("rate=10000,direction=out")
        let start = ports.pair.loop.now
        ports.client.send([UInt8](repeating: 1, count: 10_000))
        try ports.send(0..<1, count: 1_000)
        try ports.pair.loop.run(for: .milliseconds(999))
        #expect(ports.arrivals.map { $0.time - start } == [.milliseconds(300)])
        // The next bytes wait for the packet, too.
        ports.client.send([UInt8](repeating: 1, count: 500))
        try ports.pair.loop.run(for: .milliseconds(150))
        #expect(ports.server.received.count == 10_000)
        try ports.pair.loop.run(for: .milliseconds(2))
        #expect(ports.server.received.count == 10_500)
    }
}
