import NighCore
import NighTestKit
import Testing

/// Tests that the suite fails for transports that break the contract. Otherwise the suite would prove nothing.
struct BrokenTransportTests {
    private func rig(_ defect: Defect?) -> TransportRig {
        var rig = TransportRig.memory(isVirtual: true) { BrokenTransport(defect, around: $0) }
        rig.timeout = .seconds(1)
        return rig
    }

    @Test(arguments: Defect.allCases)
    func `The check detects the defect`(_ defect: Defect) {
        let report = checkTransportConformance(only: [defect.rawValue]) { rig(defect) }
        guard report.outcomes.count == 1, case .failed = report.outcomes[0].verdict else {
            Issue.record("nobody noticed: \(report)")
            return
        }
    }

    @Test func `A correct transport passes every check`() {
        let report = checkTransportConformance { rig(nil) }
        #expect(report.isPassed, "\(report)")
    }

    @Test func `The report states the violation and the rule`() {
        let report = checkTransportConformance(only: ["quiet-after-close"]) { rig(.callsBackAfterClose) }
        #expect(!report.isPassed)
        #expect(report.description.contains("pipeClosed was reported after close"))
        #expect(report.description.contains("What must hold: after close the pipe reports nothing"))
    }

    @Test func `A packet after the close of its port breaks a rule`() {
        let report = checkTransportConformance(only: ["packets-after-close"]) { rig(.deliversAfterClose) }
        #expect(report.description.contains("a packet was reported after its port was closed"), "\(report)")
    }

    @Test func `A rig that cannot be created is a failure`() {
        let error = NighError(.starting, .unavailable("no adapter"))
        let report = checkTransportConformance(only: ["diagnose"]) { throw error }
        #expect(report.description.contains("the rig could not be made: starting: no adapter"))
    }
}
