import NighCore
import NighTCP
import NighTestKit
import NighUV
import Testing

/// Runs the conformance suites over real sockets on loopback. Each transport has an mDNS stack of its own.
@Suite(.serialized)
struct ConformanceTests {
    private static let nobody = PlainSocket()
    private static let silent = SilentPort()

    private static func rig() throws -> TransportRig {
        var rig = TransportRig(
            "tcp on loopback",
            refusedAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(nobody.port)"),
            silentAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(silent.port)"),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeTransport: { TCPTransport(TCPOptions(interface: "lo", discovery: .embedded)) })
        // All rigs share the loopback interface. With a service of its own, no rig finds transports of another.
        rig.service = try #require(ServiceName("t\(UInt32.random(in: .min ... .max))"))
        rig.quietTime = .milliseconds(100)
        return rig
    }

    @Test(arguments: TransportConformance.checks + SessionConformance.checks)
    func `TCP keeps to the contract and carries sessions`(_ check: ConformanceCheck) {
        #expect(check.run { try Self.rig() }.verdict == .passed)
    }
}
