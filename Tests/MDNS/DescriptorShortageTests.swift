import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Tests both backends of discovery when few descriptors are left, or none. Each test runs in a process of its own,
/// because the shortage affects a whole process.
struct DescriptorShortageTests {
    @Test func `A daemon without descriptors is down and retried`() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let witness = BackendWitness()
            let daemon = AvahiDaemon(on: loop, interface: nil)
            ResourceLimits.limitDescriptors()
            loop.call { daemon.start(witness) }
            #expect(witness.monitor.wait(within: .seconds(20)) { !witness.errors.isEmpty })
            #expect(witness.errors.first?.stage == .starting)
            #expect(witness.errors.first?.advice?.contains("ulimit -n") == true)
            ResourceLimits.limitDescriptors(leaving: 500)
            // Whether or not a daemon runs, a further error must have another cause.
            #expect(witness.monitor.wait(within: .seconds(20)) { witness.isUp || witness.errors.count > 1 })
            #expect(witness.errors.dropFirst().allSatisfy { $0.advice?.contains("ulimit") != true })
            loop.call { daemon.shutdown() }
            loop.shutdown()
        }
    }

    @Test func `A lack of descriptors for Avahi's stack does not stop the program`() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            ResourceLimits.limitDescriptors()
            var (failed, ran) = (0, 0)
            for count in Int32(0)..<16 {
                let witness = BackendWitness()
                ResourceLimits.limitDescriptors(leaving: count)
                let embedded = AvahiEmbedded(on: loop, interface: "lo")
                loop.call { embedded.start(witness) }
                #expect(
                    witness.monitor.wait(within: .seconds(20)) { witness.isUp || !witness.errors.isEmpty })
                if witness.isUp { ran += 1 } else { failed += 1 }
                for error in witness.errors {
                    #expect(error.advice?.contains("ulimit -n") == true, "\(error)")
                }
                loop.call { embedded.shutdown() }
            }
            #expect(failed > 0 && ran > 0)
            loop.shutdown()
        }
    }
}

/// Records whether a discovery backend came up, and the errors with which it went down. `@unchecked
/// Sendable`: guarded by the monitor.
private final class BackendWitness: DiscoveryBackendEvents, @unchecked Sendable {
    let monitor = Monitor()
    var errors: [NighError] = []
    var isUp = false

    func backendUp(_ backend: any DiscoveryBackend, host: DomainName) { monitor.change { isUp = true } }
    func backendDown(_ backend: any DiscoveryBackend, _ error: NighError) {
        monitor.change { errors.append(error) }
    }
    func watchChanged(_ backend: any DiscoveryBackend, _ number: UInt64, _ change: RecordChange) {}
    func watchFailed(_ backend: any DiscoveryBackend, _ number: UInt64, _ error: NighError) {}
    func publicationSucceeded(_ backend: any DiscoveryBackend) {}
    func publicationCollided(_ backend: any DiscoveryBackend) {}
    func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError) {}
}
