import NighCore
import NighMemory
import NighTestKit
import Testing

/// Runs every check on every transport that needs no network.
struct ConformanceTests {
    @Test(arguments: TransportConformance.checks)
    func `Memory in virtual time`(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: true) }
        #expect(outcome.verdict == .passed)
    }

    @Test(arguments: TransportConformance.checks)
    func `Memory on threads`(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: false) }
        #expect(outcome.verdict == .passed)
    }

    @Test(arguments: TransportConformance.checks, [true, false])
    func `Faulty without faults`(_ check: ConformanceCheck, _ isVirtual: Bool) {
        let outcome = check.run { .memory(isVirtual: isVirtual) { FaultyTransport($0) } }
        #expect(outcome.verdict == .passed)
    }

    @Test(arguments: TransportConformance.checks, [true, false])
    func `Faulty with delay and splits`(_ check: ConformanceCheck, _ isVirtual: Bool) throws {
        let plan = try FaultPlan(parsing: "delay=1ms,jitter=1ms,split=32k,dial-delay=1ms")
        let outcome = check.run { .memory(isVirtual: isVirtual) { FaultyTransport($0, plan: plan) } }
        #expect(outcome.verdict == .passed)
    }

    @Test func `Check names are unique`() {
        let names = TransportConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count >= 25)
    }

    @Test func `A chosen check is run alone`() {
        let report = checkTransportConformance(only: ["dial-refused"]) { .memory(isVirtual: true) }
        #expect(report.outcomes.map(\.name) == ["dial-refused"])
        #expect(report.isPassed)
        #expect(report.description.hasPrefix("pass  dial-refused"))
        #expect(!checkTransportConformance(only: ["no-such-check"]) { .memory(isVirtual: true) }.isPassed)
    }

    @Test func `Inapplicable checks are skipped with a reason`() {
        let report = checkTransportConformance(only: ["dial-timeout"]) {
            var rig = TransportRig.memory(isVirtual: true)
            rig.silentAddress = nil
            return rig
        }
        guard case .skipped(let reason) = report.outcomes[0].verdict else {
            Issue.record("\(report)")
            return
        }
        #expect(reason.contains("nobody answers"))
    }
}
