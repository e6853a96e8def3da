import NighCore
import NighTCP
import NighTestKit
import NighUV
import Testing

/// Runs the conformance suite over real sockets on loopback. Each transport has an mDNS stack of its own.
@Suite(.serialized)
struct ConformanceTests {
    private static let nobody = PlainSocket()
    private static let silent = SilentPort()

    static func rig(wrap: @escaping (any Transport) -> any Transport = { $0 }) throws -> TransportRig {
        var rig = TransportRig(
            "tcp on loopback",
            refusedAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(nobody.port)"),
            silentAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(silent.port)"),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeTransport: { wrap(TCPTransport(TCPOptions(interface: "lo", discovery: .embedded))) })
        // All rigs share the loopback interface. With a service of its own, no rig finds transports of another.
        rig.service = try #require(ServiceName("t\(UInt32.random(in: .min ... .max))"))
        rig.quietTime = .milliseconds(100)
        return rig
    }

    @Test(arguments: TransportConformance.checks)
    func check(_ check: ConformanceCheck) {
        let outcome = check.run { try Self.rig() }
        #expect(outcome.verdict == .passed)
    }

    /// Runs each check with `CheckedTransport`, which wraps transports in debug builds. It keeps the contract
    /// too, and reports no broken rule.
    @Test(arguments: TransportConformance.checks)
    func checked(_ check: ConformanceCheck) {
        var made: [CheckedTransport] = []
        let outcome = check.run {
            try Self.rig {
                made.append(CheckedTransport($0))
                return made[made.count - 1]
            }
        }
        #expect(outcome.verdict == .passed)
        #expect(made.compactMap(\.breach).isEmpty)
    }
}
