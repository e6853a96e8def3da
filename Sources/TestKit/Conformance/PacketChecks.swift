import NighCore

extension TransportConformance {
    /// The checks of packets beside pipes. Of a transport without them they ask only that it opens no port.
    static let packetChecks = [
        ConformanceCheck(
            "packets-arrive",
            "a packet of 1,200 bytes arrives whole and unchanged, from the source of the sender's place"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            guard try hasPackets(dialled) else { return }
            let first = try PortProbe(beside: dialled, prefix: 0x0102_0304_0506_0708)
            let second = try PortProbe(beside: accepted, prefix: 0x1112_1314_1516_1718)
            for (from, to) in [(first, second), (second, first)] {
                for count in [1, 500, 1_192] {
                    to.forgetPackets()
                    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ count) }
                    let (sent, arrived) = try from.sendUntilItArrives(bytes, to: to)
                    try testbed.expect(
                        arrived.bytes == sent, "a packet of \(sent.count) bytes arrived with other bytes")
                    try testbed.expect(
                        arrived.source == to.source(of: from.place), "a packet came from another source")
                }
            }
        },
        ConformanceCheck(
            "packets-after-close", "after a port or its pipe was closed, no packet is delivered"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for withPipe in [false, true] {
                let (dialled, accepted) = try testbed.connect(client, server)
                guard try hasPackets(dialled) else { return }
                let sender = try PortProbe(beside: dialled, prefix: 1)
                let receiver = try PortProbe(beside: accepted, prefix: 2)
                _ = try sender.sendUntilItArrives([1], to: receiver)
                for _ in 0..<10 { try sender.send([2], to: receiver) }
                try receiver.close(withPipe: withPipe)
                for _ in 0..<10 { try sender.send([3], to: receiver) }
                try testbed.waitQuietTime()
                // The pipe goes on without its port.
                if !withPipe {
                    try dialled.send(tag: 1, upTo: 10, pieceLimit: 10)
                    try testbed.wait("bytes arrive after the port was closed") { accepted.received == 10 }
                }
                try dialled.close(.now)
            }
        },
        ConformanceCheck(
            "packets-of-their-pipe", "of pipes between the same hosts, each gets its own packets alone"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            let pipes = try (0..<min(testbed.rig.pipesAtOnce, 3)).map { _ in
                try testbed.connect(client, server)
            }
            guard try hasPackets(pipes[0].dialled) else { return }
            let ports = try pipes.enumerated().map { index, pipe in
                (
                    dialled: try PortProbe(beside: pipe.dialled, prefix: UInt64(2 * index + 1)),
                    accepted: try PortProbe(beside: pipe.accepted, prefix: UInt64(2 * index + 2))
                )
            }
            for (index, pair) in ports.enumerated() {
                _ = try pair.dialled.sendUntilItArrives([UInt8(index)], to: pair.accepted)
                _ = try pair.accepted.sendUntilItArrives([UInt8(index)], to: pair.dialled)
            }
            for (index, pair) in ports.enumerated() {
                for packet in pair.dialled.packets + pair.accepted.packets {
                    try testbed.expect(
                        packet.bytes.last == UInt8(index), "a pipe got the packets of another")
                }
            }
        },
    ]

    /// Whether a transport has packets. If not, its pipes must not have a port either.
    private static func hasPackets(_ pipe: PipeProbe) throws -> Bool {
        guard !pipe.owner.transport.capabilities.datagrams else { return true }
        let isOpened = try pipe.call { $0.openDatagrams() != nil }
        try pipe.owner.testbed.expect(
            !isOpened, "openDatagrams returned a port, although capabilities.datagrams is false")
        return false
    }
}
