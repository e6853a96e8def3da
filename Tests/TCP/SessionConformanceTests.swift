import NighTestKit
import Testing

/// What sessions promise, over real sockets on loopback.
@Suite(.serialized)
struct SessionConformanceTests {
    @Test(arguments: SessionConformance.checks)
    func check(_ check: ConformanceCheck) {
        let outcome = check.run { try ConformanceTests.rig() }
        #expect(outcome.verdict == .passed)
    }
}
