import NighCore

extension TransportConformance {
    static let closingChecks = [
        ConformanceCheck(
            "close-after-writing",
            "everything written before close(.afterWriting) arrives; then pipeEnded or pipeClosed, without an error"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for size in [1, 100_000, 3_000_000] {
                for isDialledEnd in [true, false] {
                    let (dialled, accepted) = try bench.connect(client, server)
                    let (from, to) = isDialledEnd ? (dialled, accepted) : (accepted, dialled)
                    try from.sendAtOnce(tag: 1, upTo: size, thenClose: .afterWriting)
                    try bench.wait("the other end learns of the close") { to.isOver }
                    try bench.expect(
                        to.received == size, "\(to.received) of \(size) bytes came before the end")
                    for case .closed(let error?) in to.log {
                        throw Bench.Failure(words: "the good end came with an error: \(error)")
                    }
                    try to.close(.now)
                }
            }
        },
        ConformanceCheck(
            "drained",
            "after close(.afterWriting) a pipe says once that nothing of what was written waits; after pipeClosed it says nothing"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for size in [0, 1, 200_000] {
                for isDialledEnd in [true, false] {
                    let (dialled, accepted) = try bench.connect(client, server)
                    let (from, to) = isDialledEnd ? (dialled, accepted) : (accepted, dialled)
                    try from.sendAtOnce(tag: 1, upTo: size, thenClose: .afterWriting)
                    try from.close(.now)
                    try bench.wait("the pipe says that it is drained") { from.isDrained }
                    try bench.wait("the other end learns of the close") { to.isOver }
                    try bench.expect(
                        to.received == size, "\(to.received) of \(size) bytes came before the end")
                    if try to.close(.afterWriting) {
                        try bench.wait("the other end is drained, too") { to.isDrained }
                    }
                }
            }
            try bench.settle()
        },
        ConformanceCheck(
            "drained-held-up",
            "a pipe with bytes that nobody reads is drained when they have been read, or when the reader goes, and not before"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for isRead in [true, false] {
                let (dialled, accepted) = try bench.connect(client, server)
                try fill(bench, writer: dialled, reader: accepted)
                try dialled.close(.afterWriting)
                try bench.settle()
                try bench.expect(!dialled.isDrained, "the pipe was drained while nobody read")
                if isRead { try accepted.resume() } else { try accepted.close(.now) }
                try bench.wait("the pipe says that it is drained") { dialled.isDrained }
                guard isRead else { continue }
                try bench.wait("the reader learns of the close") { accepted.isOver }
                try accepted.close(.now)
            }
        },
        ConformanceCheck("close-now", "close(.now) is told to the other end, whatever was under way") {
            bench in
            let server = try bench.listener()
            let client = try bench.station()
            for size in [0, 500_000] {
                for isDialledEnd in [true, false] {
                    let (dialled, accepted) = try bench.connect(client, server)
                    let (from, to) = isDialledEnd ? (dialled, accepted) : (accepted, dialled)
                    try from.sendAtOnce(tag: 1, upTo: size, thenClose: .now)
                    try bench.wait("the other end learns of the close") { to.isOver }
                    try to.close(.now)
                }
            }
        },
        ConformanceCheck(
            "close-twice", "only the first close counts; calls on a closed pipe do nothing and break nothing"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            let (dialled, accepted) = try bench.connect(client, server)
            try dialled.sendAtOnce(tag: 1, upTo: 200_000, thenClose: .afterWriting)
            try dialled.close(.now)
            try dialled.close(.afterWriting)
            try dialled.pause()
            try dialled.resume()
            try dialled.sendAtOnce(tag: 1, upTo: 300_000)
            try bench.wait("the end of the stream") { accepted.isOver }
            try bench.expect(accepted.received == 200_000, "\(accepted.received) bytes came, not 200000")
            try accepted.close(.now)
            try accepted.close(.now)
            _ = try accepted.call { $0.writableBytes + $0.counters.bytesReceived }
            try bench.settle()
        },
        ConformanceCheck(
            "quiet-after-close",
            "after close the handler hears nothing but that the pipe is drained, whatever the other end still does"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try accepted.send(tag: 2, upTo: 400_000, pieceLimit: 10_000)
            try dialled.close(.now)
            let count = dialled.log.count
            try accepted.sendAtOnce(tag: 2, upTo: 500_000)
            try bench.wait("the other end learns of the close") { accepted.isOver }
            try accepted.close(.now)
            try bench.settle()
            try bench.expect(dialled.log.count == count, "\(dialled.log.suffix(2)) after close")
        },
        ConformanceCheck("close-both", "both ends may close at once, with bytes under way") { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for manner in [PipeCloseManner.now, .afterWriting] {
                let (dialled, accepted) = try bench.connect(client, server)
                try dialled.sendAtOnce(tag: 1, upTo: 50_000, thenClose: manner)
                try accepted.sendAtOnce(tag: 2, upTo: 50_000, thenClose: manner)
                try bench.settle()
            }
        },
        ConformanceCheck(
            "order-of-events", "bytes come before the end, the end before pipeClosed, and pipeClosed last"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try dialled.sendAtOnce(tag: 1, upTo: 10_000, thenClose: .afterWriting)
            try bench.wait("the end") { accepted.isOver }
            try bench.settle()
            let log = accepted.log.filter { $0 != .writable }
            let isInOrder =
                log == [.bytes, .ended] || log == [.bytes, .closed(nil)]
                || log == [.bytes, .ended, .closed(nil)]
            try bench.expect(isInOrder, "the order was \(log)")
        },
        ConformanceCheck(
            "shutdown",
            "shutdown closes pipes, listener, search and dials at once, and nothing is told afterwards"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            try client.advertise()
            try client.browse()
            let (dialled, accepted) = try bench.connect(client, server)
            try accepted.send(tag: 2, upTo: 300_000, pieceLimit: 10_000)
            if let silent = bench.rig.silentAddress { _ = try client.dial(silent, timeout: .milliseconds(5)) }
            _ = try client.dial(server.listening[0])
            let address = client.listening.first
            try client.shutdown()
            let count = dialled.log.count
            try bench.wait("the other end learns of it") { accepted.isOver }
            try server.call { $0.stopAdvertising() }
            if let address {
                let late = try server.dial(address, timeout: bench.rig.patience / 2)
                try bench.wait("a dial to it fails") {
                    server.failure(late) != nil || server.dialledPipe(late)?.isOver == true
                }
            }
            try bench.settle()
            try bench.expect(dialled.log.count == count, "\(dialled.log.suffix(2)) after shutdown")
        },
    ]
}
