import Testing

@testable import lab

@Suite struct ScenarioTests {
    /// Most of a scenario is waiting, so more of them than there are processors pass sooner.
    private static let permits = Permits(8)

    @Test(arguments: Scenario.all.map(\.name))
    func goesAsItShould(scenario name: String) async throws {
        let scenario = try #require(Scenario.all.first { $0.name == name })
        try await Self.permits.run {
            let lab = try LabProcess([name])
            let ending = await lab.end(within: scenario.limit + .seconds(30))
            #expect(ending == .exited(0), "\(name):\n\(lab.output)")
        }
    }

    @Test func eachHasANameOfItsOwn() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
    }

    /// What fails inside must be seen outside, or every scenario would pass.
    @Test func aFailureIsSeenOutside() async throws {
        let lab = try LabProcess([Scenario.failing.name])
        #expect(await lab.end(within: .seconds(60)) == .exited(1))
        #expect(lab.output.contains("FAILED"))
    }

    @Test(arguments: [["no-such-scenario"], ["--nonsense"], [], ["peer"], ["peer", "--name"]])
    func aWrongCallIsRefused(arguments: [String]) async throws {
        let lab = try LabProcess(arguments)
        #expect(await lab.end(within: .seconds(20)) == .exited(2))
        #expect(!lab.output.isEmpty)
    }

    @Test(arguments: [["--list"], ["--help"], ["peer", "--help"]])
    func itTellsAboutItself(arguments: [String]) async throws {
        let lab = try LabProcess(arguments)
        #expect(await lab.end(within: .seconds(20)) == .exited(0))
        #expect(lab.output.split(separator: "\n").count > 1)
    }
}
