import Glibc
import Measuring
import Worlds

/// Runs meshes and groups of growing size, and prints what they cost.
enum MeshReport {
    /// Runs a mesh of each size in a process of its own, so that the memory of one does not count for the next. Returns
    /// whether all rules held.
    static func run(_ sizes: [Int]) -> Bool {
        var isSound = true
        for size in sizes {
            isSound = SeparateProcess.run("the mesh of \(size)", { runOne(size) }) && isSound
        }
        return isSound
    }

    /// Connects meshes of growing size by introductions, and prints what that took. Returns whether all became
    /// complete.
    static func grow(_ sizes: [Int]) -> Bool {
        var isComplete = true
        for size in sizes {
            let watch = Stopwatch()
            let growth = MeshWorld.grow(to: size)
            let seconds = watch.seconds
            guard let span = growth.lastMilliseconds else {
                print("\(size) sessions did not become a mesh")
                isComplete = false
                continue
            }
            print(
                "\(size) sessions: all connected \(span) ms after the last one came; \(growth.dials) dials, "
                    + "at most \(growth.mostDials) by one; \(growth.records) messages about others, "
                    + "\(growth.recordBytes >> 10) KiB; \(Soak.rounded(seconds)) s of this machine's time")
            fflush(nil)
        }
        return isComplete
    }

    /// Connects guests to a host in one group, and prints what that took. Returns whether all became members.
    static func growGroups(_ sizes: [Int]) -> Bool {
        var isComplete = true
        for size in sizes {
            let watch = Stopwatch()
            let growth = GroupGrowth.run(size: size)
            let seconds = watch.seconds
            guard let joined = growth.milliseconds, let arrived = growth.messageMilliseconds else {
                print("\(size) sessions did not become a group")
                isComplete = false
                continue
            }
            print(
                "\(size) sessions: all members \(joined) ms after the last one came; the host received "
                    + "\(growth.hostRecords) messages about groups, \(growth.hostRecordBytes >> 10) KiB, and each guest "
                    + "\(Soak.rounded(growth.guestRecords)); a message to all arrived after \(arrived) ms, "
                    + "\(growth.messageWork) pieces of work; \(Soak.rounded(seconds)) s of this machine's time"
            )
            fflush(nil)
        }
        return isComplete
    }

    private static func runOne(_ size: Int) -> Bool {
        let watch = Stopwatch()
        let report = World.mesh(of: size)
        let seconds = watch.seconds
        let conversations = size * (size - 1) / 2
        let peak = peakMemory()
        print(
            "\(size) sessions, \(conversations) conversations, \(report.counts.messagesReceived) messages: "
                + "\(Soak.rounded(seconds)) s for \(report.counts.milliseconds / 1_000) virtual seconds, "
                + "\(report.counts.work) pieces of work; at most \(peak >> 10) MiB, "
                + "\(peak / max(conversations, 1)) KiB a conversation")
        if let finding = report.finding { print(finding) }
        return report.finding == nil
    }

    /// Returns the peak memory of this process, in KiB.
    private static func peakMemory() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return usage.ru_maxrss
    }
}
