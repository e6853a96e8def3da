import NighCore
import NighMemory
import NighTestKit
import Testing

/// Runs every check on every transport that needs no network, and the checks of sessions on memory.
struct ConformanceTests {
    @Test(arguments: TransportConformance.checks + SessionConformance.checks, [true, false])
    func `Memory, in virtual time and on threads`(_ check: ConformanceCheck, _ isVirtual: Bool) {
        let outcome = check.run { .memory(isVirtual: isVirtual) }
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
        let names = (TransportConformance.checks + SessionConformance.checks).map(\.name)
        #expect(Set(names).count == names.count)
        #expect(TransportConformance.checks.count >= 25 && SessionConformance.checks.count >= 35)
    }

    @Test func `A chosen check is run alone`() {
        let report = checkTransportConformance(only: ["dial-refused"]) { .memory(isVirtual: true) }
        #expect(report.outcomes.map(\.name) == ["dial-refused"])
        #expect(report.isPassed)
        #expect(report.description.hasPrefix("pass  dial-refused"))
        #expect(!checkTransportConformance(only: ["no-such-check"]) { .memory(isVirtual: true) }.isPassed)
        let sessions = checkSessionConformance(only: ["call-oneself"]) { .memory(isVirtual: true) }
        #expect(sessions.outcomes.map(\.name) == ["call-oneself"] && sessions.isPassed)
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
