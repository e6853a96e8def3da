import Glibc

/// How numbers are printed.
enum Text {
    /// With two digits behind the point.
    static func decimal(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// Filled up on the left.
    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.utf8.count)) + text
    }

    /// A line on standard error.
    static func tell(_ line: String) {
        let line = line + "\n"
        _ = line.withCString { write(STDERR_FILENO, $0, line.utf8.count) }
    }
}
