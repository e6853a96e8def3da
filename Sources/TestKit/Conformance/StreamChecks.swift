import NighCore

extension TransportConformance {
    static let streamChecks = [
        ConformanceCheck(
            "both-ways",
            "1 MiB each way at once, in writes of random sizes, arrives whole, in order and unchanged"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            let size = 1024 * 1024
            try dialled.send(tag: 1, upTo: size, pieceLimit: 20_000)
            try accepted.send(tag: 2, upTo: size, pieceLimit: 3_000)
            try bench.wait("1 MiB each way", while: { [dialled.received, accepted.received] }) {
                dialled.received == size && accepted.received == size
            }
            try bench.settle()
            try bench.expect(dialled.received == size && accepted.received == size, "more came than was sent")
        },
        ConformanceCheck("tiny-writes", "writes of one byte arrive as any others") { bench in
            let (dialled, accepted) = try bench.pair()
            try dialled.send(tag: 1, upTo: 3000, pieceLimit: 1)
            try accepted.send(tag: 2, upTo: 3000, pieceLimit: 1)
            try bench.wait("3000 bytes each way") { dialled.received == 3000 && accepted.received == 3000 }
        },
        ConformanceCheck("huge-write", "a very large write (32 MiB) arrives, whatever writableBytes says") {
            bench in
            let (dialled, accepted) = try bench.pair()
            let size = bench.rig.bulkByteCount
            try dialled.sendAtOnce(tag: 1, upTo: size)
            try bench.wait("\(size) bytes written at once", while: { accepted.received }) {
                accepted.received == size
            }
            try dialled.send(tag: 1, upTo: size + 10, pieceLimit: 10)
            try bench.wait("what is written after it") { accepted.received == size + 10 }
        },
        ConformanceCheck("counters", "a pipe counts what it took and what it handed over") { bench in
            let (dialled, accepted) = try bench.pair()
            try dialled.send(tag: 1, upTo: 5000, pieceLimit: 500)
            try bench.wait("5000 bytes") { accepted.received == 5000 }
            let sent = try dialled.call { $0.counters }
            let received = try accepted.call { $0.counters }
            try bench.expect(sent.bytesWritten == 5000, "bytesWritten is \(sent.bytesWritten), not 5000")
            try bench.expect(
                received.bytesReceived == 5000, "bytesReceived is \(received.bytesReceived), not 5000")
            try bench.expect(
                sent.bytesReceived == 0 && received.bytesWritten == 0, "the directions are mixed up")
        },
        ConformanceCheck(
            "two-listeners",
            "two transports listen on one network at once, and a dial reaches the one it means",
            needs: ConformanceNeeds(ends: 3)
        ) { bench in
            let first = try bench.listener()
            let second = try bench.listener()
            let client = try bench.station()
            for (server, other, tag) in [(second, first, 1), (first, second, 2)]
                as [(Station, Station, UInt8)]
            {
                let before = other.acceptedPipes.count
                let (dialled, accepted) = try bench.connect(client, server)
                try dialled.send(tag: tag, upTo: 100, pieceLimit: 100)
                try bench.wait("the bytes arrive at the dialled one") { accepted.received == 100 }
                try bench.expect(other.acceptedPipes.count == before, "the other listener got the pipe")
            }
        },
        ConformanceCheck(
            "both-dial", "two transports that listen and dial each other at once get two pipes",
            needs: ConformanceNeeds(pipes: 2, eachWay: true)
        ) { bench in
            let first = try bench.listener()
            let second = try bench.listener()
            let there = try first.dial(second.listening[0])
            let back = try second.dial(first.listening[0])
            try bench.wait("both dials open") {
                first.dialledPipe(there) != nil && second.dialledPipe(back) != nil
                    && first.acceptedPipes.count == 1 && second.acceptedPipes.count == 1
            }
            try first.dialledPipe(there)?.send(tag: 1, upTo: 10, pieceLimit: 3)
            try second.dialledPipe(back)?.send(tag: 2, upTo: 20, pieceLimit: 3)
            try bench.wait("each carries its own") {
                second.acceptedPipes[0].received == 10 && first.acceptedPipes[0].received == 20
            }
        },
    ]
}
