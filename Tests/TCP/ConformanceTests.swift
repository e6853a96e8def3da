import NighCore
import NighTCP
import NighTestKit
import NighUV
import Testing

/// The contract of transports, over real sockets on loopback.
@Suite(.serialized)
struct ConformanceTests {
    private static let nobody = PlainSocket()
    private static let silent = SilentPort()

    static func rig() -> TransportRig {
        var rig = TransportRig(
            "tcp on loopback",
            refusedAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(nobody.port)"),
            silentAddress: TransportAddress(scheme: "tcp", value: "127.0.0.1:\(silent.port)"),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeTransport: { TCPTransport(TCPOptions(interface: "lo", discovery: .off)) })
        rig.quietTime = .milliseconds(100)
        return rig
    }

    /// The transport finds nobody by itself yet; these look for somebody.
    private static let needDiscovery: Set = [
        "found-changed-lost", "browse-later", "browse-again", "both-see-each-other", "advertise-replaced",
    ]

    @Test(arguments: TransportConformance.checks.filter { !needDiscovery.contains($0.name) })
    func check(_ check: ConformanceCheck) {
        let outcome = check.run { Self.rig() }
        #expect(outcome.verdict == .passed)
    }
}
