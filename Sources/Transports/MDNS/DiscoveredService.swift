import NighCore

/// What is offered and looked for, as DNS-SD names it: `_nigh._tcp`.
public struct ServiceType: Hashable, Sendable, CustomStringConvertible {
    /// As it is written.
    public let description: String

    /// The type of `service` over TCP.
    public init(tcp service: ServiceName) { description = "_\(service)._tcp" }

    /// Below it stand the instances.
    var domain: DomainName { DomainName(literal: description + ".local") }
}

/// What to publish.
public struct ServiceRegistration: Hashable, Sendable {
    /// What is offered.
    public var type: ServiceType
    /// Under which label, unless somebody has it already.
    public var name: DisplayName
    /// Where it listens; not 0.
    public var port: UInt16
    /// What else to say.
    public var text: [TextEntry]
    /// The key of that pair in `text` that says who offers this. Whoever holds the wanted name and has the same value there
    /// is an earlier life of this very program, and the name is taken over.
    public var identityKey: String?

    /// All of it.
    public init(
        type: ServiceType, name: DisplayName, port: UInt16, text: [TextEntry], identityKey: String? = nil
    ) {
        self.type = type
        self.name = name
        self.port = port
        self.text = text
        self.identityKey = identityKey
    }
}

/// A service that was seen on one network interface, with all that is needed to reach it there.
public struct DiscoveredService: Hashable, Sendable {
    /// What stays the same while it changes.
    public struct Key: Hashable, Sendable {
        /// The instance's label, which is unique on a network.
        public let name: String
        /// The index of the interface.
        public let interface: UInt32

        package init(name: String, interface: UInt32) {
            self.name = name
            self.interface = interface
        }

        /// Names are compared by their bytes, as DNS does it: two that only look alike are two.
        public static func == (left: Key, right: Key) -> Bool {
            left.interface == right.interface && left.name.utf8.elementsEqual(right.name.utf8)
        }

        /// Hashes what `==` compares.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(interface)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }

    /// A host and a port: what one SRV record says.
    public struct Place: Hashable, Sendable {
        /// The host's name, for a person.
        public let host: String
        /// Where it listens.
        public let port: UInt16
        /// How to reach the host on that interface; never empty, in a fixed order.
        public let addresses: [HostAddress]

        package init(host: String, port: UInt16, addresses: [HostAddress]) {
            self.host = host
            self.port = port
            self.addresses = addresses
        }
    }

    /// Which service, and where it was seen.
    public let key: Key
    /// Where it listens; never empty, the newest first and the oldest next. There are several for a moment after a change, or
    /// while somebody forges records. Nothing here says which of them is true.
    public let places: [Place]
    /// What it says about itself; never empty, in the same order, and several for the same reasons.
    public let texts: [[TextEntry]]
    /// Whether this very `ServiceDiscovery` publishes it, and nobody else does.
    public let isOwn: Bool

    package init(key: Key, places: [Place], texts: [[TextEntry]], isOwn: Bool) {
        self.key = key
        self.places = places
        self.texts = texts
        self.isOwn = isOwn
    }
}
