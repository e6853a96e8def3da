import ChildPrograms
import NighTestKit
import Testing

@testable import lab

/// Plays one game over RFCOMM. It is the proof that runs for each change; `make test-bluetooth` has all others.
@Suite struct BluetoothGameTests {
    /// The scenario with the game.
    static let scenario = "game"

    @Test func `Two people play over bluetooth`() async throws {
        try await BluetoothTests.Load(kind: "scenarios", names: [Self.scenario]).run()
    }
}

/// Tests the transport `bluetooth` on a real kernel and a real bluetoothd, in machines with emulated controllers.
@Suite struct BluetoothTests {
    /// The work of one machine, done one thing after the other.
    struct Load: Sendable, CustomTestStringConvertible {
        var kind: String
        var names: [String]

        var testDescription: String { "\(kind) from \(names.first ?? "") to \(names.last ?? "")" }

        /// All of the work, the longest loads first, so that no machine works alone at the end.
        static let all =
            halves("scenarios", MachineScenarios.all.map(\.name).filter { $0 != BluetoothGameTests.scenario })
            + halves("sessions", SessionConformance.checks.map(\.name))
            + halves("conformance", TransportConformance.checks.map(\.name))

        /// Two loads. Neighbours in a list take similarly long, so they are in different ones.
        private static func halves(_ kind: String, _ names: [String]) -> [Load] {
            (0...1).map { half in
                Load(kind: kind, names: stride(from: half, to: names.count, by: 2).map { names[$0] })
            }
        }

        /// Does the work, and expects that all of it passes.
        func run() async throws {
            try await Permits.machines.run {
                // Against endless runs. Beside two other runs of the whole suite, one load took more than 14 minutes.
                let limit = 1_800
                let machine = try LabProcess.machine(
                    timeLimit: limit, running: [LabProcess.program(), "machine", kind] + names)
                let ending = await machine.end(within: .seconds(limit + 60))
                let output = machine.output
                let lines = output.split(separator: "\n")
                for line in lines where line.hasPrefix("FAILED") { Issue.record("\(line)") }
                // More repetitions than that are not caused by the emulation.
                #expect(lines.count { $0.hasPrefix("AGAIN") } <= max(1, names.count / 4), "\(output)")
                // If nothing is printed about one, it counts as failed too.
                #expect(
                    lines.count { $0.hasPrefix("PASSED") } == names.count && ending == .exited(0),
                    "\(output)")
            }
        }
    }

    @Test(arguments: Load.all)
    func `Every bluetooth scenario passes`(_ load: Load) async throws { try await load.run() }

    /// Tests of the module MultipeerConnectivity that one machine runs, with an adapter for each device in them.
    struct CompatibilityLoad: Sendable, CustomTestStringConvertible {
        var adapters: Int
        /// The most members of a session.
        var members: Int
        var tests: String
        /// How many tests these are.
        var count: Int

        var testDescription: String { "\(tests) with \(adapters) adapters" }
    }

    @Test(arguments: [
        CompatibilityLoad(
            adapters: 2, members: 2, tests: "(DiscoveryTests|InvitationTests|MessageTests)/", count: 25),
        CompatibilityLoad(adapters: 4, members: 4, tests: "SessionTests/mesh", count: 1),
        CompatibilityLoad(adapters: 4, members: 3, tests: "SessionTests/full", count: 1),
    ])
    func `The first twenty rows of the behaviour of MultipeerConnectivity hold over Bluetooth`(
        _ load: CompatibilityLoad
    ) async throws {
        let program = try BuiltPackages.buildTests(of: "NighCompatibility", in: "Compatibility")
        // Of these tests, one that gets stuck ends after 10 minutes.
        let limit = 900
        try await EmulatedTrial.run { trial in
            let machine = try LabProcess.machine(
                "--adapters", "\(load.adapters)", "--discoverable", "--environment",
                "NIGH_TEST_ADAPTERS=\(load.adapters)", "--environment", "NIGH_TEST_MEMBERS=\(load.members)",
                timeLimit: limit,
                running: [
                    program, "--testing-library", "swift-testing", "--no-parallel", "--filter",
                    "MultipeerConnectivityTests[.]\(load.tests)",
                    // 64 MiB take minutes on an emulated radio.
                    "--skip", "backPressure",
                ])
            trial.show("the tests", machine.output)
            _ = await machine.end(within: .seconds(limit + 60))
            // Not the exit status: a program that ends while its sessions go on may crash after its last word.
            let outcome = machine.output.split(separator: "\n").first {
                $0.contains("Test run with \(load.count) test")
            }
            trial.check(outcome?.contains("passed") == true, "not all tests have run and passed")
        }
    }
}
