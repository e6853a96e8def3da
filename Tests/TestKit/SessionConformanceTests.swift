import NighCore
import NighMemory
import NighTestKit
import Testing

/// Runs every check of sessions over memory.
struct SessionConformanceTests {
    @Test(arguments: SessionConformance.checks)
    func `Memory in virtual time`(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: true) }
        #expect(outcome.verdict == .passed)
    }

    @Test(arguments: SessionConformance.checks)
    func `Memory on threads`(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: false) }
        #expect(outcome.verdict == .passed)
    }

    @Test func `Check names are unique`() {
        let names = SessionConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: TransportConformance.checks.map(\.name)))
        #expect(names.count >= 35)
    }

    @Test func `A chosen check is run alone`() {
        let report = checkSessionConformance(only: ["call-oneself"]) { .memory(isVirtual: true) }
        #expect(report.outcomes.map(\.name) == ["call-oneself"])
        #expect(report.isPassed)
    }
}
