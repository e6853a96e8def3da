import Foundation

/// The transports of the sessions in all trials.
let transports = ProcessInfo.processInfo.environment["NIGH_TRANSPORTS"] ?? "tcp:interface=lo,mdns=embedded"

/// The resources that this process uses.
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

    /// The processor time that a process has used.
    static func processorSeconds(of process: Int32) -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Lets the peak begin anew.
    static func forgetPeak() {
        try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    }
}
