import NighCore

/// Settings for the transport `nats`.
package struct NATSOptions: Hashable, Sendable {
    package static let scheme = "nats"

    /// The most servers that a spec may name.
    static let serverLimit = 64
    /// The most letters of a realm.
    static let realmLimit = 32

    /// The servers, such as `nats://example.org:4222`. They belong to one cluster, whose other servers are found by
    /// themselves.
    package var servers: [ServerAddress]
    /// The path of the file with the credentials; nil if the servers ask for none.
    package var credentials: String?
    /// The path of the file, in PEM, with the certificates of the authorities to trust; nil for the system's own.
    package var authorities: String?
    /// The first part of every subject. Only sessions of the same realm see each other.
    package var realm: String

    /// Creates settings for these servers.
    package init(
        servers: [ServerAddress], credentials: String? = nil, authorities: String? = nil,
        realm: String = "nigh"
    ) {
        self.servers = servers
        self.credentials = credentials
        self.authorities = authorities
        self.realm = realm
    }

    /// The options that a spec may carry, for the registry.
    package static let keys = [
        "server": "nats://HOST:PORT or tls://HOST:PORT; several of one cluster are separated by +",
        "credentials":
            "a file that others cannot read: .creds, an NKey seed, or lines user= and password=, or token=",
        "ca": "a file with the certificates to trust instead of the system's, for tls:// servers",
        "realm": "only sessions of the same realm see each other; nigh by default",
    ]

    /// Reads the options of a spec. Its keys are used once each, so several servers are one value, separated by `+`.
    package init(_ spec: TransportSpec) throws(NighError) {
        guard let text = spec.options["server"] else {
            throw Self.invalid(
                "options without a server", "name it, as in nats:server=nats://example.org:4222")
        }
        var servers: [ServerAddress] = []
        for part in text.split(separator: "+", omittingEmptySubsequences: false) {
            let server = try ServerAddress(parsing: String(part))
            if !servers.contains(where: server.isSamePlace) { servers.append(server) }
        }
        guard servers.count <= Self.serverLimit else {
            throw Self.invalid(
                "number of servers", "name at most \(Self.serverLimit); they tell of the others")
        }
        self.init(servers: servers)
        credentials = try Self.path(spec, "credentials")
        authorities = try Self.path(spec, "ca")
        if let realm = spec.options["realm"] {
            guard Self.isRealm(realm) else {
                throw Self.invalid(
                    "realm \"\(realm)\"", "use 1 to \(Self.realmLimit) letters, digits and hyphens")
            }
            self.realm = realm
        }
        guard authorities == nil || servers.contains(where: \.isEncrypted) else {
            throw Self.invalid("ca without a tls:// server", "write tls:// instead of nats://")
        }
    }

    private static func path(_ spec: TransportSpec, _ key: String) throws(NighError) -> String? {
        guard let path = spec.options[key] else { return nil }
        guard !path.isEmpty else { throw invalid("\(key) \"\"", "name a file") }
        return path
    }

    /// Whether `text` can be the first part of a subject.
    private static func isRealm(_ text: String) -> Bool {
        (1...realmLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: scheme, advice: advice)
    }
}
