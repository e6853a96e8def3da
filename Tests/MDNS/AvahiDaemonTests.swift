import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Tests the client of avahi-daemon when the process has no descriptors left.
struct AvahiDaemonTests {
    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func `A daemon without descriptors is down and retried`() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let witness = BackendWitness()
            let daemon = AvahiDaemon(on: loop, interface: nil)
            ResourceLimits.limitDescriptors()
            loop.execute { daemon.start(witness) }
            #expect(witness.monitor.wait(within: .seconds(20)) { !witness.errors.isEmpty })
            #expect(witness.errors.first?.stage == .starting)
            #expect(witness.errors.first?.advice?.contains("ulimit -n") == true)
            ResourceLimits.limitDescriptors(leaving: 500)
            // Whether or not a daemon runs, a further error must have another cause.
            #expect(witness.monitor.wait(within: .seconds(20)) { witness.isUp || witness.errors.count > 1 })
            #expect(witness.errors.dropFirst().allSatisfy { $0.advice?.contains("ulimit") != true })
            loop.execute { daemon.shutdown() }
            loop.shutdown()
        }
    }
}
