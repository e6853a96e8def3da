import ChildPrograms
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighSerial

/// The transport on real devices of the kernel: pseudo-terminals with a cable between them.
@Suite struct PseudoTerminalTests {
    private func rig(_ cable: SerialCable) -> TransportRig {
        var rig = TransportRig(
            "serial", refusedAddress: TransportAddress(scheme: "serial", value: "1"),
            silentAddress: TransportAddress(scheme: "serial", value: "2"),
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
            makeEnd: { end in
                SerialTransport(baud: 3_000_000) { TerminalDevice(cable.ports[end], baud: 3_000_000) }
            })
        (rig.endsAtOnce, rig.pipesAtOnce) = (2, 1)
        rig.bulkByteCount = 128 * 1_024
        rig.quietTime = .milliseconds(100)
        return rig
    }

    @Test(arguments: TransportConformance.checks) func `the transport keeps to the contract`(
        _ check: ConformanceCheck
    ) throws {
        let cable = try SerialCable()
        let outcome = check.run { rig(cable) }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(arguments: TransportConformance.checks.filter { ["huge-write", "both-ways"].contains($0.name) })
    func `256 KiB in both directions arrive as they were written, while one bit in 100,000 is changed`(
        _ check: ConformanceCheck
    ) throws {
        let cable = try SerialCable(noise: 100_000)
        let outcome = check.run {
            var rig = rig(cable)
            rig.bulkByteCount = 256 * 1_024
            rig.timeout = .seconds(60)
            return rig
        }
        #expect(outcome.isPassed, "\(outcome)")
        #expect(cable.changedBits > 10)
    }
}
