import NighTestKit
import Testing

/// Runs the conformance suite for sessions over real sockets on loopback.
@Suite(.serialized)
struct SessionConformanceTests {
    @Test(arguments: SessionConformance.checks)
    func check(_ check: ConformanceCheck) {
        let outcome = check.run { try ConformanceTests.rig() }
        #expect(outcome.verdict == .passed)
    }
}
