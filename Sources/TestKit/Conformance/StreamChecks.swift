import NighCore

extension TransportConformance {
    static let streamChecks = [
        ConformanceCheck(
            "both-ways",
            "1 MiB each way at once, in writes of random sizes, arrives whole, in order and unchanged"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            let size = 1024 * 1024
            try dialled.send(tag: 1, upTo: size, pieceLimit: 20_000)
            try accepted.send(tag: 2, upTo: size, pieceLimit: 3_000)
            try testbed.wait("1 MiB each way", while: { [dialled.received, accepted.received] }) {
                dialled.received == size && accepted.received == size
            }
            try testbed.waitQuietTime()
            try testbed.expect(
                dialled.received == size && accepted.received == size, "more bytes arrived than were sent")
        },
        ConformanceCheck("tiny-writes", "writes of one byte arrive like any others") { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try dialled.send(tag: 1, upTo: 3000, pieceLimit: 1)
            try accepted.send(tag: 2, upTo: 3000, pieceLimit: 1)
            try testbed.wait("3000 bytes each way") { dialled.received == 3000 && accepted.received == 3000 }
        },
        ConformanceCheck("huge-write", "a very large write (32 MiB) arrives, whatever writableBytes says") {
            testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            let size = testbed.rig.bulkByteCount
            try dialled.sendAtOnce(tag: 1, upTo: size)
            try testbed.wait("\(size) bytes written at once", while: { accepted.received }) {
                accepted.received == size
            }
            try dialled.send(tag: 1, upTo: size + 10, pieceLimit: 10)
            try testbed.wait("the bytes that are written after it") { accepted.received == size + 10 }
        },
        ConformanceCheck("counters", "a pipe counts the bytes that it took and that it delivered") {
            testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try dialled.send(tag: 1, upTo: 5000, pieceLimit: 500)
            try testbed.wait("5000 bytes") { accepted.received == 5000 }
            let sent = try dialled.call { $0.counters }
            let received = try accepted.call { $0.counters }
            try testbed.expect(sent.bytesWritten == 5000, "bytesWritten is \(sent.bytesWritten), not 5000")
            try testbed.expect(
                received.bytesReceived == 5000, "bytesReceived is \(received.bytesReceived), not 5000")
            try testbed.expect(
                sent.bytesReceived == 0 && received.bytesWritten == 0, "the directions are mixed up")
        },
        ConformanceCheck(
            "two-listeners",
            "two transports listen on one network at once, and a dial reaches the one that it addresses",
            needs: ConformanceNeeds(ends: 3)
        ) { testbed in
            let first = try testbed.startListener()
            let second = try testbed.startListener()
            let client = try testbed.startTransport()
            for (server, other, tag) in [(second, first, 1), (first, second, 2)]
                as [(TransportProbe, TransportProbe, UInt8)]
            {
                let before = other.acceptedPipes.count
                let (dialled, accepted) = try testbed.connect(client, server)
                try dialled.send(tag: tag, upTo: 100, pieceLimit: 100)
                try testbed.wait("the bytes arrive at the dialled one") { accepted.received == 100 }
                try testbed.expect(other.acceptedPipes.count == before, "the other listener got the pipe")
            }
        },
        ConformanceCheck(
            "both-dial", "two transports that listen and dial each other at once get two pipes",
            needs: ConformanceNeeds(pipes: 2, eachWay: true)
        ) { testbed in
            let first = try testbed.startListener()
            let second = try testbed.startListener()
            let there = try first.dial(Testbed.address(in: second.listening))
            let back = try second.dial(Testbed.address(in: first.listening))
            try testbed.wait("both dials open") {
                first.dialledPipe(there) != nil && second.dialledPipe(back) != nil
                    && first.acceptedPipes.count == 1 && second.acceptedPipes.count == 1
            }
            try first.dialledPipe(there)?.send(tag: 1, upTo: 10, pieceLimit: 3)
            try second.dialledPipe(back)?.send(tag: 2, upTo: 20, pieceLimit: 3)
            try testbed.wait("each pipe carries its own bytes") {
                second.acceptedPipes[0].received == 10 && first.acceptedPipes[0].received == 20
            }
        },
    ]
}
