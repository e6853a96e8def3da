import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

@testable import UnixTransport

/// The transports of one rig meet in a folder of their own.
private func rig(faults: FaultPlan? = nil) -> TransportRig {
    let folder = TemporaryFolder()
    var rig = TransportRig(
        "unix",
        refusedAddress: TransportAddress(
            scheme: "unix", value: "\(folder.path)/nobody"),
        makeLoop: { UVEventLoop() },
        stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
        makeTransport: {
            let transport = UnixTransport(folder: folder.path)
            return faults.map { FaultyTransport(transport, plan: $0) }
                ?? transport
        })
    rig.quietTime = .milliseconds(100)
    return rig
}

@Suite(.serialized) struct ConformanceTests {
    @Test(
        "a transport of folders keeps to the contract",
        arguments: TransportConformance.checks)
    func holds(_ check: ConformanceCheck) {
        let outcome = check.run { rig() }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(
        "it carries sessions while pipes are slow and cut in pieces",
        arguments: SessionConformance.checks)
    func carriesSessionsOnABadDay(_ check: ConformanceCheck) {
        let outcome = check.run {
            try rig(
                faults: FaultPlan(
                    parsing: "delay=3ms,jitter=3ms,split=3000,seed=7"))
        }
        #expect(outcome.isPassed, "\(outcome)")
    }
}
