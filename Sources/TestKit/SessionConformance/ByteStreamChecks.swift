import NighCore

// Streams of bytes beside messages.

extension SessionConformance {
    static let byteStreamChecks = [
        ConformanceCheck(
            "streams",
            "several streams are echoed at once, beside one that nobody reads, and messages pass by"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            let unread = try testbed.openStream("unread", from: first, to: second)
            testbed.startTask(for: first) { try? await unread.own.write(Testbed.content(1 << 20)) }
            let echoes = try (0..<4).map { number in
                try testbed.echo(Testbed.content(40_000 + number), from: first, to: second)
            }
            let transfer = MessageTransfer(
                testbed, from: first, to: second, lengths: SessionConformance.lengths)
            for echo in echoes { try echo.value() }
            try transfer.finish()
            withExtendedLifetime(unread) {}
        },
        ConformanceCheck(
            "cut-in-streams",
            "streams whose links are cut again and again lose nothing, and nothing arrives twice"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            // By bytes, so that something is under way each time, however fast the wire is.
            try testbed.controlFaults(of: first) { $0.plan.cutAfterBytes = 50_000 }
            let echoes = [
                try testbed.echo(Testbed.content(400_000), from: first, to: second),
                try testbed.echo(Testbed.content(150_000), from: second, to: first),
            ]
            try testbed.waitForCuts(6, at: first, second)
            for echo in echoes { try echo.value() }
            try testbed.waitFor(.connected, first, second)
        },
        ConformanceCheck(
            "stream-cancelled", "a stream that one side gives up ends for the other, which learns why"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            let (own, theirs) = try testbed.openStream("given up", from: first, to: second)
            theirs.cancel(because: "enough")
            let outcome = PendingResult<NighError.Cause>("the end of a stream", on: testbed)
            testbed.startTask(for: first) {
                do throws(NighError) {
                    while try await own.read() != nil {}
                    outcome.complete(with: .failure(NighError(.receiving, .invalid("end of a stream"))))
                } catch {
                    outcome.complete(with: .success(error.cause))
                }
            }
            let cause = try outcome.value()
            try testbed.expect(cause == .streamCancelled("enough"), "the other side is told: \(cause)")
        },
    ]
}

extension Testbed {
    /// Waits until links that the faults of `first` cut were cut `count` times, then lets the next ones live.
    func waitForCuts(_ count: Int, at first: SessionProbe, _ second: SessionProbe) throws {
        try wait("\(count) cuts", while: { first.states(of: second.id).count }) {
            first.states(of: second.id).count { $0 == .reconnecting } >= count
        }
        try controlFaults(of: first) { $0.plan.cutAfterBytes = nil }
    }

    static func content(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8 &+ count) }
    }

    /// Opens a stream, and returns it and its other end.
    fileprivate func openStream(
        _ name: String, from first: SessionProbe, to second: SessionProbe
    ) throws -> (own: ByteStream, theirs: ByteStream) {
        let outcome = PendingResult<ByteStream>("opening a stream", on: self)
        first.session.openStream(named: name, to: second.id) { outcome.complete(with: $0) }
        let own = try outcome.value()
        try wait("the stream \(name) arrives") { second.stream(named: name, from: first.id) != nil }
        guard let theirs = second.stream(named: name, from: first.id) else {
            throw Failure(message: "the stream \(name) has gone")
        }
        return (own, theirs)
    }

    /// Sends bytes through a stream to the other side, which sends them back. The result comes once they have come
    /// back.
    fileprivate func echo(
        _ bytes: [UInt8], from first: SessionProbe, to second: SessionProbe
    ) throws -> PendingResult<Int> {
        let (own, theirs) = try openStream("echo \(bytes.count)", from: first, to: second)
        let outcome = PendingResult<Int>("the echo of \(bytes.count) bytes", on: self)
        start(for: second, outcome) { () async throws(NighError) in
            for try await piece in theirs { try await theirs.write(piece) }
            theirs.finish()
        }
        start(for: first, outcome) { () async throws(NighError) in
            try await own.write(bytes)
            own.finish()
        }
        start(for: first, outcome) { () async throws(NighError) in
            var echoed: [UInt8] = []
            for try await piece in own { echoed += piece.bytes }
            guard echoed == bytes else {
                throw NighError(.receiving, .invalid("echo: \(echoed.count) of \(bytes.count) bytes"))
            }
            outcome.complete(with: .success(echoed.count))
        }
        return outcome
    }

    /// Starts a task whose failure is the outcome.
    private func start(
        for probe: SessionProbe, _ outcome: PendingResult<Int>,
        _ work: @escaping @Sendable () async throws(NighError) -> Void
    ) {
        startTask(for: probe) {
            do throws(NighError) { try await work() } catch { outcome.complete(with: .failure(error)) }
        }
    }
}

extension SessionProbe {
    /// Returns the stream of this name that a peer has opened.
    fileprivate func stream(named name: String, from peer: PeerID) -> ByteStream? {
        for case .streamOpened(let stream) in events where stream.name == name && stream.peer == peer {
            return stream
        }
        return nil
    }
}
