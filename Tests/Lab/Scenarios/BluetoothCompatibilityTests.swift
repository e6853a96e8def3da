import ChildPrograms
import Testing

@testable import lab

/// The tests of the module MultipeerConnectivity, with an adapter of its own for each device in them.
@Suite struct BluetoothCompatibilityTests {
    /// Tests that one machine runs.
    struct Load: Sendable, CustomTestStringConvertible {
        /// The most members of a session.
        var members: Int
        var tests: String
        /// How many tests these are.
        var count: Int

        var testDescription: String { "\(tests) with up to \(members) members" }
    }

    @Test(
        "The first twenty rows of the behaviour of MultipeerConnectivity hold over Bluetooth",
        arguments: [
            Load(
                members: 3, tests: "(DiscoveryTests|InvitationTests|MessageTests|SessionTests/mesh)",
                count: 22),
            Load(members: 2, tests: "SessionTests/full", count: 1),
        ])
    func theFirstTwentyRowsHold(_ load: Load) async throws {
        let program = try BuiltPackages.buildTests(of: "NighCompatibility", in: "Compatibility")
        // Each test would take two minutes to find out that the emulated controllers are stuck.
        let limit = 240
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let machine = try LabProcess(command: [
                BluetoothMachineTests.machine, "--adapters", "3", "--discoverable", "--time-limit",
                "\(limit)",
                "--environment", "NIGH_TEST_ADAPTERS=3", "--environment",
                "NIGH_TEST_MEMBERS=\(load.members)", "--", program, "--testing-library", "swift-testing",
                "--no-parallel", "--filter", "MultipeerConnectivityTests[.]\(load.tests)",
                // 64 MiB take minutes on an emulated radio.
                "--skip", "backPressure",
            ])
            trial.check(await machine.end(within: .seconds(limit + 60)) == .exited(0), "a test has failed")
            trial.output = machine.output
            trial.check(
                trial.output.contains("Test run with \(load.count) test"), "not all of the tests have run")
            return trial
        }
    }
}
