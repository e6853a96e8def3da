import NighCore

extension TransportConformance {
    static let backPressureChecks = [
        ConformanceCheck(
            "pressure-dialled-writes",
            "a pausing reader backs up the writer at the dialled end, which is notified when it may continue"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try checkBackPressure(testbed, writer: dialled, reader: accepted)
        },
        ConformanceCheck(
            "pressure-accepted-writes",
            "a pausing reader backs up the writer at the accepted end, which is notified when it may continue"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try checkBackPressure(testbed, writer: accepted, reader: dialled)
        },
        ConformanceCheck(
            "pause-and-resume",
            "a paused pipe reports nothing; repeated calls do not add up; the other direction continues"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try accepted.pause()
            try accepted.pause()
            try testbed.waitQuietTime()
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 100)
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 100)
            try testbed.wait("the other direction") { dialled.received == 1000 }
            try testbed.waitQuietTime()
            try testbed.expect(
                accepted.received == 0, "\(accepted.received) bytes were reported while paused")
            try accepted.resume()
            try testbed.wait("all, after one resume") { accepted.received == 1000 }
            try accepted.resume()
            try accepted.pause()
            try accepted.resume()
            try dialled.send(tag: 1, upTo: 2000, pieceLimit: 100)
            try testbed.wait("more, after another") { accepted.received == 2000 }
        },
        ConformanceCheck(
            "close-held-up", "a backed-up writer may close, and the reader is notified"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for mode in [PipeCloseMode.now, .afterWriting] {
                let (dialled, accepted) = try testbed.connect(client, server)
                try fill(testbed, writer: dialled, reader: accepted)
                try dialled.close(mode)
                try accepted.resume()
                try testbed.wait("the reader is notified of the close") { accepted.isOver }
                try accepted.close(.now)
                guard mode == .afterWriting else { continue }
                try testbed.expect(
                    accepted.received == dialled.sent,
                    "\(accepted.received) of \(dialled.sent) bytes arrived before the close")
            }
        },
        ConformanceCheck(
            "close-while-writer-waits", "a paused reader may close, and the backed-up writer is notified"
        ) { testbed in
            let (dialled, accepted) = try testbed.connectedPair()
            try fill(testbed, writer: dialled, reader: accepted)
            try accepted.close(.now)
            try testbed.wait("the writer is notified of the close") { dialled.isOver }
        },
    ]

    /// Pauses `reader`, and writes until the pipe is backed up.
    static func fill(_ testbed: Testbed, writer: PipeProbe, reader: PipeProbe) throws {
        let mostHeld = 2 * testbed.rig.bulkByteCount
        try reader.pause()
        try writer.send(tag: 1, upTo: mostHeld, pieceLimit: 64 * 1024)
        try testbed.wait("writableBytes reaches zero for a reader that has paused") { writer.isBackedUp }
        // Bytes that are under way may still free some room. The writer then fills that too, until nothing moves.
        var sent = -1
        while sent != writer.sent {
            sent = writer.sent
            try testbed.waitQuietTime()
        }
        try testbed.expect(sent < mostHeld, "\(mostHeld) bytes were accepted for a reader that has paused")
    }

    private static func checkBackPressure(_ testbed: Testbed, writer: PipeProbe, reader: PipeProbe) throws {
        let before = ProcessGauge.residentBytes
        try fill(testbed, writer: writer, reader: reader)
        let grown = ProcessGauge.residentBytes - before
        try testbed.expect(
            grown < 4 * testbed.rig.bulkByteCount,
            "memory grew by \(grown) bytes for a reader that has paused")
        let held = writer.sent
        let waiting = try writer.call { $0.counters.bytesWaiting }
        try testbed.expect(
            waiting <= held - reader.received, "bytesWaiting is \(waiting), more than can wait")
        let seen = writer.writableCount
        try reader.resume()
        try testbed.wait("pipeBecameWritable once the reader reads again") { writer.writableCount > seen }
        try testbed.wait("all bytes that were written") {
            reader.received >= held
        }
        try reader.close(.now)
        try testbed.wait("the writer is notified of the close") { writer.isOver }
    }
}
