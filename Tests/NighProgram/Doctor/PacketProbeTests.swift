import NighCore
import NighTestKit
import Testing

@testable import nigh

/// A probe at each end of a link, with packets that a test carries in virtual time.
@Suite("A probe for datagrams") struct PacketProbeTests {
    /// Keeps what is sent until it is taken.
    private final class Port: DatagramPort {
        let place: [UInt8] = []
        let longestPacket = DatagramPacket.leastLongest
        private var sent: [[UInt8]] = []

        func start(handler: any DatagramHandler, prefix: UInt64?) {}
        func source(of place: [UInt8]) -> DatagramSource? { DatagramSource(1) }
        func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
            sent.append(Array(packet))
            return .sent
        }
        func close() {}

        func takeSent() -> [[UInt8]] {
            defer { sent = [] }
            return sent
        }
    }

    private final class Pair {
        private let loop: VirtualEventLoop
        private let ports: [Port]
        private let probes: [PacketProbe]
        /// Whether this packet of this end arrives.
        var passes: (Int, [UInt8]) -> Bool = { _, _ in true }

        init() {
            let loop = VirtualEventLoop()
            let ports = [Port(), Port()]
            self.loop = loop
            self.ports = ports
            probes = ports.map { port in PacketProbe(port, on: loop, whenReceived: {}) }
        }

        var outcomes: [LinkProbe.PacketOutcome?] { probes.map(\.outcome) }

        func exchangeOffers() {
            for index in 0..<2 {
                probes[index].accept(
                    probes[1 - index].offer,
                    ciphers: (
                        sealing: DatagramCipher(.checksum, secret: nil, isSealing: true),
                        opening: DatagramCipher(.checksum, secret: nil, isSealing: false)
                    ))
            }
        }

        /// Gives the packets of each end to the other one, and lets time pass.
        func run(_ span: Moment.Span) throws {
            let end = loop.now + span
            while true {
                while exchange() {}
                let next = min(probes[0].deadline, probes[1].deadline)
                guard next <= end else { break }
                try loop.run(until: max(loop.now, next))
            }
            try loop.run(until: end)
        }

        private func exchange() -> Bool {
            for probe in probes { probe.proceed() }
            let sent = ports.map { $0.takeSent() }
            for (index, packets) in sent.enumerated() {
                for var packet in packets where passes(index, packet) {
                    packet.withUnsafeMutableBytes { bytes in
                        probes[1 - index].datagramPort(
                            ports[1 - index], received: bytes, from: DatagramSource(1))
                    }
                }
            }
            return sent.contains { !$0.isEmpty }
        }
    }

    @Test func `does not give up while packets that did not pass at first may still pass`() throws {
        let pair = Pair()
        pair.passes = { _, _ in false }
        pair.exchangeOffers()
        try pair.run(.seconds(2))
        #expect(pair.outcomes == [nil, nil])
        pair.passes = { _, _ in true }
        try pair.run(.seconds(2))
        #expect(pair.outcomes == [.passed(.zero), .passed(.zero)])
    }

    @Test(arguments: [0, 2, 3]) func `sends three pings before it reports that none comes back`(_ count: Int)
        throws
    {
        let pair = Pair()
        var lost = [0, 0]
        pair.passes = { index, packet in
            // The path's own probes are long.
            let isShort = packet.count < DatagramPacket.leastLongest
            let isPing = isShort && packet[DatagramPacket.headerByteCount] == 1
            guard isPing, lost[index] < count else { return true }
            lost[index] += 1
            return false
        }
        pair.exchangeOffers()
        try pair.run(.seconds(20))
        let expected: LinkProbe.PacketOutcome = count < 3 ? .passed(.zero) : .blocked
        #expect(pair.outcomes == [expected, expected])
    }

    @Test(arguments: [true, false])
    func `tells packets that do not pass from those that the other side does not offer`(isOffered: Bool)
        throws
    {
        let pair = Pair()
        pair.passes = { _, _ in false }
        if isOffered { pair.exchangeOffers() }
        try pair.run(.seconds(10))
        let expected: LinkProbe.PacketOutcome = isOffered ? .blocked : .notOffered
        #expect(pair.outcomes == [expected, expected])
    }
}
