import NighCore

/// Sends a message there and the same back, one at a time, from handler to handler.
struct RoundTrip {
    let loops: SessionGroup.Loops
    let size: Int
    var security = SessionSecurity.none

    func measure(warmUp: Int, until: Meter.Until) async throws -> Measurement {
        let meter = Meter(step: 16, warmUp: warmUp, until: until, timesRoundTrips: true)
        let payload = ByteSlice([UInt8](repeating: 0x6e, count: size))
        let (client, server) = (Endpoint(payload), Endpoint(payload))
        let group = try await SessionGroup.connect(
            on: loops, messageSize: size, security: security,
            handlers: .init(
                atSender: { _, _ in
                    meter.roundTripEnded()
                    guard !meter.isDone else { return }
                    meter.roundTripBegan()
                    client.send()
                }, atReceivers: { bytes, _ in server.send(back: bytes) },
                onInterruption: meter.fail))
        let (first, second) = (group.sender, group.receivers[0])
        second.loop.execute {
            server.attach(to: second, with: first.id)
            first.loop.execute {
                client.attach(to: first, with: second.id)
                meter.roundTripBegan()
                client.send()
            }
        }
        let measurement = try await meter.measurement
        await group.close()
        return measurement
    }

    /// One side. Confined to its session's loop; hence `@unchecked Sendable`.
    private final class Endpoint: @unchecked Sendable {
        private let payload: ByteSlice
        // Not weak: the session's `close` ends the cycle with the session's handler.
        @exclusivity(unchecked) private var side: (session: Session, other: PeerID)?

        init(_ payload: ByteSlice) { self.payload = payload }

        func attach(to session: Session, with other: PeerID) { side = (session, other) }

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
