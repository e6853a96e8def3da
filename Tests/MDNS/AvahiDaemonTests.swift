import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// The way to avahi-daemon, where this machine has nothing to give for it.
struct AvahiDaemonTests {
    /// In a process of its own: descriptors run out for all of it.
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
            // Whether there is a daemon or not: what it says now is of another kind.
            #expect(told.monitor.wait(within: .seconds(20)) { told.isUp || told.errors.count > 1 })
            #expect(told.errors.dropFirst().allSatisfy { $0.advice?.contains("ulimit") != true })
            loop.execute { daemon.shutdown() }
            loop.shutdown()
        }
    }
}
