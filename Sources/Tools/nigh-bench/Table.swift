import Glibc

/// Prints measurements, as lines of a table or as lines of JSON.
struct Table {
    let asJSON: Bool

    func begin() {
        guard !asJSON else { return }
        print(
            Self.padded("scenario", 13), Self.leading("size", 9), Self.leading("messages/s", 12),
            Self.leading("ns/message", 11), Self.leading("CPU ns", 9), Self.leading("MB/s", 8),
            Self.leading("p50 µs", 9),
            Self.leading("p99 µs", 9), Self.leading("allocs/msg", 11))
    }

    func add(_ measurement: Measurement, of scenario: Scenario, size: Int) {
        let seconds = Double(measurement.nanoseconds) / 1e9
        let perSecond = Double(measurement.messages) / seconds
        let nanoseconds = Double(measurement.nanoseconds) / Double(measurement.messages)
        let processor = Double(measurement.processorNanoseconds) / Double(measurement.messages)
        let megabytes = perSecond * Double(size) / 1e6
        let allocations = Double(measurement.allocations) / Double(measurement.messages)
        let (median, high) = (Self.percentile(50, of: measurement), Self.percentile(99, of: measurement))
        if asJSON {
            print(
                "{\"scenario\":\"\(scenario.name)\",\"loops\":\"\(scenario.loops.rawValue)\",\"size\":\(size),"
                    + "\"messages\":\(measurement.messages),\"perSecond\":\(Int(perSecond)),"
                    + "\"nanoseconds\":\(Self.fixed(nanoseconds, 1)),\"processorNanoseconds\":\(Self.fixed(processor, 1)),"
                    + "\"megabytesPerSecond\":\(Self.fixed(megabytes, 1)),"
                    + "\"p50Microseconds\":\(median.map { Self.fixed($0, 2) } ?? "null"),"
                    + "\"p99Microseconds\":\(high.map { Self.fixed($0, 2) } ?? "null"),"
                    + "\"allocations\":\(Self.fixed(allocations, 5))}")
            return
        }
        print(
            Self.padded(scenario.name, 13), Self.leading(Self.size(size), 9),
            Self.leading("\(Int(perSecond))", 12), Self.leading(Self.fixed(nanoseconds, 1), 11),
            Self.leading(Self.fixed(processor, 1), 9),
            Self.leading(Self.fixed(megabytes, 1), 8),
            Self.leading(median.map { Self.fixed($0, 2) } ?? "", 9),
            Self.leading(high.map { Self.fixed($0, 2) } ?? "", 9),
            Self.leading(Self.fixed(allocations, 4), 11))
        fflush(nil)
    }

    /// In microseconds; nil where round trips were not measured.
    private static func percentile(_ percent: Int, of measurement: Measurement) -> Double? {
        let sorted = measurement.roundTrips
        guard !sorted.isEmpty else { return nil }
        return Double(sorted[sorted.startIndex + sorted.count * percent / 100]) / 1_000
    }

    static func size(_ bytes: Int) -> String {
        switch bytes {
        case (1 << 20)... where bytes % (1 << 20) == 0: "\(bytes >> 20) MiB"
        case (1 << 10)... where bytes % (1 << 10) == 0: "\(bytes >> 10) KiB"
        default: "\(bytes) B"
        }
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    static func leading(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    /// `value` with so many digits behind the point.
    static func fixed(_ value: Double, _ digits: Int) -> String {
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int((value * Double(scale)).rounded())
        let fraction = "\(scaled % scale)"
        return "\(scaled / scale)." + String(repeating: "0", count: digits - fraction.count) + fraction
    }
}
