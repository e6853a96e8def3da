import Glibc

/// Describes the system that this program runs on, for comparing measurements.
enum Software {
    /// The program and its system, for example `nigh, Linux 6.1.0 x86_64`.
    static let description: String = {
        var names = utsname()
        guard uname(&names) == 0 else { return "nigh" }
        return "nigh, \(text(names.sysname)) \(text(names.release)) \(text(names.machine))"
    }()

    private static func text(_ field: some Any) -> String {
        withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
