import class ChildPrograms.Permits
import NighTestKit
import Testing

@testable import lab

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
    }

    @Test(arguments: Load.all)
    func everyBluetoothScenarioPasses(_ load: Load) async throws { try await load.run() }

    @Test(arguments: [["machine"], ["machine", "nonsense"], ["machine", "scenarios", "no-such"]])
    func invalidArgumentsAreRefused(arguments: [String]) async throws {
        let lab = try LabProcess(arguments)
        #expect(await lab.end(within: .seconds(20)) == .exited(2))
    }
}

extension BluetoothTests.Load {
    /// Does the work, and expects that all of it passes.
    func run() async throws {
        try await Permits.machines.run {
            // Against endless runs. Beside two other runs of the whole suite, one load took more than 14 minutes.
            let limit = 1_800
            let machine = try LabProcess(
                command: [
                    BluetoothMachineTests.machine, "--time-limit", "\(limit)", "--",
                    LabProcess.program(), "machine", kind,
                ] + names)
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
