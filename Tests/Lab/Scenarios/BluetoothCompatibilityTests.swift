import ChildPrograms
import Testing

@testable import lab

/// The tests of the module MultipeerConnectivity, with an adapter of its own for each device in them.
@Suite struct BluetoothCompatibilityTests {
    /// Tests that one machine runs.
    struct Load: Sendable, CustomTestStringConvertible {
        var adapters: Int
        /// The most members of a session.
        var members: Int
        var tests: String
        /// How many tests these are.
        var count: Int

        var testDescription: String { "\(tests) with \(adapters) adapters" }
    }

    @Test(
        "The first twenty rows of the behaviour of MultipeerConnectivity hold over Bluetooth",
        arguments: [
            Load(adapters: 2, members: 2, tests: "(DiscoveryTests|InvitationTests|MessageTests)/", count: 25),
            Load(adapters: 4, members: 4, tests: "SessionTests/mesh", count: 1),
            Load(adapters: 4, members: 3, tests: "SessionTests/full", count: 1),
        ])
    func theFirstTwentyRowsHold(_ load: Load) async throws {
        let program = try BuiltPackages.buildTests(of: "NighCompatibility", in: "Compatibility")
        // Of these tests, one that gets stuck ends after 10 minutes.
        let limit = 900
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let machine = try LabProcess(command: [
                BluetoothMachineTests.machine, "--adapters", "\(load.adapters)", "--discoverable",
                "--time-limit", "\(limit)", "--environment", "NIGH_TEST_ADAPTERS=\(load.adapters)",
                "--environment", "NIGH_TEST_MEMBERS=\(load.members)", "--", program, "--testing-library",
                "swift-testing",
                "--no-parallel", "--filter", "MultipeerConnectivityTests[.]\(load.tests)",
                // 64 MiB take minutes on an emulated radio.
                "--skip", "backPressure",
            ])
            _ = await machine.end(within: .seconds(limit + 60))
            trial.output = machine.output
            // Not the exit status: a program that ends while its sessions go on may crash after its last word.
            let outcome = trial.output.split(separator: "\n").first {
                $0.contains("Test run with \(load.count) test")
            }
            trial.check(outcome?.contains("passed") == true, "not all tests have run and passed")
            return trial
        }
    }
}
