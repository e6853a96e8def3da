import Glibc
import NighTestKit

/// Runs checks or scenarios inside a machine with Bluetooth, one after the other. Each ends with a line
/// that begins with PASSED or FAILED.
///
/// The emulated controllers may get stuck when other work keeps the processors busy: a link stays half open, or
/// adapters do not come back. So a failure is tried once more with new adapters, and a line that begins with AGAIN says
/// why.
enum MachineProgram {
    static let help = """
        usage: lab machine conformance|sessions|scenarios [--quiet] [NAME…]

        To be run in a machine that `Tests/Lab/bluetooth/machine` makes. Holds the transport `bluetooth` to the contract of
        transports, or sessions over it to what sessions promise; or plays scenarios with programs. All of them, or those
        named. Each begins with new adapters, as many as it needs, however many the machine had.
        """

    /// Runs what `arguments` ask for; returns the exit status.
    static func main(_ arguments: [String]) -> Int32 {
        let names = arguments.dropFirst().filter { $0 != "--quiet" }
        let isQuiet = arguments.contains("--quiet")
        let outcomes: [Bool]
        switch arguments.first {
        case "conformance": outcomes = run(TransportConformance.checks, named: names)
        case "sessions": outcomes = run(SessionConformance.checks, named: names)
        case "scenarios":
            let scenarios = MachineScenarios.all.filter { names.isEmpty || names.contains($0.name) }
            outcomes = scenarios.map { scenario in twice(scenario.name) { play(scenario, isQuiet: isQuiet) } }
        case "--help", "-h":
            print(help)
            return 0
        default:
            CommandLineOfLab.complain(help)
            return 2
        }
        guard !outcomes.isEmpty else {
            CommandLineOfLab.complain("lab: there is nothing of that name; `lab machine --help` says more")
            return 2
        }
        return outcomes.allSatisfy(\.self) ? 0 : 1
    }

    private static func run(_ checks: [ConformanceCheck], named names: [String]) -> [Bool] {
        checks.filter { names.isEmpty || names.contains($0.name) }.map { check in
            twice(check.name) {
                let outcome = check.run { try BluetoothRig.make(ends: check.needs.ends) }
                return switch outcome.verdict {
                case .passed: (outcome.duration, nil)
                case .failed(let reason), .skipped(let reason): (outcome.duration, reason)
                }
            }
        }
    }

    /// The duration, and the reason for a failure.
    private typealias Result = (duration: Duration, complaint: String?)

    private static func twice(_ name: String, _ attempt: () -> Result) -> Bool {
        var result = attempt()
        if let complaint = result.complaint {
            print("AGAIN \(name): \(complaint)")
            fflush(nil)
            result = attempt()
        }
        return report(name, result.duration, result.complaint)
    }

    private static func play(_ scenario: Scenario, isQuiet: Bool) -> Result {
        let journal = Journal(isQuiet: isQuiet)
        let lab = Lab(onThisMachine: journal, limit: scenario.limit)
        do {
            try BluetoothRig.renewAdapters(BluetoothRig.adaptersOfScenario)
            try scenario.play(lab)
            try lab.finish()
            return (journal.now, nil)
        } catch {
            lab.showWhatIsKnown()
            lab.killAll()
            // The next attempt, or the next scenario, needs the network that this one may have switched off.
            try? lab.setNetwork(isUp: true)
            return (journal.now, "\(error)")
        }
    }

    /// Prints the result; returns true if there is no complaint.
    private static func report(_ name: String, _ duration: Duration, _ complaint: String?) -> Bool {
        let milliseconds = Int(duration / .milliseconds(1))
        if let complaint {
            print("FAILED \(name) (\(milliseconds) ms): \(complaint)")
        } else {
            print("PASSED \(name) (\(milliseconds) ms)")
        }
        fflush(nil)
        return complaint == nil
    }
}
