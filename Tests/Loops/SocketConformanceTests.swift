import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Runs the conformance suite on a transport that is made of the public parts of NighUV, over real sockets.
@Suite(.serialized) struct SocketConformanceTests {
    /// A listener that accepts nobody and whose backlog is full, so that the kernel defers every dial.
    private final class SilentPlace: Sendable {
        static let shared = SilentPlace()
        let name = "nigh-silent-\(UInt64.random(in: .min ... .max))"
        private let descriptors: [Int32]

        private init() {
            let listener = UnixTransport.listeningSocket(at: name, backlog: 0)
            let knocking = UnixTransport.socket()
            let status = UnixTransport.withAddress(name) {
                connect(
                    knocking, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
            }
            precondition(status == 0, "nobody can knock: \(errno)")
            descriptors = [listener, knocking]
        }
    }

    private static func rig() -> TransportRig {
        var rig = TransportRig(
            "sockets of this machine",
            refusedAddress: TransportAddress(scheme: "unix", value: "nigh-nobody"),
            silentAddress: TransportAddress(scheme: "unix", value: SilentPlace.shared.name),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeTransport: { UnixTransport() })
        rig.bulkByteCount = 4 * 1024 * 1024
        return rig
    }

    /// The checks without discovery: this transport finds no peers.
    private static let notFinding = TransportConformance.checks.filter {
        !["found-changed-lost", "browse-later", "browse-again", "both-see-each-other", "advertise-replaced"]
            .contains($0.name)
    }

    @Test(arguments: notFinding) func `A transport made of these parts passes the conformance suite`(
        _ check: ConformanceCheck
    ) {
        let outcome = check.run { Self.rig() }
        #expect(outcome.verdict == .passed)
    }
}
