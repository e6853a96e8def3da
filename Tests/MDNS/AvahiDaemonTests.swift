import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Tests the client of avahi-daemon when the process has no descriptors left.
struct AvahiDaemonTests {
    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func withoutDescriptorsItIsDownAndTriedAgain() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let told = BackendWitness()
            let daemon = AvahiDaemon(on: loop, interface: nil)
            Shortage.ofDescriptors()
            loop.execute { daemon.start(told) }
            #expect(told.monitor.wait(within: .seconds(20)) { !told.errors.isEmpty })
            #expect(told.errors.first?.stage == .starting)
            #expect(told.errors.first?.advice?.contains("ulimit -n") == true)
            Shortage.ofDescriptors(butFor: 500)
            // Whether or not a daemon runs, a further error must have another cause.
            #expect(told.monitor.wait(within: .seconds(20)) { told.isUp || told.errors.count > 1 })
            #expect(told.errors.dropFirst().allSatisfy { $0.advice?.contains("ulimit") != true })
            loop.execute { daemon.shutdown() }
            loop.shutdown()
        }
    }
}
