import Glibc
import Measuring
import NighTestKit

/// The costs of each step for a peer: processor time, because that depends less on how busy the machine is, and the
/// memory that all steps so far have taken.
struct StepCosts {
    private let size: Int
    private let residentBefore = ProcessGauge.residentBytes
    private(set) var text = ""
    private(set) var isComplete = true

    init(_ size: Int) { self.size = size }

    mutating func step(_ name: String, expecting expected: Int, _ body: () -> Int) {
        let before = Self.processorTime()
        let reached = body()
        let each = Double(Self.processorTime() - before) / Double(size) / 1_000
        let memory = Double(ProcessGauge.residentBytes - residentBefore) / Double(size) / 1_024
        text += text.isEmpty ? "" : "; "
        text +=
            "\(name) \(Figures.fixed(each, decimals: 1)) µs, \(Figures.fixed(memory, decimals: 1)) KiB each"
        if reached != expected {
            text += " (\(reached) instead of \(expected))"
            isComplete = false
        }
    }

    private static func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
