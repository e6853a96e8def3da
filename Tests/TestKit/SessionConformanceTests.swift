import NighCore
import NighMemory
import NighTestKit
import Testing

/// Runs every check of sessions over memory.
struct SessionConformanceTests {
    @Test(arguments: SessionConformance.checks)
    func memoryInVirtualTime(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: true) }
        #expect(outcome.verdict == .passed)
    }

    @Test(arguments: SessionConformance.checks)
    func memoryOnThreads(_ check: ConformanceCheck) {
        let outcome = check.run { .memory(isVirtual: false) }
        #expect(outcome.verdict == .passed)
    }

    @Test func checkNamesAreUnique() {
        let names = SessionConformance.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: TransportConformance.checks.map(\.name)))
        #expect(names.count >= 35)
    }

    @Test func aChosenCheckIsRunAlone() {
        let report = checkSessionConformance(only: ["call-oneself"]) { .memory(isVirtual: true) }
        #expect(report.outcomes.map(\.name) == ["call-oneself"])
        #expect(report.isPassed)
    }
}
