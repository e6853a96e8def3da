import Glibc
import Measuring
import Worlds
import Synchronization

/// The `soak` command: runs many simulated worlds, and prints a summary and the findings.
enum Soak {
    private struct Progress {
        var counts = WorldCounts()
        var findings: [Finding] = []
        var slowest: (seconds: Double, seed: UInt64) = (0, 0)
    }

    private static let progress = Mutex(Progress())
    private static let nextSeed = Atomic<UInt64>(0)
    /// The number of findings at which the run stops.
    private static let findingLimit = 20

    static func main(_ arguments: [String]) {
        let options: Options
        do {
            options = try Options(arguments)
        } catch {
            complain("soak: \(error.message); see soak --help")
            exit(2)
        }
        if options.wantsHelp {
            print(Options.help)
        } else if !options.mesh.isEmpty {
            exit((options.isMeshes ? MeshReport.grow(options.mesh) : MeshReport.run(options.mesh)) ? 0 : 1)
        } else if !options.groups.isEmpty {
            exit(MeshReport.growGroups(options.groups) ? 0 : 1)
        } else if !options.crowds.isEmpty {
            exit(CrowdReport.run(options.crowds) ? 0 : 1)
        } else if !options.hosts.isEmpty {
            exit(HostsReport.run(options.hosts) ? 0 : 1)
        } else if options.showsLog {
            exit(showOne(options.first, isMeshes: options.isMeshes) ? 0 : 1)
        } else {
            exit(runAll(options) ? 0 : 1)
        }
    }

    private static func showOne(_ seed: UInt64, isMeshes: Bool) -> Bool {
        let report = isMeshes ? MeshWorld.run(seed: seed) : World.run(seed: seed, keepingLog: true)
        for line in report.log { print(line) }
        print("hash \(report.hash)")
        guard var finding = report.finding else {
            print("seed \(seed): every rule held")
            return true
        }
        finding.forgetLog()
        print(finding)
        return false
    }

    private static func runAll(_ options: Options) -> Bool {
        let end = options.first + options.count
        nextSeed.store(options.first, ordering: .relaxed)
        let watch = Stopwatch()
        let jobs = min(options.jobs, Int(clamping: options.count))
        let threads = (0..<jobs).map { _ in thread { work(until: end, isMeshes: options.isMeshes) } }
        report(options, watch)
        for thread in threads { pthread_join(thread, nil) }
        let result = progress.withLock { $0 }
        for finding in result.findings.sorted(by: { $0.seed < $1.seed }) { print(finding) }
        print(summary(result, seconds: watch.seconds))
        return result.findings.isEmpty
    }

    private static func work(until end: UInt64, isMeshes: Bool) {
        while true {
            let seed = nextSeed.wrappingAdd(1, ordering: .relaxed).oldValue
            guard seed < end, progress.withLock({ $0.findings.count }) < findingLimit else { return }
            let watch = Stopwatch()
            let report = isMeshes ? MeshWorld.run(seed: seed) : World.run(seed: seed)
            let seconds = watch.seconds
            // A long run need not end before somebody looks at what it has found.
            if let finding = report.finding { complain("seed \(seed): \(finding.message)") }
            progress.withLock { progress in
                progress.counts += report.counts
                if let finding = report.finding { progress.findings.append(finding) }
                if seconds > progress.slowest.seconds { progress.slowest = (seconds, seed) }
            }
        }
    }

    /// Prints a line to standard error from time to time, until all worlds have been run.
    private static func report(_ options: Options, _ watch: Stopwatch) {
        var shown = 0.0
        let isTerminal = isatty(2) == 1
        while true {
            let (done, found) = progress.withLock { ($0.counts.worlds, $0.findings.count) }
            if done >= Int(clamping: options.count) || found >= findingLimit { break }
            usleep(20_000)
            let now = watch.seconds
            guard now - shown > (isTerminal ? 0.5 : 10) else { continue }
            shown = now
            let rate = Int(Double(done) / now)
            complain(
                "\(done) of \(options.count) worlds, \(rate) a second, \(found) findings",
                isTerminal ? "\r" : "\n")
        }
        if isTerminal { complain("", "\r\u{1B}[K") }
    }

    private static func summary(_ result: Progress, seconds: Double) -> String {
        let counts = result.counts
        let rate = Double(counts.worlds) / max(seconds, 0.001)
        return """
            \(counts.worlds) worlds in \(rounded(seconds)) s, \(rounded(rate)) a second; the slowest, seed \
            \(result.slowest.seed), took \(rounded(result.slowest.seconds * 1_000)) ms
            \(rounded(Double(counts.milliseconds) / 3_600_000)) virtual hours, \(counts.work) pieces of work
            \(counts.sessions) sessions, \(counts.kills) killed, \(counts.restarts) restarted
            \(counts.invitations) invitations, \(counts.conversations / 2) conversations
            \(counts.cuts) cuts, \(counts.blocks) blocks and stalls, \(counts.partitions) partitions, \
            \(counts.impostors) impostors
            \(counts.damagedLinks) encrypted links ended by wrong bits
            \(counts.interruptions) interruptions, \(counts.reconnects) resumed, \
            \(counts.moves) moves to a better transport
            \(counts.messagesSent) messages sent, \(counts.messagesReceived) received \
            (\(counts.bytesReceived >> 20) MiB), \(counts.messagesResent) sent again, \
            \(counts.refusedSends) refused because the buffer was full
            \(counts.unreliableSent) unreliable sent, \(counts.unreliableReceived) received, \(counts.packets) packets, \(counts.pings) pings answered, \
            \(counts.pairings) ends paired
            \(counts.groupMessages) messages to groups received, \(counts.channelMessages) read from channels, \
            \(counts.answers) of \(counts.questions) questions answered, \
            \(counts.actorAnswers) of \(counts.actorCalls) calls to actors
            \(counts.streams) streams, of which \(counts.streamBytes >> 20) MiB were read
            \(counts.offers) offers of files, \(counts.deliveries) deliveries, \(counts.fileBytes >> 20) MiB
            \(result.findings.isEmpty ? "every rule held" : "\(result.findings.count) findings")
            """
    }

    // MARK: Helpers

    static func rounded(_ value: Double) -> String { Figures.fixed(value, decimals: 1) }

    static func complain(_ text: String, _ end: String = "\n") {
        var line = text + end
        line.withUTF8 { bytes in _ = write(2, bytes.baseAddress, bytes.count) }
    }

    private final class Job: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private static func thread(_ run: @escaping @Sendable () -> Void) -> pthread_t {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Job>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, Unmanaged.passRetained(Job(run)).toOpaque())
        precondition(status == 0, "a thread could not be created: error \(status)")
        return thread
    }
}
