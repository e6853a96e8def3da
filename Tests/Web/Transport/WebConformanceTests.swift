import Glibc
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// Runs the conformance suite over real WebSockets on loopback, with a transport that listens as `web` does and dials
/// as its guests do. Guests find nobody, so the checks of discovery do not apply.
@Suite(.serialized) struct WebConformanceTests {
    /// Checks in which one transport has to find another.
    private static let discovery = [
        "both-see-each-other", "found-changed-lost", "browse-later", "browse-again", "advertise-replaced",
        "never-inside-a-call",
    ]

    private static let nobody = Listener(isListening: false)
    /// Accepts connections and answers no request.
    private static let silent = Listener(isListening: true)

    private static func rig() -> TransportRig {
        let wire = GuestWire()
        var rig = TransportRig(
            "web on loopback",
            refusedAddress: TransportAddress(scheme: "web", value: "127.0.0.1:\(nobody.port)"),
            silentAddress: TransportAddress(scheme: "web", value: "127.0.0.1:\(silent.port)"),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeTransport: { GuestClient(on: wire) })
        // One address has at most 16 connections.
        rig.pipesAtOnce = 12
        rig.quietTime = .milliseconds(100)
        return rig
    }

    @Test(arguments: TransportConformance.checks.filter { !discovery.contains($0.name) })
    func `pipes of guests keep to the contract`(_ check: ConformanceCheck) {
        let outcome = check.run { Self.rig() }
        #expect(outcome.isPassed, "\(outcome)")
    }
}

/// A port of 127.0.0.1 where nobody listens, or where connections are made and nothing is answered.
private final class Listener: Sendable {
    private let descriptor: Int32
    let port: UInt16

    init(isListening: Bool) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = SocketAddress(.v4(0x7F00_0001), port: 0).withSockaddr { bind(descriptor, $0, $1) }
        precondition(status == 0, "no port is free: \(errno)")
        if isListening { listen(descriptor, 64) }
        port = TCPSocket.address(getsockname, descriptor)?.port ?? 0
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
