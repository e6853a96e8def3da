/// How measured numbers are written for people.
public enum Figures {
    /// A span, in milliseconds; in seconds from ten of them on.
    public static func span(nanoseconds: Double) -> String {
        let milliseconds = nanoseconds / 1_000_000
        switch milliseconds {
        case ..<10: return "\(fixed(milliseconds, decimals: 3)) ms"
        case ..<100: return "\(fixed(milliseconds, decimals: 2)) ms"
        case ..<10_000: return "\(fixed(milliseconds, decimals: 1)) ms"
        default: return "\(fixed(milliseconds / 1_000, decimals: 1)) s"
        }
    }

    /// A span in the unit that suits it, with three digits or so, for axes.
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

    /// A rate in bytes a second, in decimal units, with three digits or so.
    public static func rate(_ bytesPerSecond: Double) -> String { scaled(bytesPerSecond, unit: "B/s") }

    /// The same in bits a second, as networks are sold.
    public static func bitRate(_ bytesPerSecond: Double) -> String {
        scaled(bytesPerSecond * 8, unit: "bit/s")
    }

    /// How many of something, as in `12.3 k`.
    public static func amount(_ number: Double, unit: String) -> String { scaled(number, unit: unit) }

    /// A number of bytes as it is given to an option, as in `16 KiB`.
    public static func size(_ bytes: Int) -> String {
        switch bytes {
        case _ where bytes >= 1 << 20 && bytes.isMultiple(of: 1 << 20): "\(bytes >> 20) MiB"
        case _ where bytes >= 1 << 10 && bytes.isMultiple(of: 1 << 10): "\(bytes >> 10) KiB"
        default: "\(bytes) B"
        }
    }

    /// Percent, with as many digits as they matter.
    public static func percent(_ share: Double) -> String {
        let percent = share * 100
        return "\(percent == percent.rounded() ? fixed(percent, decimals: 0) : fixed(percent, decimals: 2)) %"
    }

    /// `value` with so many digits behind the point.
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

    /// `text` with blanks behind it, so that it takes `width` where it takes less.
    public static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// The same with the blanks before it.
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
