import class ChildPrograms.Permits
import NighTestKit
import Testing

@testable import lab

@Suite struct ScenarioTests {
    /// Scenarios mostly wait, so all of them end sooner if more run at once than there are processors.
    private static let permits = Permits(8)

    @Test(arguments: Scenario.all.map(\.name))
    func `Every scenario passes`(scenario name: String) async throws {
        let scenario = try #require(Scenario.all.first { $0.name == name })
        try await Self.permits.run {
            let lab = try LabProcess([name])
            // It ends by itself at its limit. The lab and this test each count the time for themselves.
            let ending = await lab.end(within: scenario.limit * 2 + .seconds(30))
            #expect(ending == .exited(0), "\(name):\n\(lab.output)")
        }
    }

    /// Names must also differ from the program's own commands, which would do something else, and outside of any
    /// enclosure.
    @Test func `Scenario names are unique`() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
        let words = [CrowdProgram.name, "peer", "machine", Enclosure.insideMark]
        #expect(!Scenario.callable.contains { words.contains($0.name) })
    }

    /// Time limits become longer on a machine where many programs want to run, but not endless.
    @Test func `The clock slows down under load`() {
        let start = ContinuousClock.now
        var runnable = 1
        let clock = LoadAdjustedClock(from: start, processors: 2) { runnable }
        let steps: [(runnable: Int, elapsed: Duration)] = [
            (1, .seconds(1)), (3, .seconds(2)), (5, .milliseconds(2_500)), (9, .milliseconds(2_750)),
            (1_000, .milliseconds(2_875)), (0, .milliseconds(3_875)),
        ]
        for (second, step) in steps.enumerated() {
            runnable = step.runnable
            clock.advance(to: start + .seconds(second + 1))
            #expect(clock.elapsed == step.elapsed)
        }
        clock.advance(to: start + .seconds(60))
        #expect(clock.elapsed == .milliseconds(4_875), "a test that had no processor for long")
    }

    /// The calling thread wants to run, so there is always one.
    @Test func `Runnable threads are counted`() { #expect(LoadAdjustedClock.runnableThreadCount() >= 1) }

    /// A failure inside must be seen outside. Otherwise every scenario would pass.
    @Test func `A failure inside is reported outside`() async throws {
        let lab = try LabProcess([Scenario.failing.name])
        #expect(await lab.end(within: .seconds(60)) == .exited(1))
        #expect(lab.output.contains("FAILED"))
    }

    @Test(arguments: [
        ["no-such-scenario"], ["--nonsense"], [], ["peer"], ["peer", "--name"], ["machine"],
        ["machine", "nonsense"], ["machine", "scenarios", "no-such"],
    ])
    func `Invalid arguments are refused`(arguments: [String]) async throws {
        let lab = try LabProcess(arguments)
        #expect(await lab.end(within: .seconds(20)) == .exited(2))
        #expect(!lab.output.isEmpty)
    }

    @Test(arguments: [["--list"], ["--help"], ["peer", "--help"]])
    func `List and help are printed`(arguments: [String]) async throws {
        let lab = try LabProcess(arguments)
        #expect(await lab.end(within: .seconds(20)) == .exited(0))
        #expect(lab.output.split(separator: "\n").count > 1)
    }
}
