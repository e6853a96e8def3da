import Glibc
import Worlds

/// Shows one session to crowds of growing size, and prints what each peer costs.
enum CrowdReport {
    /// The most guests to which a message is sent: each has a session of its own.
    private static let mostGuests = 100_000

    /// Runs each size in a process of its own, so that the memory of one does not count for the next. Returns whether
    /// every peer was seen and reached.
    static func run(_ sizes: [Int]) -> Bool {
        var isComplete = true
        for size in sizes {
            isComplete = SeparateProcess.run("a crowd", { discover(size) }) && isComplete
            if size <= mostGuests {
                isComplete = SeparateProcess.run("a crowd", { fanOut(size) }) && isComplete
            } else {
                print("\(size) guests: left out, because each one has a session of its own")
            }
            fflush(nil)
        }
        return isComplete
    }

    private static func discover(_ size: Int) -> Bool {
        let crowd = Crowd(of: size)
        var report = StepCosts(size)
        report.step("all seen", expecting: size) { crowd.appear() }
        report.step("all renamed", expecting: size) { crowd.announceAll(as: "renamed") }
        report.step("all seen again", expecting: 0) { crowd.announceAll(as: "renamed") }
        report.step("all listed", expecting: size) { crowd.list() }
        report.step("all gone", expecting: 0) { crowd.leave() }
        crowd.end()
        print("\(size) peers: \(report.text)")
        return report.isComplete
    }

    private static func fanOut(_ size: Int) -> Bool {
        var report = StepCosts(size)
        let fanOut = FanOut(to: size)
        report.step("all connected", expecting: size) { fanOut.connect() }
        report.step("1 KiB to all", expecting: size) { fanOut.broadcast() }
        report.step("and again", expecting: size) { fanOut.broadcast() }
        fanOut.end()
        print("\(size) guests: \(report.text)")
        return report.isComplete
    }
}
