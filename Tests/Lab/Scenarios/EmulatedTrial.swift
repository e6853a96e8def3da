import class ChildPrograms.Permits
import Testing

/// An attempt with emulated controllers, which may get stuck on a busy machine. An attempt that failed is repeated once
/// with new controllers, unless its fault cannot be the emulation's.
///
/// `@unchecked Sendable`: one test uses it, one step after the other.
final class EmulatedTrial: @unchecked Sendable {
    /// Thrown when it is not worth the time to go on.
    private struct GaveUp: Error {}

    /// All that is not as it must be.
    private(set) var faults: [String] = []
    /// Whether something happened that no controller causes, such as a message that arrived twice. Then there is no
    /// second attempt.
    private(set) var isGrave = false
    private var outputs: [(name: String, text: () -> String)] = []

    /// Shows what a program has printed by the end in the message of a failure.
    func show(_ name: String, _ text: @escaping @autoclosure () -> String) { outputs.append((name, text)) }

    func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { faults.append(words()) }
    }

    /// Checks what no emulated controller can make false. If it is false, there is no second attempt.
    func checkPromise(_ holds: Bool, _ words: @autoclosure () -> String) {
        check(holds, words())
        if !holds { isGrave = true }
    }

    /// Polls like `until`. If `condition` does not come true in time, that is a fault, and the attempt ends.
    func wait(
        until words: @autoclosure () -> String, within limit: Duration = .seconds(30),
        _ condition: () -> Bool
    ) async throws {
        if try await comesTrue(within: limit, condition) { return }
        faults.append("timed out waiting until \(words())")
        throw GaveUp()
    }

    /// Checks the numbers of the messages that came to `name`: all of `count`, each once, in order.
    func check(_ numbers: [Int], are count: Int, at name: String) {
        check(numbers.count >= count, "\(name) got \(numbers.count) messages")
        checkPromise(
            numbers.count <= count && zip(numbers, 1...).allSatisfy { $0 == $1 },
            "something came to \(name) twice or out of order, or was left out")
    }

    /// Runs `attempt` with a permit of `Permits.machines`, at most twice, and reports a failure to the test. What was
    /// wrong with a first attempt is printed in any case. The attempt must not take a permit itself.
    static func run(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ attempt: @Sendable (EmulatedTrial) async throws -> Void
    ) async throws {
        let trials = try await attempts { trial in
            try await Permits.machines.run { try await attempt(trial) }
        }
        if trials.count > 1 {
            print("There was a second attempt: \(trials[0].faults.joined(separator: "; "))")
        }
        let reports = trials.map { trial in
            (trial.faults + trial.outputs.map { "\($0.name)\n\($0.text())" }).joined(separator: "\n")
        }
        #expect(
            trials.last?.faults == [], "\(reports.joined(separator: "\n\n"))", sourceLocation: sourceLocation)
    }

    /// Returns the outcomes of all attempts that were due.
    static func attempts(_ attempt: (EmulatedTrial) async throws -> Void) async throws -> [EmulatedTrial] {
        var trials: [EmulatedTrial] = []
        repeat {
            let trial = EmulatedTrial()
            trials.append(trial)
            do { try await attempt(trial) } catch is GaveUp {}
        } while trials.count < 2 && !trials[0].faults.isEmpty && !trials[0].isGrave
        return trials
    }
}

@Suite struct EmulatedTrialTests {
    @Test(arguments: [
        ([1, 2, 3], 1), ([], 2), ([1, 2], 2), ([1, 3], 1), ([1, 2, 2], 1), ([1, 2, 3, 3], 1), ([2, 3], 1),
    ])
    func `A trial whose messages stopped is repeated, and one with messages out of order is not`(
        numbers: [Int], count: Int
    ) async throws {
        let trials = try await EmulatedTrial.attempts { $0.check(numbers, are: 3, at: "Puma") }
        #expect(trials.count == count)
        #expect((trials.last?.faults == []) == (numbers == [1, 2, 3]))
    }

    @Test func `A trial that broke a promise is not repeated, and one that waited in vain is`() async throws {
        let broken = try await EmulatedTrial.attempts { $0.checkPromise(false, "wrong") }
        #expect(broken.map(\.faults) == [["wrong"]])
        let late = try await EmulatedTrial.attempts { trial in
            try await trial.wait(until: "it begins") { true }
            try await trial.wait(until: "it ends", within: .zero) { false }
            Issue.record("it went on")
        }
        #expect(late.map(\.faults) == Array(repeating: ["timed out waiting until it ends"], count: 2))
    }
}
