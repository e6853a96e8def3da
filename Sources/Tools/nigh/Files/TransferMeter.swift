import NighCore

/// Measures how fast a file is transferred, and how long the rest will take.
struct TransferMeter {
    private var samples: [(at: Moment, count: Int)] = []
    /// The number of bytes that are there.
    private(set) var count: Int
    private let size: Int?

    /// The time over which the rate is computed, and the time between its samples.
    private static let window = Moment.Span.seconds(5)
    private static let step = Moment.Span.milliseconds(100)

    /// Creates the meter of a transfer that starts at `count`, of `size` bytes if that is known.
    init(from count: Int, size: Int?, at now: Moment) {
        self.count = count
        self.size = size
        samples = [(now, count)]
    }

    /// Notes that `count` bytes are there now.
    mutating func reached(_ count: Int, at now: Moment) {
        self.count = count
        guard let last = samples.last, now - last.at >= Self.step else { return }
        samples.append((now, count))
        while samples.count > 2, now - samples[1].at >= Self.window { samples.removeFirst() }
    }

    /// Bytes per second over the last seconds; nil as long as there is too little data.
    func rate(at now: Moment) -> Double? {
        guard let first = samples.first, count > first.count, now > first.at else { return nil }
        return Double(count - first.count) / (now - first.at).duration.seconds
    }

    /// The line that a person sees: the file's name, the progress, and the rate or `remark`.
    func line(_ name: String, at now: Moment, remark: String? = nil) -> Line {
        var line = Line(name, .strong) + "  "
        if let size {
            let share = size > 0 ? Double(count) / Double(size) : 1
            line = line + Line(Self.bar(share)) + Line(" \(Int(share * 100)) %  ")
            line = line + Line("\(ByteCount(count)) of \(ByteCount(size))")
        } else {
            line = line + Line("\(ByteCount(count))")
        }
        if let remark { return line + Line("  \(remark)", .warning) }
        guard let rate = rate(at: now) else { return line }
        line = line + Line("  \(ByteCount(Int(rate)))/s")
        guard let size, rate > 0 else { return line }
        return line + Line("  \(Self.time(Double(size - count) / rate)) left", .faint)
    }

    private static let barLength = 20

    private static func bar(_ share: Double) -> String {
        let filled = Int(share * Double(barLength))
        return String(repeating: "█", count: filled) + String(repeating: "░", count: barLength - filled)
    }

    private static func time(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 360_000))
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3_600: return "\(seconds / 60) min \(seconds % 60) s"
        default: return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
        }
    }
}

/// A number of bytes, formatted for a person.
struct ByteCount: CustomStringConvertible {
    let count: Int

    init(_ count: Int) { self.count = count }

    var description: String {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        guard count >= 1_024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
        var value = Double(count) / 1_024
        var unit = 0
        while value >= 1_023.95, unit < units.count - 1 {
            value /= 1_024
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        return value < 99.95
            ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
    }
}

/// Returns bytes per second; nil if there are none, or if the time is too short for a meaningful rate.
func rate(of count: Int, in time: Duration) -> Double? {
    count > 0 && time >= .milliseconds(1) ? Double(count) / time.seconds : nil
}

/// Formats a duration for a person, without milliseconds from one second on.
func durationText(_ span: Duration) -> String {
    guard span >= .seconds(1) else { return "\(Moment.Span(span))" }
    let tenths = Int((span.seconds * 10).rounded())
    guard tenths >= 600 else { return "\(tenths / 10).\(tenths % 10) s" }
    return "\(tenths / 600) min \(tenths / 10 % 60) s"
}

/// Formats a hash as hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
        let digits = String(byte, radix: 16)
        return digits.count < 2 ? "0\(digits)" : digits
    }.joined()
}
