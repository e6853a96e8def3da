import class ChildPrograms.Permits
import Testing

/// The outcome of an attempt with emulated controllers, which may get stuck on a busy machine. An attempt that failed
/// is repeated once with new controllers, unless its fault cannot be the emulation's.
struct EmulatedTrial {
    /// What is not as it must be.
    private(set) var faults: [String] = []
    /// Whether something happened that no controller causes, such as a message that arrived twice. Then there is no
    /// second attempt.
    private(set) var isGrave = false
    /// Everything that the programs printed.
    var output = ""

    mutating func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { faults.append(words()) }
    }

    /// Checks what no emulated controller can make false. If it is false, there is no second attempt.
    mutating func checkPromise(_ holds: Bool, _ words: @autoclosure () -> String) {
        guard !holds else { return }
        faults.append(words())
        isGrave = true
    }

    /// Polls like `until`. Records a fault if `condition` does not come true in time, and returns whether it did.
    @discardableResult
    mutating func wait(
        until words: @autoclosure () -> String, within limit: Duration = .seconds(30),
        _ condition: () -> Bool
    ) async throws -> Bool {
        let holds = try await comesTrue(within: limit, condition)
        if !holds { faults.append("timed out waiting until \(words())") }
        return holds
    }

    /// Adds what a program printed to the message of a failure.
    mutating func addOutput(_ text: String, of name: String) { output += "\(name)\n\(text)\n" }

    /// Checks the numbers of the messages that came to `name`: all of `count`, each once, in order.
    mutating func check(_ numbers: [Int], are count: Int, at name: String) {
        check(numbers.count >= count, "\(name) got \(numbers.count) messages")
        guard numbers.count > count || !zip(numbers, 1...).allSatisfy({ $0 == $1 }) else { return }
        faults.append("something came to \(name) twice or out of order, or was left out")
        isGrave = true
    }

    /// Records bytes that were changed on the way.
    mutating func checkUndamaged(_ isUndamaged: Bool, at name: String) {
        checkPromise(isUndamaged, "something came to \(name) damaged")
    }

    /// Runs `attempt` with a permit of `Permits.machines`, at most twice, and reports a failure to the test. What was
    /// wrong with a first attempt is printed in any case. The attempt must not take a permit itself.
    static func run(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ attempt: @Sendable () async throws -> EmulatedTrial
    ) async throws {
        let trials = try await attempts { try await Permits.machines.run { try await attempt() } }
        if trials.count > 1 {
            print("There was a second attempt: \(trials[0].faults.joined(separator: "; "))")
        }
        let told = trials.map { "\($0.faults.joined(separator: "\n"))\n\($0.output)" }
        #expect(
            trials.last?.faults == [], "\(told.joined(separator: "\n\n"))", sourceLocation: sourceLocation)
    }

    /// Returns the outcomes of all attempts that were due.
    static func attempts(_ attempt: () async throws -> EmulatedTrial) async rethrows -> [EmulatedTrial] {
        let first = try await attempt()
        return first.faults.isEmpty || first.isGrave ? [first] : [first, try await attempt()]
    }
}

@Suite struct EmulatedTrialTests {
    private static func trial(of numbers: [Int]) -> EmulatedTrial {
        var trial = EmulatedTrial()
        trial.check(numbers, are: 3, at: "Puma")
        return trial
    }

    @Test(
        "A trial whose messages stopped is repeated; one with messages out of order is not",
        arguments: [
            ([1, 2, 3], 1), ([], 2), ([1, 2], 2), ([1, 3], 1), ([1, 2, 2], 1), ([1, 2, 3, 3], 1),
            ([2, 3], 1),
        ])
    func onlyWhatTheEmulationCanCauseIsRepeated(numbers: [Int], count: Int) async {
        let trials = await EmulatedTrial.attempts { Self.trial(of: numbers) }
        #expect(trials.count == count)
        #expect((trials.last?.faults == []) == (numbers == [1, 2, 3]))
    }

    @Test(
        "A trial that broke a promise is not repeated; one with another fault is", arguments: [true, false])
    func aBrokenPromiseIsNotRepeated(isPromise: Bool) async {
        let trials = await EmulatedTrial.attempts {
            var trial = EmulatedTrial()
            if isPromise { trial.checkPromise(false, "wrong") } else { trial.check(false, "too late") }
            return trial
        }
        #expect(trials.map(\.faults) == (isPromise ? [["wrong"]] : [["too late"], ["too late"]]))
    }

    @Test func somethingThatDoesNotComeTrueInTimeIsAFault() async throws {
        var trial = EmulatedTrial()
        let hasBegun = try await trial.wait(until: "it begins") { true }
        let hasEnded = try await trial.wait(until: "it ends", within: .zero) { false }
        #expect(hasBegun && !hasEnded)
        #expect(trial.faults == ["timed out waiting until it ends"])
        #expect(!trial.isGrave)
    }
}
