import NighCore

extension TransportConformance {
    static let closingChecks = [
        ConformanceCheck(
            "close-after-writing",
            "all bytes before close(.afterWriting) arrive; then pipeEnded or pipeClosed, without an error"
        ) { testbed in
            try sendBothWays(testbed, [1, 100_000, 3_000_000], thenClose: .afterWriting) { _, to, size in
                try testbed.wait("the other end is notified of the close", while: { to.received }) {
                    to.isOver
                }
                try testbed.expect(
                    to.received == size, "\(to.received) of \(size) bytes arrived before the end")
                for case .closed(let error?) in to.log {
                    throw Testbed.Failure(message: "the regular end came with an error: \(error)")
                }
                try to.close(.now)
            }
        },
        ConformanceCheck(
            "drained",
            "after close(.afterWriting) a pipe reports once that it is drained; after pipeClosed, nothing"
        ) { testbed in
            try sendBothWays(testbed, [0, 1, 200_000], thenClose: .afterWriting) { from, to, size in
                try from.close(.now)
                try testbed.wait("the pipe reports that it is drained") { from.isDrained }
                try testbed.wait("the other end is notified of the close") { to.isOver }
                try testbed.expect(
                    to.received == size, "\(to.received) of \(size) bytes arrived before the end")
                if try to.close(.afterWriting) {
                    try testbed.wait("the other end is also drained") { to.isDrained }
                }
            }
            try testbed.waitQuietTime()
        },
        ConformanceCheck(
            "drained-held-up",
            "a pipe with unread bytes is drained when they are read or the reader closes, and not before"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for isRead in [true, false] {
                let (dialled, accepted) = try testbed.connect(client, server)
                try fill(testbed, writer: dialled, reader: accepted)
                try dialled.close(.afterWriting)
                try testbed.waitQuietTime()
                try testbed.expect(!dialled.isDrained, "the pipe was drained while the reader paused")
                if isRead { try accepted.resume() } else { try accepted.close(.now) }
                try testbed.wait("the pipe reports that it is drained") { dialled.isDrained }
                guard isRead else { continue }
                try testbed.wait("the reader is notified of the close") { accepted.isOver }
                try accepted.close(.now)
            }
        },
        ConformanceCheck("close-now", "close(.now) is reported to the other end, whatever is under way") {
            testbed in
            try sendBothWays(testbed, [0, 500_000], thenClose: .now) { _, to, _ in
                try testbed.wait("the other end is notified of the close") { to.isOver }
                try to.close(.now)
            }
        },
        ConformanceCheck(
            "close-twice", "only the first close counts; calls on a closed pipe do nothing and break nothing"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            let (dialled, accepted) = try testbed.connect(client, server)
            try dialled.sendAtOnce(tag: 1, upTo: 200_000, thenClose: .afterWriting)
            try dialled.close(.now)
            try dialled.close(.afterWriting)
            try dialled.pause()
            try dialled.resume()
            try dialled.sendAtOnce(tag: 1, upTo: 300_000)
            try testbed.wait("the end of the stream") { accepted.isOver }
            try testbed.expect(accepted.received == 200_000, "\(accepted.received) bytes arrived, not 200000")
            try accepted.close(.now)
            try accepted.close(.now)
            _ = try accepted.call { $0.writableBytes + $0.counters.bytesReceived }
            try testbed.waitQuietTime()
        },
        ConformanceCheck(
            "quiet-after-close",
            "after close the pipe reports nothing but pipeDrained, whatever the other end still does"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try accepted.send(tag: 2, upTo: 400_000, pieceLimit: 10_000)
            try dialled.close(.now)
            let count = dialled.log.count
            try accepted.sendAtOnce(tag: 2, upTo: 500_000)
            try testbed.wait("the other end is notified of the close") { accepted.isOver }
            try accepted.close(.now)
            try testbed.waitQuietTime()
            try testbed.expect(dialled.log.count == count, "\(dialled.log.suffix(2)) after close")
        },
        ConformanceCheck("close-both", "both ends may close at once, with bytes under way") { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for mode in [PipeCloseMode.now, .afterWriting] {
                let (dialled, accepted) = try testbed.connect(client, server)
                try dialled.sendAtOnce(tag: 1, upTo: 50_000, thenClose: mode)
                try accepted.sendAtOnce(tag: 2, upTo: 50_000, thenClose: mode)
                try testbed.waitQuietTime()
            }
        },
        ConformanceCheck(
            "order-of-events", "bytes come before the end, the end before pipeClosed, and pipeClosed last"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try dialled.sendAtOnce(tag: 1, upTo: 10_000, thenClose: .afterWriting)
            try testbed.wait("the end") { accepted.isOver }
            try testbed.waitQuietTime()
            let log = accepted.log.filter { $0 != .writable }
            let isInOrder =
                log == [.bytes, .ended] || log == [.bytes, .closed(nil)]
                || log == [.bytes, .ended, .closed(nil)]
            try testbed.expect(isInOrder, "the order was \(log)")
        },
        ConformanceCheck(
            "shutdown",
            "shutdown closes pipes, listener, search and dials at once, and nothing is reported afterwards"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            try client.advertise()
            try client.browse()
            let (dialled, accepted) = try testbed.connect(client, server)
            try accepted.send(tag: 2, upTo: 300_000, pieceLimit: 10_000)
            if let silent = testbed.rig.silentAddress {
                _ = try client.dial(silent, timeout: .milliseconds(5))
            }
            _ = try client.dial(Testbed.address(in: server.listening))
            let address = client.listening.first
            try client.shutdown()
            let count = dialled.log.count
            try testbed.wait("the other end is notified of the shutdown") { accepted.isOver }
            try server.call { $0.stopAdvertising() }
            if let address {
                let late = try server.dial(address, timeout: testbed.rig.timeout / 2)
                try testbed.wait("a dial to it fails") {
                    server.failure(late) != nil || server.dialledPipe(late)?.isOver == true
                }
            }
            try testbed.waitQuietTime()
            try testbed.expect(dialled.log.count == count, "\(dialled.log.suffix(2)) after shutdown")
        },
    ]

    /// Sends each number of bytes over new pipes, first from the dialled end and then from the accepted one. Closes the
    /// sending end in the same turn, and calls `check` with both ends.
    private static func sendBothWays(
        _ testbed: Testbed, _ sizes: [Int], thenClose mode: PipeCloseMode,
        _ check: (_ from: PipeProbe, _ to: PipeProbe, _ size: Int) throws -> Void
    ) throws {
        let server = try testbed.startListener()
        let client = try testbed.startTransport()
        for size in sizes {
            for isDialledEnd in [true, false] {
                let (dialled, accepted) = try testbed.connect(client, server)
                let (from, to) = isDialledEnd ? (dialled, accepted) : (accepted, dialled)
                try from.sendAtOnce(tag: 1, upTo: size, thenClose: mode)
                try check(from, to, size)
            }
        }
    }
}
