import NighCore
import NighMemory
import NighTestKit
import Testing

/// Tests that the session checks fail for sessions over a broken transport. Otherwise the checks would prove nothing.
struct BrokenSessionTests {
    private func rig(_ defect: Defect?, _ mangling: Mangling? = nil) -> TransportRig {
        var rig = TransportRig.memory(isVirtual: true) {
            BrokenTransport(defect, mangling: mangling, around: $0)
        }
        rig.timeout = .seconds(5)
        return rig
    }

    private func expectFailure(_ check: String, _ makeRig: () -> TransportRig) {
        let report = checkSessionConformance(only: [check], makeRig)
        guard report.outcomes.count == 1, case .failed = report.outcomes[0].verdict else {
            Issue.record("nobody noticed: \(report)")
            return
        }
    }

    @Test(
        arguments: Mangling.allCases,
        ["every-size", "many-small", "in-pieces", "cut-in-stream", "waiting-sender", "leave", "close"])
    func `Changed messages are detected`(_ mangling: Mangling, _ check: String) {
        expectFailure(check) { rig(nil, mangling) }
    }

    private static let defects: [(Defect, String)] = [
        (.forgetsLost, "found-and-lost"), (.mixesPipes, "one-some-all"), (.losesLastByte, "invited"),
        (.keepsAWriterWaiting, "cut-in-stream"),
        (.stoppingClosesPipes, "close"), (.spoilsAByte, "small-overtakes-large"),
    ]

    @Test(arguments: defects)
    func `A transport that breaks its contract is detected`(_ defect: Defect, _ check: String) {
        expectFailure(check) { rig(defect) }
    }

    /// The checks that can pass when no peer can reach another.
    private static let lonely = ["call-nobody"]

    @Test(arguments: SessionConformance.checks)
    func `Only checks that need no peer pass without one`(_ check: ConformanceCheck) {
        let isPassed = check.run {
            var rig = TransportRig(
                "apart", on: VirtualEventLoop(),
                refusedAddress: TransportAddress(scheme: "memory", value: "nobody"),
                makeTransport: { MemoryTransport(hub: MemoryHub()) })
            rig.timeout = .milliseconds(200)
            return rig
        }.isPassed
        #expect(isPassed == Self.lonely.contains(check.name))
    }

    @Test func `A correct transport passes every check`() {
        let report = checkSessionConformance { rig(nil) }
        #expect(report.isPassed, "\(report)")
    }
}
