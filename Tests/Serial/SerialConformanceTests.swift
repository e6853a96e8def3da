import NighCore
import NighTestKit
import Testing

@testable import NighSerial

/// Both suites over a simulated line, in virtual time, so that a slow and noisy line takes no real time.
private func rig(baud: Int = 3_000_000, noise: Int = .max, seed: UInt64 = 1) -> TransportRig {
    let loop = VirtualEventLoop()
    let line = SimulatedLine(on: loop, baud: baud, noise: noise, seed: seed)
    // No end has these numbers. Without anybody at the other end, nobody answers.
    var rig = TransportRig(
        "serial", on: loop, refusedAddress: TransportAddress(scheme: "serial", value: "1"),
        silentAddress: TransportAddress(scheme: "serial", value: "2"), makeEnd: { line.makeTransport($0) })
    (rig.endsAtOnce, rig.pipesAtOnce) = (2, 1)
    rig.bulkByteCount = 256 * 1_024
    rig.timeout = .seconds(60)
    return rig
}

@Suite struct SerialConformanceTests {
    @Test(arguments: TransportConformance.checks) func `a transport over a serial line keeps to the contract`(
        _ check: ConformanceCheck
    ) {
        let outcome = check.run { rig() }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(arguments: TransportConformance.streamChecks(), [1, 2] as [UInt64])
    func `everything arrives over a line that changes one bit in 50,000`(
        _ check: ConformanceCheck, seed: UInt64
    ) {
        let outcome = check.run { rig(noise: 50_000, seed: seed) }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(arguments: SessionConformance.checks)
    func `it carries sessions while the line changes one bit in 200,000`(_ check: ConformanceCheck) {
        let outcome = check.run { rig(noise: 200_000) }
        #expect(outcome.isPassed, "\(outcome)")
    }
}

extension TransportConformance {
    /// The checks that are about bytes.
    fileprivate static func streamChecks() -> [ConformanceCheck] {
        let names = [
            "listen-and-dial", "both-ways", "tiny-writes", "huge-write", "pressure-dialled-writes",
            "pressure-accepted-writes", "close-after-writing", "close-held-up", "order-of-events",
        ]
        return checks.filter { names.contains($0.name) }
    }
}
