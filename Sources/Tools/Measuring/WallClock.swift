import Glibc

/// The date and time of the calendar.
public enum WallClock {
    /// Returns the current time in UTC, in a format of `strftime`.
    public static func text(_ format: String) -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, format, &parts)
        return String(decoding: text.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
