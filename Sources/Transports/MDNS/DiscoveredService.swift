import NighCore

/// A type of service, as DNS-SD names it: `_nigh._tcp`.
public struct ServiceType: Hashable, Sendable, CustomStringConvertible {
    /// The type as DNS-SD writes it.
    public let description: String

    /// Creates the type of `service` over TCP.
    public init(tcp service: ServiceName) { description = "_\(service)._tcp" }

    /// The domain below which the type's instances are.
    var domain: DomainName { DomainName(literal: description + ".local") }
}

/// A service to publish.
public struct ServiceRegistration: Hashable, Sendable {
    /// The type of the service.
    public var type: ServiceType
    /// The wanted name; if another service has it, the next free one is used.
    public var name: DisplayName
    /// The port on which the service listens; not 0.
    public var port: UInt16
    /// Key-value pairs that the service publishes about itself.
    public var text: [TextEntry]
    /// The key of the pair in `text` that identifies the publisher. If the service that holds the wanted name has the
    /// same value there, it is an earlier run of this program, and its name is taken over.
    public var identityKey: String?

    /// Creates a registration; each parameter sets the property of the same name.
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

/// A service found on one network interface, with everything that is needed to reach it there.
public struct DiscoveredService: Hashable, Sendable {
    /// The part of a service that stays the same while the rest of it changes.
    public struct Key: Hashable, Sendable {
        /// The instance's label, which is unique on a network.
        public let name: String
        /// The index of the interface.
        public let interface: UInt32

        package init(name: String, interface: UInt32) {
            self.name = name
            self.interface = interface
        }

        /// Compares names by their bytes, as DNS does: two names that only look alike are different.
        public static func == (left: Key, right: Key) -> Bool {
            left.interface == right.interface && left.name.utf8.elementsEqual(right.name.utf8)
        }

        /// Hashes what `==` compares.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(interface)
            for byte in name.utf8 { hasher.combine(byte) }
        }
    }

    /// A host and a port, from one SRV record.
    public struct Endpoint: Hashable, Sendable {
        /// The host's name, for display.
        public let host: String
        /// The port on which the service listens.
        public let port: UInt16
        /// The host's addresses on that interface; never empty, in a fixed order.
        public let addresses: [HostAddress]

        package init(host: String, port: UInt16, addresses: [HostAddress]) {
            self.host = host
            self.port = port
            self.addresses = addresses
        }
    }

    /// Which service it is, and on which interface it was found.
    public let key: Key
    /// Where the service listens; never empty, with the newest endpoint first and the oldest next. There are several
    /// for a moment after a change, or while somebody forges records. Nothing here says which of them is true.
    public let endpoints: [Endpoint]
    /// The entries of the service's TXT records; never empty. The order, and the reasons for several, are those of
    /// `endpoints`.
    public let texts: [[TextEntry]]
    /// Whether this `ServiceDiscovery` publishes the service, and nobody else does.
    public let isOwn: Bool

    package init(key: Key, endpoints: [Endpoint], texts: [[TextEntry]], isOwn: Bool) {
        self.key = key
        self.endpoints = endpoints
        self.texts = texts
        self.isOwn = isOwn
    }
}
