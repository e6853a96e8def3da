extension Notation where Value == Int {
    /// A whole number in decimal digits.
    public static func integer(_ placeholder: String = "NUMBER", in range: ClosedRange<Int> = .min ... .max)
        -> Self
    {
        let bounds = boundsText(for: range, everything: .min ... .max) { "\($0)" }
        return Notation(placeholder, remark: bounds) { text in
            guard let number = Int(text) else {
                throw UsageError(
                    "\(Wording.quoted(text)) is not a whole number"
                        + (bounds.map { ": \($0) is allowed" } ?? ""))
            }
            guard range.contains(number) else {
                throw UsageError("\(number) is out of range: \(bounds ?? "") is allowed")
            }
            return number
        }
    }

    /// A number of bytes, such as `500`, `64KiB`, `1M` or `1.5MB`. `K`, `M` and `G` alone are `KiB`, `MiB` and `GiB`.
    public static func size(_ placeholder: String = "SIZE", in range: ClosedRange<Int> = 0 ... .max) -> Self {
        quantity(placeholder, "size", "500, 64KiB or 1MB", sizes, range)
    }

    /// A number of bits per second, such as `64kbit/s`, `1Mbit/s`, `1M` for the same, or, in bytes, `8KiB/s`.
    public static func rate(_ placeholder: String = "RATE", in range: ClosedRange<Int> = 0 ... .max) -> Self {
        quantity(placeholder, "rate", "64kbit/s, 1Mbit/s or 8KiB/s", rates, range)
    }

    private static func quantity(
        _ placeholder: String, _ kind: String, _ examples: String, _ units: Quantity,
        _ range: ClosedRange<Int>
    ) -> Self {
        let bounds = boundsText(for: range, everything: 0 ... .max, units.write)
        return Notation(placeholder, remark: bounds, write: units.write) { text in
            guard let value = units.read(text) else { throw noQuantity(text, kind, examples) }
            guard range.contains(value) else { throw outOfRange(text, bounds) }
            return value
        }
    }
}

extension Notation where Value == Duration {
    /// A duration with a precision of nanoseconds, such as `200ms`, `5s`, `1.5s`, `2min` or `1h`. Without a unit it is
    /// in seconds.
    public static func duration(
        _ placeholder: String = "DURATION",
        in range: ClosedRange<Duration> = .zero ... .nanoseconds(Int64.max)
    ) -> Self {
        let bounds = boundsText(for: range, everything: .zero ... .nanoseconds(Int64.max), write)
        return Notation(placeholder, remark: bounds, write: write) { text in
            guard let nanoseconds = durations.read(text) else {
                throw noQuantity(text, "duration", "200ms, 5s or 2min")
            }
            let duration = Duration.nanoseconds(nanoseconds)
            guard range.contains(duration) else { throw outOfRange(text, bounds) }
            return duration
        }
    }

    /// A number of seconds without a unit, such as `5` or `0.5`, with a precision of milliseconds.
    public static func seconds(_ placeholder: String = "SECONDS", in range: ClosedRange<Duration>) -> Self {
        let bounds = "\(writeSeconds(range.lowerBound)) to \(writeSeconds(range.upperBound))"
        return Notation(placeholder, remark: bounds, write: writeSeconds) { text in
            let isDecimal = text.allSatisfy { $0.isASCII && $0.isNumber || $0 == "." }
            guard isDecimal, let number = Double(text), number <= range.upperBound / .seconds(1),
                number >= range.lowerBound / .seconds(1)
            else { throw UsageError("\"\(text)\" is not \(bounds), as in 5 or 0.5") }
            return .milliseconds(Int((number * 1_000).rounded()))
        }
    }

    private static func writeSeconds(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        return seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }

    private static func write(_ duration: Duration) -> String {
        durations.write(Int(clamping: duration.attoseconds / 1_000_000_000))
    }
}

extension Notation where Value: Comparable {
    /// Returns the bounds in words; nil if there are none to show.
    fileprivate static func boundsText(
        for range: ClosedRange<Value>, everything: ClosedRange<Value>, _ write: (Value) -> String
    ) -> String? {
        switch (range.lowerBound > everything.lowerBound, range.upperBound < everything.upperBound) {
        case (true, true): "\(write(range.lowerBound)) to \(write(range.upperBound))"
        case (true, false): "\(write(range.lowerBound)) or more"
        case (false, true): "at most \(write(range.upperBound))"
        case (false, false): nil
        }
    }

    fileprivate static func outOfRange(_ text: String, _ bounds: String?) -> UsageError {
        UsageError("\(text) is out of range: \(bounds ?? "") is allowed")
    }

    fileprivate static func noQuantity(_ text: String, _ kind: String, _ examples: String) -> UsageError {
        UsageError("\(Wording.quoted(text)) is not a \(kind) such as \(examples)")
    }
}

private let durations = Quantity(units: [
    .init(name: "ns", factor: 1), .init(name: "us", factor: 1_000), .init(name: "ms", factor: 1_000_000),
    .init(name: "s", factor: 1_000_000_000), .init(name: "", factor: 1_000_000_000, isShown: false),
    .init(name: "min", factor: 60_000_000_000), .init(name: "m", factor: 60_000_000_000, isShown: false),
    .init(name: "h", factor: 3_600_000_000_000), .init(name: "d", factor: 86_400_000_000_000, isShown: false),
])

private let sizes = Quantity(units: [
    .init(name: "", factor: 1), .init(name: "B", factor: 1, isShown: false),
    .init(name: "k", factor: 1 << 10, isShown: false), .init(name: "K", factor: 1 << 10, isShown: false),
    .init(name: "m", factor: 1 << 20, isShown: false), .init(name: "M", factor: 1 << 20, isShown: false),
    .init(name: "G", factor: 1 << 30, isShown: false),
    .init(name: "kB", factor: 1_000), .init(name: "KB", factor: 1_000, isShown: false),
    .init(name: "KiB", factor: 1 << 10), .init(name: "MB", factor: 1_000_000),
    .init(name: "MiB", factor: 1 << 20), .init(name: "GB", factor: 1_000_000_000),
    .init(name: "GiB", factor: 1 << 30),
])

private let rates = Quantity(units: [
    .init(name: "bit/s", factor: 1), .init(name: "k", factor: 1_000, isShown: false),
    .init(name: "kbit/s", factor: 1_000), .init(name: "M", factor: 1_000_000, isShown: false),
    .init(name: "Mbit/s", factor: 1_000_000), .init(name: "G", factor: 1_000_000_000, isShown: false),
    .init(name: "Gbit/s", factor: 1_000_000_000),
    .init(name: "B/s", factor: 8, isShown: false), .init(name: "kB/s", factor: 8_000, isShown: false),
    .init(name: "KiB/s", factor: 8 << 10, isShown: false),
    .init(name: "MB/s", factor: 8_000_000, isShown: false),
    .init(name: "MiB/s", factor: 8 << 20, isShown: false),
])
