import class ChildPrograms.Permits
import Testing

/// The outcome of an attempt with emulated controllers, which may get stuck on a busy machine. An attempt that failed
/// is repeated once with new controllers, unless its fault cannot be the emulation's.
struct EmulatedTrial {
    /// What is not as it must be.
    private(set) var faults: [String] = []
    /// Whether a message arrived that must not arrive like that. No controller does this, so there is no second
    /// attempt.
    private(set) var isGrave = false
    /// Everything that the programs printed.
    var output = ""

    mutating func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { faults.append(words()) }
    }

    /// Checks the numbers of the messages that came to `name`: all of `count`, each once, in order.
    mutating func check(_ numbers: [Int], are count: Int, at name: String) {
        check(numbers.count >= count, "\(name) got \(numbers.count) messages")
        guard numbers.count > count || !zip(numbers, 1...).allSatisfy({ $0 == $1 }) else { return }
        faults.append("something came to \(name) twice or out of order, or was left out")
        isGrave = true
    }

    /// Records bytes that were changed on the way.
    mutating func checkUndamaged(_ isUndamaged: Bool, at name: String) {
        check(isUndamaged, "something came to \(name) damaged")
        if !isUndamaged { isGrave = true }
    }

    static func run(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ attempt: @Sendable () async throws -> EmulatedTrial
    ) async throws {
        let trials = try await attempts { try await Permits.machines.run { try await attempt() } }
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
}
