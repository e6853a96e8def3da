import class ChildPrograms.Permits
import Dispatch
import Glibc
import NighTestKit
import Synchronization
import Testing

@testable import lab

/// A run of a program of the lab, with its output in a file. It is killed with the last reference.
final class LabProcess: Sendable {
    /// The folder of the Bluetooth lab, in the checkout from which these tests were built.
    static let bluetooth =
        "\(#filePath)".split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" } + "/bluetooth"
    /// The number of seconds after which a machine ends by itself. It counts by the clock, but tests wait by
    /// `LoadAdjustedClock`. So this is far longer than any of them takes when the processors are idle.
    static let machineTimeLimit = 480

    let process: pid_t
    /// A variable in the environment of every process inside.
    let token: String
    /// A file without a name, so that nothing is left of it however this process ends.
    private let file: Int32
    private let input: Int32
    private let hasEnded = Mutex(false)

    /// Starts the `lab` program that lies beside these tests.
    convenience init(_ arguments: [String]) throws {
        try self.init(command: [Self.program()] + arguments)
    }

    /// Starts a machine with Bluetooth that runs one command.
    static func machine(
        _ options: String..., timeLimit: Int = machineTimeLimit, running command: [String]
    ) throws -> LabProcess {
        let limit = ["--time-limit", "\(timeLimit)"]
        return try LabProcess(command: ["\(bluetooth)/machine"] + limit + options + ["--"] + command)
    }

    /// Starts a program as the leader of a process group of its own, as a shell does.
    init(command: [String]) throws {
        let name = "nigh-lab-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        token = "NIGH_LAB_RUN=\(name)"
        file = open("/tmp/\(name)", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        unlink("/tmp/\(name)")
        let pipe = try Spawning.pipe()
        defer { close(pipe.reading) }
        input = pipe.writing
        // Under the address sanitizer, what a peer still holds at its end is a leak, because it closes its session
        // before. The tests themselves are run without the search for leaks.
        let environment = Spawning.ownEnvironment.filter { !$0.hasPrefix("ASAN_OPTIONS=") }
        process = try Spawning.spawn(
            command,
            environment: environment + [token, "ASAN_OPTIONS=detect_leaks=1"],
            descriptors: [(pipe.reading, 0), (file, 1), (file, 2)], inOwnGroup: true)
    }

    deinit {
        if !hasEnded.withLock({ $0 }) {
            kill(process, SIGKILL)
            _ = Spawning.wait(for: process)
        }
        close(input)
        close(file)
    }

    /// Returns the path of the program, which is built into the same folder as these tests.
    static func program() throws -> String { try Spawning.path(of: "lab") }

    /// Everything that it has printed so far.
    var output: String {
        var text: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while case let count = pread(file, &room, room.count, off_t(text.count)), count > 0 {
            text += room[..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Waits for its end and returns how it ended; kills it after `limit`, as `LoadAdjustedClock` counts. Call it only
    /// once.
    func end(within limit: Duration) async -> Child.Ending {
        await withCheckedContinuation { continuation in
            // On a thread that no test keeps busy. Only code that has not yet waited for the process may kill it.
            DispatchQueue.global().async { [self] in
                defer { hasEnded.withLock { $0 = true } }
                continuation.resume(returning: Self.wait(for: process, within: limit))
            }
        }
    }

    private static func wait(for process: pid_t, within limit: Duration) -> Child.Ending {
        let clock = LoadAdjustedClock()
        while clock.elapsed < limit {
            var status: Int32 = 0
            switch waitpid(process, &status, WNOHANG) {
            case process: return Child.Ending(waitStatus: status)
            case 0,
                -1 where errno == EINTR:
                usleep(20_000)
            default: return .exited(127)
            }
            clock.advance()
        }
        kill(process, SIGKILL)
        return Spawning.wait(for: process)
    }

    /// Waits until no process of it is left.
    func expectNothing() async throws {
        try await until("its processes are gone") { Machine.processes(with: token).isEmpty }
    }

    /// Kills it so soon after its start. There must be no moment in which its death would go unnoticed.
    func killEarly(after milliseconds: Int) async throws {
        // Time is the subject: the kill must hit each part of the start.
        try await Task.sleep(for: .milliseconds(milliseconds))
        kill(process, SIGKILL)
        #expect(await end(within: .seconds(10)) == .killed(SIGKILL))
        try await expectNothing()
    }
}

extension Permits {
    /// For tests of any suite that start machines. Each machine keeps a processor busy for a third to a half of its
    /// time, and with too many at once, links break because they get too little time.
    static let machines = Permits(3)
}

/// Polls until `condition` holds, for up to 30 s as `LoadAdjustedClock` counts, because nothing reports that processes
/// are gone. `words` are evaluated only on failure, so that they can say what there was instead.
func until(
    _ words: @autoclosure () -> String, within limit: Duration = .seconds(30),
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async throws {
    let holds = try await comesTrue(within: limit, condition)
    try #require(holds, "timed out waiting until \(words())", sourceLocation: sourceLocation)
}

/// Polls like `until`. Returns whether the condition came true in time.
func comesTrue(within limit: Duration = .seconds(30), _ condition: () -> Bool) async throws -> Bool {
    let clock = LoadAdjustedClock()
    while !condition() {
        guard clock.elapsed < limit else { return false }
        try await Task.sleep(for: .milliseconds(20))
        clock.advance()
    }
    return true
}
