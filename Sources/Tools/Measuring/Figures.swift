/// Formats measured numbers for people.
public enum Figures {
    /// Returns a duration in milliseconds, or in seconds from 1 s on.
    public static func span(nanoseconds: Double) -> String {
        let milliseconds = nanoseconds / 1_000_000
        switch milliseconds {
        case ..<10: return "\(fixed(milliseconds, decimals: 3)) ms"
        case ..<100: return "\(fixed(milliseconds, decimals: 2)) ms"
        case ..<999.95: return "\(fixed(milliseconds, decimals: 1)) ms"
        case ..<9_995: return "\(fixed(milliseconds / 1_000, decimals: 2)) s"
        default: return "\(fixed(milliseconds / 1_000, decimals: 1)) s"
        }
    }

    /// Returns a duration in a suitable unit, with about three digits, for axes.
    public static func shortSpan(nanoseconds: Double) -> String {
        switch nanoseconds {
        case 0: "0"
        case ..<999.5: "\(fixed(nanoseconds, decimals: 0)) ns"
        case ..<999_500: "\(digits(nanoseconds / 1_000)) µs"
        case ..<999_500_000: "\(digits(nanoseconds / 1_000_000)) ms"
        default: "\(digits(nanoseconds / 1_000_000_000)) s"
        }
    }

    private static func digits(_ number: Double) -> String {
        fixed(number, decimals: number < 9.995 ? 2 : number < 99.95 ? 1 : 0)
    }

    /// Returns a rate in bytes per second, in decimal units, with about three digits.
    public static func rate(_ bytesPerSecond: Double) -> String { scaled(bytesPerSecond, unit: "B/s") }

    /// Returns the rate in bits per second, the unit in which networks are sold.
    public static func bitRate(_ bytesPerSecond: Double) -> String {
        scaled(bytesPerSecond * 8, unit: "bit/s")
    }

    /// Returns an amount with its unit, as in `12.3 k`.
    public static func amount(_ number: Double, unit: String) -> String { scaled(number, unit: unit) }

    /// Returns a number of bytes as an option takes it, as in `16 KiB`.
    public static func size(_ bytes: Int) -> String {
        switch bytes {
        case _ where bytes >= 1 << 20 && bytes.isMultiple(of: 1 << 20): "\(bytes >> 20) MiB"
        case _ where bytes >= 1 << 10 && bytes.isMultiple(of: 1 << 10): "\(bytes >> 10) KiB"
        default: "\(bytes) B"
        }
    }

    /// Returns a share in percent, with two decimals unless it is a whole number.
    public static func percent(_ share: Double) -> String {
        let percent = share * 100
        return "\(percent == percent.rounded() ? fixed(percent, decimals: 0) : fixed(percent, decimals: 2)) %"
    }

    /// Returns `value` with this number of decimals.
    public static func fixed(_ value: Double, decimals: Int) -> String {
        var factor = 1
        for _ in 0..<decimals { factor *= 10 }
        guard value.magnitude * Double(factor) < 1e18 else { return "\(value)" }
        let whole = Int((value.magnitude * Double(factor)).rounded())
        let sign = value < 0 && whole > 0 ? "-" : ""
        guard decimals > 0 else { return "\(sign)\(whole)" }
        let fraction = "\(whole % factor)"
        return
            "\(sign)\(whole / factor).\(String(repeating: "0", count: decimals - fraction.count))\(fraction)"
    }

    /// Returns `text` with spaces after it, up to `width` if it is shorter.
    public static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// Returns `text` with spaces before it, up to `width` if it is shorter.
    public static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    private static func scaled(_ number: Double, unit: String) -> String {
        var (rest, prefix) = (number, "")
        for next in ["k", "M", "G", "T"] where rest.magnitude >= 999.5 {
            rest /= 1_000
            prefix = next
        }
        return "\(prefix.isEmpty ? fixed(rest, decimals: 0) : digits(rest)) \(prefix)\(unit)"
    }
}
