import NighCore
import NighTestKit

@testable import NighMDNS

/// Records whether a discovery backend came up, and the errors with which it went down. `@unchecked
/// Sendable`: guarded by the monitor.
final class BackendWitness: DiscoveryBackendEvents, @unchecked Sendable {
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
