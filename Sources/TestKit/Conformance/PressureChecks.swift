import NighCore

extension TransportConformance {
    static let pressureChecks = [
        ConformanceCheck(
            "pressure-dialled-writes",
            "a reader that pauses holds up the writer at the dialled end, which is told when it may go on"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try checkBackPressure(bench, writer: dialled, reader: accepted)
        },
        ConformanceCheck(
            "pressure-accepted-writes",
            "a reader that pauses holds up the writer at the accepted end, which is told when it may go on"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try checkBackPressure(bench, writer: accepted, reader: dialled)
        },
        ConformanceCheck(
            "pause-and-resume", "a paused pipe is quiet; calls do not add up; the other direction goes on"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try accepted.pause()
            try accepted.pause()
            try bench.settle()
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 100)
            try bench.wait("the other direction") { dialled.received == 1000 }
            try bench.settle()
            try bench.expect(accepted.received == 0, "\(accepted.received) bytes were told while paused")
            try accepted.resume()
            try bench.wait("all, after one resume") { accepted.received == 1000 }
            try accepted.resume()
            try accepted.pause()
            try accepted.resume()
            try dialled.send(tag: 1, upTo: 2000, pieceLimit: 100)
            try bench.wait("more, after another") { accepted.received == 2000 }
        },
        ConformanceCheck(
            "close-held-up", "a writer that is held up may close, and the reader learns of it"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for manner in [PipeCloseManner.now, .afterWriting] {
                let (dialled, accepted) = try bench.connect(client, server)
                try fill(bench, writer: dialled, reader: accepted)
                try dialled.close(manner)
                try accepted.resume()
                try bench.wait("the reader learns of the close") { accepted.isOver }
                try accepted.close(.now)
                guard manner == .afterWriting else { continue }
                try bench.expect(
                    accepted.received == dialled.sent,
                    "\(accepted.received) of \(dialled.sent) bytes came before")
            }
        },
        ConformanceCheck(
            "close-while-writer-waits", "a paused reader may close, and the writer held up by it is told"
        ) { bench in
            let (dialled, accepted) = try bench.pair()
            try fill(bench, writer: dialled, reader: accepted)
            try accepted.close(.now)
            try bench.wait("the writer learns of the close") { dialled.isOver }
        },
    ]

    /// Pauses `reader`, and writes until the pipe is backed up.
    static func fill(_ bench: Bench, writer: PipeProbe, reader: PipeProbe) throws {
        let mostHeld = 2 * bench.rig.bulkByteCount
        try reader.pause()
        try writer.send(tag: 1, upTo: mostHeld, pieceLimit: 64 * 1024)
        try bench.wait("writableBytes reaches zero for a reader that has paused") { writer.isHeldUp }
        // Bytes that are under way may still free some room. The writer then fills that too, until nothing moves.
        var sent = -1
        while sent != writer.sent {
            sent = writer.sent
            try bench.settle()
        }
        try bench.expect(sent < mostHeld, "\(mostHeld) bytes were taken for a reader that has paused")
    }

    private static func checkBackPressure(_ bench: Bench, writer: PipeProbe, reader: PipeProbe) throws {
        let before = ProcessGauge.residentBytes
        try fill(bench, writer: writer, reader: reader)
        let grown = ProcessGauge.residentBytes - before
        try bench.expect(
            grown < 4 * bench.rig.bulkByteCount, "memory grew by \(grown) bytes for a reader that has paused")
        let held = writer.sent
        let waiting = try writer.call { $0.counters.bytesWaiting }
        try bench.expect(waiting <= held - reader.received, "bytesWaiting is \(waiting), more than can wait")
        let seen = writer.writableCount
        try reader.resume()
        try bench.wait("pipeBecameWritable once the reader reads again") { writer.writableCount > seen }
        try bench.wait("all that was written") {
            reader.received >= held
        }
        try reader.close(.now)
        try bench.wait("the writer learns of the close") { writer.isOver }
    }
}
