import NighCore
import NighMDNS

/// Settings for the transport `tcp`.
public struct TCPOptions: Hashable, Sendable {
    /// The mDNS implementation that finds peers and announces this session.
    public enum Discovery: String, Hashable, Sendable, CaseIterable {
        /// The machine's avahi-daemon while it runs, otherwise the stack inside this program.
        case automatic
        /// Only the machine's avahi-daemon.
        case daemon
        /// Only the stack inside this program.
        case embedded
        /// None: peers are dialled by their addresses.
        case off

        var mode: ServiceDiscovery.Mode? {
            switch self {
            case .automatic: .automatic
            case .daemon: .daemon
            case .embedded: .embedded
            case .off: nil
            }
        }
    }

    /// The port to listen on; 0 lets the system choose.
    public var port: UInt16
    /// The name of the one network interface to use; nil for all.
    public var interface: String?
    /// How peers are found.
    public var discovery: Discovery

    /// Addresses of peers that can be seen without discovery, such as `tcp://192.168.1.7:4000`. The session dials them
    /// while it browses.
    public var knownAddresses: [TransportAddress]

    /// Creates options. Those left out have their defaults.
    public init(
        port: UInt16 = 0, interface: String? = nil, discovery: Discovery = .automatic,
        knownAddresses: [TransportAddress] = []
    ) {
        self.port = port
        self.interface = interface
        self.discovery = discovery
        self.knownAddresses = knownAddresses
    }

    /// The options that a spec may carry, for the registry.
    static let keys = [
        "host": "the host name or IP address of a peer to connect to; port= is then its port",
        "port": "where to listen, or with host= where the peer listens; by default a free port",
        "interface": "the one network interface to use, such as wlan0; by default all",
        "mdns":
            "daemon, embedded or off: what finds peers; by default avahi-daemon if it runs, else embedded",
    ]

    /// Reads the options of a spec.
    init(_ spec: TransportSpec) throws(NighError) {
        self.init()
        if let host = spec.options["host"] {
            knownAddresses = [try Self.knownAddress(host, port: spec.options["port"])]
        } else if let text = spec.options["port"] {
            guard let port = UInt16(digits: text) else {
                throw Self.invalid("port \"\(text)\"", "a port is a number from 0 to 65535")
            }
            self.port = port
        }
        if let name = spec.options["interface"] {
            guard (1...15).contains(name.utf8.count), !name.contains("/"), !name.contains(" ") else {
                throw Self.invalid("interface \"\(name)\"", "`ip link` lists the interfaces")
            }
            interface = name
        }
        if let text = spec.options["mdns"] {
            guard let discovery = Discovery(rawValue: text) else {
                let known = Discovery.allCases.map(\.rawValue).joined(separator: ", ")
                throw Self.invalid("mdns \"\(text)\"", "known are: \(known)")
            }
            self.discovery = discovery
        }
    }

    private static func knownAddress(
        _ host: String, port: String?
    ) throws(NighError) -> TransportAddress {
        guard let port else {
            throw Self.invalid("host \"\(host)\" without a port", "name the port the peer listens on: port=")
        }
        do throws(NighError) {
            return try TCPDestination(host: host, port: port).address
        } catch {
            throw NighError(.configuring, error.cause, transport: error.transport, advice: error.advice)
        }
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: TCPTransport.schemeName, advice: advice)
    }
}
