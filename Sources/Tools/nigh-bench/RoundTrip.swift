import NighCore

/// Sends a message there and the same back, one at a time, from handler to handler.
struct RoundTrip {
    let loops: Company.Loops
    let size: Int
    var security = SessionSecurity.none

    func measure(warmUp: Int, until: Meter.Until) async throws -> Measurement {
        let meter = Meter(step: 16, warmUp: warmUp, until: until, timesRoundTrips: true)
        let payload = ByteSlice([UInt8](repeating: 0x6e, count: size))
        let (asking, answering) = (Player(payload), Player(payload))
        let company = try await Company.meet(
            on: loops, messageSize: size, security: security,
            handlers: .init(
                atSender: { _, _ in
                    meter.returned()
                    guard !meter.isDone else { return }
                    meter.departed()
                    asking.send()
                }, atReceivers: { bytes, _ in answering.send(back: bytes) },
                whenInterrupted: meter.fail))
        let (first, second) = (company.sender, company.receivers[0])
        second.loop.execute {
            answering.plays(at: second, with: first.id)
            first.loop.execute {
                asking.plays(at: first, with: second.id)
                meter.departed()
                asking.send()
            }
        }
        let measurement = try await meter.measurement
        await company.part()
        return measurement
    }

    /// One side. Confined to its session's loop; hence `@unchecked Sendable`.
    private final class Player: @unchecked Sendable {
        private let payload: ByteSlice
        // Not weak: the session's `close` ends the cycle with the session's handler.
        @exclusivity(unchecked) private var side: (session: Session, other: PeerID)?

        init(_ payload: ByteSlice) { self.payload = payload }

        func plays(at session: Session, with other: PeerID) { side = (session, other) }

        @inline(__always)
        func send() {
            guard let side else { return }
            Bursts.demand { try side.session.trySend(payload, to: side.other) }
        }

        @inline(__always)
        func send(back bytes: RawSpan) {
            guard let side else { return }
            bytes.withUnsafeBytes { bytes in
                Bursts.demand { try side.session.trySend(bytes, to: side.other) }
            }
        }
    }
}
