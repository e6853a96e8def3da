import NighCore
import NighTestKit
import Testing

@testable import SerialTransport

/// Both suites over a simulated wire with two ends and one pipe, in virtual time, so that a lossy wire takes no real
/// time.
private func rig(lossOneIn: Int, seed: UInt64 = 1) -> TransportRig {
    let loop = VirtualEventLoop()
    let wire = SimulatedWire(on: loop, lossOneIn: lossOneIn, seed: seed)
    // No end has these numbers. Without anybody at the other end, nobody answers.
    var rig = TransportRig(
        "serial", on: loop, refusedAddress: TransportAddress(scheme: "serial", value: "1"),
        silentAddress: TransportAddress(scheme: "serial", value: "2"), makeEnd: { wire.transport($0) })
    (rig.endsAtOnce, rig.pipesAtOnce) = (2, 1)
    rig.bulkByteCount = 256 * 1_024
    rig.timeout = .seconds(60)
    return rig
}

@Suite struct ConformanceTests {
    @Test("a transport over a wire keeps to the contract", arguments: TransportConformance.checks)
    func holds(_ check: ConformanceCheck) {
        let outcome = check.run { rig(lossOneIn: .max) }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(
        "everything arrives over a wire that loses and changes bytes",
        arguments: TransportConformance.streamChecks(), [1, 2] as [UInt64])
    func holdsOnABadWire(_ check: ConformanceCheck, seed: UInt64) {
        let outcome = check.run { rig(lossOneIn: 50, seed: seed) }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test("it carries sessions while the wire loses and changes bytes", arguments: SessionConformance.checks)
    func carriesSessions(_ check: ConformanceCheck) {
        let outcome = check.run { rig(lossOneIn: 200) }
        #expect(outcome.isPassed, "\(outcome)")
    }
}

extension TransportConformance {
    /// The checks that are about bytes.
    static func streamChecks() -> [ConformanceCheck] {
        let names = [
            "listen-and-dial", "both-ways", "tiny-writes", "huge-write", "pressure-dialled-writes",
            "pressure-accepted-writes", "close-after-writing", "close-held-up", "order-of-events",
        ]
        return checks.filter { names.contains($0.name) }
    }
}
