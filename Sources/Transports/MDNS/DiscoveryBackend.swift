import NighCore

/// A program that can ask the network and publish on it: avahi-daemon, or an mDNS stack in this process. It knows
/// nothing of DNS-SD.
///
/// Everything is confined to the loop of its `ServiceDiscovery`. Events may come from inside a call.
package protocol DiscoveryBackend: AnyObject {
    var kind: DiscoveryCondition.Provider { get }

    /// How many instances may be followed at once. Each takes four watches, and two more for each forged host.
    var instanceLimit: Int { get }

    /// Starts; `backendUp` or `backendDown` follows.
    func start(_ events: any DiscoveryBackendEvents)

    /// Reports all answers to `question`, now and later, under `number`, which is never used twice. Allowed only while
    /// the backend is up; when it goes down, all watches are gone.
    func watch(_ question: Question, as number: UInt64)

    func unwatch(_ number: UInt64)

    /// Publishes; an earlier publication must have been withdrawn. Allowed only while the backend is up; when it goes
    /// down, the publication is gone.
    func publish(_ publication: Publication)

    /// Replaces the text of the publication, which stays visible.
    func updateText(of publication: Publication)

    func unpublish()

    /// Interfaces or addresses of this host have changed.
    func addressesChanged()

    /// Reports the state of the backend in one line.
    func diagnose() -> Diagnosis

    /// Ends at once; no event comes afterwards.
    func shutdown()
}

/// Receives the events of a backend.
package protocol DiscoveryBackendEvents: AnyObject {
    /// The backend can be asked from now on. If it was up already, the name of its host has changed, or it has begun
    /// anew: all watches and the publication must be made again.
    func backendUp(_ backend: any DiscoveryBackend, host: DomainName)

    /// The backend cannot be used. It goes on trying, and calls `backendUp` if that succeeds.
    func backendDown(_ backend: any DiscoveryBackend, _ error: NighError)

    func watchChanged(_ backend: any DiscoveryBackend, _ number: UInt64, _ change: RecordChange)

    func watchFailed(_ backend: any DiscoveryBackend, _ number: UInt64, _ error: NighError)

    /// The publication is visible to others.
    func publicationSucceeded(_ backend: any DiscoveryBackend)

    /// Another service has the name. The publication is withdrawn.
    func publicationCollided(_ backend: any DiscoveryBackend)

    func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError)
}

/// A record that has appeared or disappeared.
package struct RecordChange: Hashable, Sendable {
    package var isPresent: Bool
    /// The interface and the IP version over which it came: a record is reported once for each.
    package var origin: Origin
    /// The record's data in wire format, which are not trusted yet.
    package var data: [UInt8]

    package init(isPresent: Bool, origin: Origin, data: [UInt8]) {
        self.isPresent = isPresent
        self.origin = origin
        self.data = data
    }

    package struct Origin: Hashable, Sendable {
        package var interface: Int32
        /// Avahi's number of the IP version.
        package var version: Int32

        package init(interface: Int32, version: Int32) {
            self.interface = interface
            self.version = version
        }
    }
}

/// A service to publish, as records.
package struct Publication: Hashable, Sendable {
    /// How long others may keep each record without receiving it again. DNS-SD proposes 75 minutes for all records but
    /// addresses, which would keep crashed programs visible for that long. For a host it proposes two minutes. Programs
    /// that are still looking ask again after four fifths of that time, so the price is one small question every 96
    /// seconds.
    static let timeToLive: UInt32 = 120

    var type: DomainName
    var instance: DomainName
    var service: ServiceRecord
    var text: TextRecord

    static let types = DomainName(literal: "_services._dns-sd._udp.local")
}

/// Whether services can be found and published, and by which program.
public enum DiscoveryCondition: Hashable, Sendable {
    /// Which program speaks mDNS.
    public enum Provider: String, Hashable, Sendable {
        /// The avahi-daemon of this machine.
        case daemon
        /// Avahi's core inside this process.
        case embedded
    }

    /// It works, as far as can be seen, through this program.
    case up(Provider)
    /// It does not work, for this reason. The attempt is repeated automatically.
    case down(NighError)
}
