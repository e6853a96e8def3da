import Glibc
import Measuring
import NighTestKit

/// Shows one session to crowds of growing size, and prints what each peer costs.
enum CrowdReport {
    /// The most guests to which a message is sent: each has a session of its own.
    private static let mostGuests = 100_000

    /// Runs each size in a process of its own, so that the memory of one does not count for the next. Returns whether
    /// every peer was seen and reached.
    static func run(_ sizes: [Int]) -> Bool {
        var isComplete = true
        for size in sizes {
            isComplete = inProcess { discover(size) } && isComplete
            if size <= mostGuests {
                isComplete = inProcess { fanOut(size) } && isComplete
            } else {
                print("\(size) guests: left out, because each one has a session of its own")
            }
            fflush(nil)
        }
        return isComplete
    }

    /// Runs something in a process of its own. Returns whether it succeeded.
    static func inProcess(_ body: () -> Bool) -> Bool {
        fflush(nil)
        let child = fork()
        if child == 0 {
            let isComplete = body()
            fflush(nil)
            _exit(isComplete ? 0 : 1)
        }
        var status: Int32 = 0
        guard child > 0, waitpid(child, &status, 0) == child else {
            Soak.complain("soak: could not start a process for a crowd")
            return false
        }
        return status == 0
    }

    private static func discover(_ size: Int) -> Bool {
        let crowd = Crowd(of: size)
        var report = Steps(size)
        report.step("all seen", expecting: size) { crowd.appear() }
        report.step("all renamed", expecting: size) { crowd.change() }
        report.step("all seen again", expecting: 0) { crowd.repeatAll() }
        report.step("all listed", expecting: size) { crowd.list() }
        report.step("all gone", expecting: 0) { crowd.leave() }
        crowd.end()
        print("\(size) peers: \(report.text)")
        return report.isComplete
    }

    private static func fanOut(_ size: Int) -> Bool {
        var report = Steps(size)
        let fanOut = FanOut(to: size)
        report.step("all connected", expecting: size) { fanOut.connect() }
        report.step("1 KiB to all", expecting: size) { fanOut.broadcast() }
        report.step("and again", expecting: size) { fanOut.broadcast() }
        fanOut.end()
        print("\(size) guests: \(report.text)")
        return report.isComplete
    }

    /// What each step has cost a peer: processor time, because that depends less on how busy the machine is, and the
    /// memory that all steps so far have taken.
    struct Steps {
        private let size: Int
        private let residentBefore = Self.residentMemory()
        private(set) var text = ""
        private(set) var isComplete = true

        init(_ size: Int) { self.size = size }

        mutating func step(_ name: String, expecting expected: Int, _ body: () -> Int) {
            let before = Self.processorTime()
            let reached = body()
            let each = Double(Self.processorTime() - before) / Double(size) / 1_000
            let memory = Double(Self.residentMemory() - residentBefore) / Double(size) / 1_024
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

        private static func residentMemory() -> Int {
            guard let file = fopen("/proc/self/statm", "r") else { return 0 }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 256)
            guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
            let fields = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
                .split(separator: " ")
            return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
        }
    }
}
