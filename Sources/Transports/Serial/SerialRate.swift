import NighCore

/// The sizes and times that the rate of a serial line allows.
struct SerialRate: Hashable {
    /// The rates that devices know, in bits per second.
    static let known = [
        9_600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 500_000, 576_000, 921_600, 1_000_000,
        1_152_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000,
    ]

    /// The room that each end of a pipe has, at any rate, before it grants more.
    static let firstWindow = 2_048

    let baud: Int

    /// A byte is eight bits between a start bit and a stop bit.
    private var bytesPerSecond: Int { baud / 10 }

    /// The length of the longest packet of a pipe. Nothing waits for it longer than 0.2 s.
    private var packet: Int { min(1_024, bytesPerSecond / 5) }

    var sizes: SequencedStream.Sizes {
        .init(packet: packet, window: min(max(bytesPerSecond, Self.firstWindow), 32 << 10))
    }

    /// At either end, an answer may wait for the packet before it and for a state, and adapters add some time.
    var patience: SequencedStream.Patience {
        .init(answer: .milliseconds(100) + time(of: 6 * packet), nanosecondsPerByte: time(of: 1).nanoseconds)
    }

    var capabilities: TransportCapabilities {
        TransportCapabilities(
            datagrams: false, typicalMTU: packet,
            typicalLatency: (time(of: 200) + .milliseconds(10)).duration,
            expectedConnectTime: (time(of: 200) + .milliseconds(100)).duration, priority: 300)
    }

    /// The time in which `byteCount` bytes leave.
    func time(of byteCount: Int) -> Moment.Span {
        Moment.Span(nanoseconds: Int64(byteCount) * 10_000_000_000 / Int64(baud))
    }
}
