import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS

/// Avahi's stack in this process, where the system has few descriptors to give.
struct EmbeddedShortageTests {
    /// In a process of its own: descriptors run out for all of it.
    @Test func withFewDescriptorsItIsDownAndStopsNoProgram() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            Shortage.ofDescriptors()
            var (failed, ran) = (0, 0)
            for count in Int32(0)..<16 {
                let told = Told()
                Shortage.ofDescriptors(butFor: count)
                let embedded = AvahiEmbedded(on: loop, interface: "lo")
                loop.execute { embedded.start(told) }
                #expect(told.monitor.wait(within: .seconds(20)) { told.isUp || !told.errors.isEmpty })
                if told.isUp { ran += 1 } else { failed += 1 }
                for error in told.errors { #expect(error.advice?.contains("ulimit -n") == true, "\(error)") }
                let done = Told()
                loop.execute {
                    embedded.shutdown()
                    done.monitor.change { done.isUp = true }
                }
                #expect(done.monitor.wait(within: .seconds(20)) { done.isUp })
            }
            #expect(failed > 0 && ran > 0)
            loop.shutdown()
        }
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Told: DiscoveryBackendEvents, @unchecked Sendable {
        let monitor = Monitor()
        var errors: [NighError] = []
        var isUp = false

        func backendUp(_ backend: any DiscoveryBackend, host: DomainName) { monitor.change { isUp = true } }
        func backendDown(_ backend: any DiscoveryBackend, _ error: NighError) {
            monitor.change { errors.append(error) }
        }
        func watchChanged(_ backend: any DiscoveryBackend, _ number: UInt64, _ change: RecordChange) {}
        func watchFailed(_ backend: any DiscoveryBackend, _ number: UInt64, _ error: NighError) {}
        func publicationStands(_ backend: any DiscoveryBackend) {}
        func publicationCollided(_ backend: any DiscoveryBackend) {}
        func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError) {}
    }
}
