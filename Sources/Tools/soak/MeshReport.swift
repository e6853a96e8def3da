import Glibc
import Measuring
import NighTestKit

/// Runs meshes of growing size, and prints what they cost.
enum MeshReport {
    /// Runs a mesh of each size in a process of its own, so that the memory of one does not count for the next. Returns
    /// whether all rules held.
    static func run(_ sizes: [Int]) -> Bool {
        var isSound = true
        for size in sizes {
            let child = fork()
            if child == 0 { _exit(runOne(size) ? 0 : 1) }
            var status: Int32 = 0
            guard child > 0, waitpid(child, &status, 0) == child else {
                Soak.complain("soak: could not start a process for the mesh of \(size)")
                return false
            }
            isSound = isSound && status == 0
        }
        return isSound
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
        fflush(nil)
        return report.finding == nil
    }

    /// Returns the peak memory of this process, in KiB.
    private static func peakMemory() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return usage.ru_maxrss
    }
}
