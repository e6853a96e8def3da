import NighCore

/// Writes to one stream of bytes as fast as the other side reads it. Both sides are tasks of their sessions' loops.
struct ByteTraffic {
    let loops: SessionGroup.Loops
    /// The bytes that are written at a time, and that count as a message.
    let size: Int
    var security = SessionSecurity.none

    func measure(warmUp: Int, until: Meter.Until) async throws -> Measurement {
        let meter = Meter(step: max(1, (64 << 10) / size), warmUp: warmUp, until: until)
        let group = try await SessionGroup.connect(
            on: loops, messageSize: size, security: security,
            handlers: .init(
                onStream: { stream, loop in
                    Task(executorPreference: loop) { await count(of: stream, into: meter) }
                }, onInterruption: meter.fail))
        let stream = try await group.sender.peer(group.receivers[0].id).openStream(named: "bytes")
        let payload = ByteSlice([UInt8](repeating: 0x6e, count: size))
        let writer = Task(executorPreference: group.sender.loop) {
            // Ends with an error once the reader has read enough.
            while (try? await stream.write(payload)) != nil {}
        }
        let measurement = try await meter.measurement
        stream.cancel()
        await writer.value
        await group.close()
        return measurement
    }

    private func count(of stream: ByteStream, into meter: Meter) async {
        var counted = 0
        while !meter.isDone, let bytes = try? await stream.read() {
            counted += bytes.count
            while counted >= size {
                meter.count()
                counted -= size
            }
        }
    }
}
