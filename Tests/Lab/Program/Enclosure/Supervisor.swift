import Glibc
import NighTestKit

/// Starts processes, reads what they print and notices how they end. All of this happens on the one thread that also
/// runs the scenario: it happens while the scenario waits for something.
final class Supervisor {
    let journal: Journal
    /// Failures of processes that nothing was waiting for.
    private(set) var accidents: [String] = []

    private var children: [Child] = []
    private let clock = LoadAdjustedClock()
    private let end: Duration

    /// - Parameter limit: the time, as `LoadAdjustedClock` counts it, after which every wait fails.
    init(journal: Journal, limit: Duration) {
        self.journal = journal
        end = limit
    }

    /// Starts a process that runs until it is told to end.
    func start(_ name: String, _ command: [String], mayEnd: Bool = false) throws -> Child {
        let child = try Child(name, command, environment: Tools.environment, mayEnd: mayEnd)
        children.append(child)
        return child
    }

    /// Runs a process to its end; throws if it fails. Returns the lines it printed.
    @discardableResult
    func run(_ command: [String], input: String = "", within limit: Duration = .seconds(20)) throws
        -> [String]
    {
        let name = command.joined(separator: " ")
        let child = try start(name, command, mayEnd: true)
        var errors: [String] = []
        var output: [String] = []
        child.onLine = { stream, line in
            if stream == .errors { errors.append(line) } else { output.append(line) }
        }
        if !input.isEmpty { child.writeLine(input) }
        child.closeInput()
        try wait("`\(name)` to end", within: limit) { child.isOver }
        guard child.ending == .exited(0) else {
            let words = child.ending?.description ?? ""
            throw Failure("`\(name)` \(words): \((errors + output).joined(separator: "; "))")
        }
        return output
    }

    /// The time so far, as `LoadAdjustedClock` counts it: the share in which a program that always wants to run has a
    /// processor.
    var elapsed: Duration {
        clock.advance()
        return clock.elapsed
    }

    /// Reads output and reaps processes until `condition` holds. Fails if that takes longer than `limit`, as
    /// `LoadAdjustedClock` counts it, or if a process ended that should not have.
    func wait(_ words: String, within limit: Duration, until condition: () throws -> Bool) throws {
        let start = journal.now
        let deadline = min(elapsed + limit, end)
        while true {
            if let accident = accidents.first { throw Failure(accident) }
            if try condition() { return }
            let left = deadline - elapsed
            guard left > .zero else {
                let passed = (journal.now - start).written
                throw Failure("waited \(passed) s in vain for \(words), where \(limit.written) s are allowed")
            }
            turn(atMost: min(left, .milliseconds(50)))
        }
    }

    /// Lets `span` pass while reading output and reaping processes.
    func pass(_ span: Duration) throws {
        let deadline = ContinuousClock.now + span
        while deadline > ContinuousClock.now {
            if let accident = accidents.first { throw Failure(accident) }
            turn(atMost: min(deadline - ContinuousClock.now, .milliseconds(50)))
            clock.advance()
        }
    }

    private func turn(atMost span: Duration) {
        var descriptors: [pollfd] = []
        var sources: [(Child, Child.Stream)] = []
        for child in children {
            for (stream, outlet) in child.outlets {
                descriptors.append(pollfd(fd: outlet, events: Int16(POLLIN), revents: 0))
                sources.append((child, stream))
            }
        }
        let milliseconds = max(1, Int32(span / .milliseconds(1)))
        if poll(&descriptors, nfds_t(descriptors.count), milliseconds) > 0 {
            for (descriptor, source) in zip(descriptors, sources) where descriptor.revents != 0 {
                source.0.read(source.1)
            }
        }
        reap()
    }

    /// Reaps all processes that have ended. As process 1 of its namespace, the lab also inherits orphans.
    private func reap() {
        while true {
            var status: Int32 = 0
            let process = waitpid(-1, &status, WNOHANG)
            guard process > 0 else { break }
            guard let child = children.first(where: { $0.process == process && $0.ending == nil }) else {
                continue
            }
            let ending = Child.Ending(waitStatus: status)
            child.ending = ending
            for stream in child.outlets.keys { child.read(stream) }
            if !child.mayEnd {
                accidents.append("\(child.name) \(ending) though nobody had asked it to")
                journal.note(child.name, "\(ending)")
            }
        }
        children.removeAll { $0.isOver }
    }

    /// Records something that must make the scenario fail at the next wait.
    func report(_ accident: String) { accidents.append(accident) }
}
