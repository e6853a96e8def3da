import Foundation

/// What this process uses.
enum Machine {
    static var descriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    /// Memory now, and at most so far, in MiB.
    static var memory: (now: Int, most: Int) {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        func value(_ key: String) -> Int {
            let line = text.split(separator: "\n").first { $0.hasPrefix(key) }
            return (line?.split(separator: " ").compactMap { Int($0) }.first ?? 0) / 1_024
        }
        return (value("VmRSS:"), value("VmHWM:"))
    }

    /// Lets the peak begin anew.
    static func forgetPeak() {
        try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    }
}
