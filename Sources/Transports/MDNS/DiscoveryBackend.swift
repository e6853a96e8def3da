import NighCore

/// What can ask the network and publish on it: avahi-daemon, or an mDNS stack in this process. DNS-SD itself is none of its
/// business.
///
/// Everything is confined to the loop of its `ServiceDiscovery`. Events may come from inside a call.
package protocol DiscoveryBackend: AnyObject {
    var kind: DiscoveryCondition.Way { get }

    /// How many instances may be followed at once: each takes four watches, and two more for each forged host.
    var instanceLimit: Int { get }

    /// Begins; `backendUp` or `backendDown` follows.
    func start(_ events: any DiscoveryBackendEvents)

    /// Tells what answers `question`, now and later, under `number`, which is never used twice. Only while up; when
    /// the backend goes down, all watches are gone.
    func watch(_ question: Question, as number: UInt64)

    func unwatch(_ number: UInt64)

    /// Publishes; what was published before must have been withdrawn. Only while up, and gone when it goes down.
    func publish(_ publication: Publication)

    /// Replaces the text of what is published, while it stays visible.
    func updateText(of publication: Publication)

    func unpublish()

    /// Interfaces or addresses of this host are others now.
    func addressesChanged()

    /// How it is, in one line.
    func diagnose() -> Diagnosis

    /// Ends at once; no event comes any more.
    func shutdown()
}

/// Who a backend tells.
package protocol DiscoveryBackendEvents: AnyObject {
    /// It can be asked from now on; or, up already, its host is called otherwise now, and what is published must be
    /// published anew.
    func backendUp(_ backend: any DiscoveryBackend, host: DomainName)

    /// It can do nothing. It goes on trying and tells `backendUp` if that helps.
    func backendDown(_ backend: any DiscoveryBackend, _ error: NighError)

    func watchChanged(_ backend: any DiscoveryBackend, _ number: UInt64, _ change: RecordChange)

    func watchFailed(_ backend: any DiscoveryBackend, _ number: UInt64, _ error: NighError)

    /// Others can see it.
    func publicationStands(_ backend: any DiscoveryBackend)

    /// Somebody else has the name. It is withdrawn.
    func publicationCollided(_ backend: any DiscoveryBackend)

    func publicationFailed(_ backend: any DiscoveryBackend, _ error: NighError)
}

/// A record came or went.
package struct RecordChange: Hashable, Sendable {
    package var isPresent: Bool
    /// Where: the same record is told once for each interface and each IP version it was heard over.
    package var place: Place
    /// The record's data as it travels, not yet trusted.
    package var data: [UInt8]

    package init(isPresent: Bool, place: Place, data: [UInt8]) {
        self.isPresent = isPresent
        self.place = place
        self.data = data
    }

    package struct Place: Hashable, Sendable {
        package var interface: Int32
        /// Avahi's number of the IP version.
        package var version: Int32

        package init(interface: Int32, version: Int32) {
            self.interface = interface
            self.version = version
        }
    }
}

/// What is published of one service, as records.
package struct Publication: Hashable, Sendable {
    /// How long others may remember each record without hearing of it again. DNS-SD proposes 75 minutes for all but
    /// addresses, which leaves ghosts of crashed programs that long; two minutes are what it proposes for a host. Whoever still
    /// looks asks again from four fifths of that on, so the price is one small question every 96 seconds.
    static let timeToLive: UInt32 = 120

    var type: DomainName
    var instance: DomainName
    var service: ServiceRecord
    var text: TextRecord

    static let types = DomainName(literal: "_services._dns-sd._udp.local")
}

/// Whether services can be found and published, and by which way.
public enum DiscoveryCondition: Hashable, Sendable {
    /// Who speaks mDNS.
    public enum Way: String, Hashable, Sendable {
        /// The avahi-daemon of this machine.
        case daemon
        /// Avahi's core inside this process.
        case embedded
    }

    /// It works, as far as can be seen, by this way.
    case up(Way)
    /// It does not, for this reason; tried again by itself.
    case down(NighError)
}
