import Glibc
import NighTestKit

/// What runs inside a machine with Bluetooth: checks, one after the other, each ending with a line that begins with PASSED or FAILED.
enum MachineProgram {
    static let help = """
        usage: lab machine conformance|sessions [NAME…]

        To be run in a machine with four adapters, as `Tests/Lab/bluetooth/machine` makes it. Holds the transport
        `bluetooth` to the contract of transports, or sessions over it to what sessions promise; all, or the checks named.
        """

    /// Does what `arguments` say; returns the exit status.
    static func main(_ arguments: [String]) -> Int32 {
        var checks: [ConformanceCheck]
        switch arguments.first {
        case "conformance": checks = TransportConformance.checks
        case "sessions": checks = SessionConformance.checks
        case "--help", "-h":
            print(help)
            return 0
        default:
            CommandLineOfLab.complain(help)
            return 2
        }
        let names = arguments.dropFirst()
        if !names.isEmpty { checks = checks.filter { names.contains($0.name) } }
        var failed = checks.isEmpty
        for check in checks {
            let outcome = check.run { try BluetoothRig.make() }
            let milliseconds = Int(outcome.duration / .milliseconds(1))
            switch outcome.verdict {
            case .passed: print("PASSED \(check.name) (\(milliseconds) ms)")
            case .failed(let words), .skipped(let words):
                failed = true
                print("FAILED \(check.name) (\(milliseconds) ms): \(words)")
            }
            fflush(nil)
        }
        return failed ? 1 : 0
    }
}
