import NighCore

/// The destination that a TCP address names: a peer that was found, a numeric address, or a host name.
///
/// There are three forms: `tcp://HOST:PORT` with a name or a number as the host (an IPv6 number in brackets, a
/// link-local one with its interface: `[fe80::1%eth0]`), the same written as options, `tcp:host=HOST,port=PORT`, and
/// `tcp://PEERID.mdns` for a peer that was found.
package enum TCPDestination: Hashable {
    /// A peer found by mDNS, at the addresses that it has when it is dialled.
    case found(PeerID)
    /// A numeric address.
    case number(SocketAddress)
    /// A host name that the system has to look up.
    case name(String, port: UInt16)

    private static let foundSuffix = ".mdns"
    private static let advice =
        "write tcp://HOST:PORT, as in tcp://192.168.1.5:4000, tcp://[fe80::1%eth0]:4000 or tcp://example.org:4000"

    /// Parses an address of this transport, or throws the reason why it is none.
    package init(_ address: TransportAddress) throws(NighError) {
        guard address.scheme == TCPTransport.schemeName else {
            throw Self.invalid("address \(address)", Self.advice)
        }
        try self.init(value: address.value)
    }

    /// The peer to reach, if the address names one that was found.
    package var peer: PeerID? { if case .found(let peer) = self { peer } else { nil } }

    private init(value: String) throws(NighError) {
        if let address = SocketAddress(dotted: value), address.port != 0 {
            self = .number(address)
            return
        }
        if value.hasSuffix(Self.foundSuffix),
            let peer = PeerID(String(value.dropLast(Self.foundSuffix.count)))
        {
            self = .found(peer)
            return
        }
        let isOptions = value.hasByte(UInt8(ascii: "="))
        let (host, port) = try isOptions ? Self.readOptions(value) : Self.readPair(value)
        try self.init(host: host, port: port, in: value)
    }

    /// Parses the values of `host=` and `port=`, or throws the reason why they are wrong.
    init(host: String, port: String) throws(NighError) {
        try self.init(host: Self.withoutBrackets(host), port: port, in: "host=\(host),port=\(port)")
    }

    private init(host: String, port portText: String, in value: String) throws(NighError) {
        guard let port = UInt16(digits: portText), port != 0 else {
            throw Self.invalid("port \"\(portText)\" in \"\(value)\"", "a port is a number from 1 to 65535")
        }
        if let address = SocketAddress(numeric: host, port: port) {
            guard !address.lacksScope else {
                throw Self.invalid(
                    "address \"\(value)\", which lacks the interface",
                    "name the interface: [\(host)%eth0]:\(port)")
            }
            self = .number(address)
        } else if Self.isName(host) {
            self = .name(host, port: port)
        } else if let percent = host.firstIndex(of: "%") {
            let interface = host[host.index(after: percent)...]
            throw Self.invalid(
                "interface \"\(interface)\" in \"\(value)\"", "`ip link` lists the interfaces")
        } else {
            throw Self.invalid("host \"\(host)\" in \"\(value)\"", Self.advice)
        }
    }

    /// Whether to dial an address that another peer has given: a number, and one that is the same host for that peer as
    /// for this side. A name would be looked up here, in a network that the peer may not see. Loopback addresses count
    /// only if this side reaches the peer over loopback, so that it is on the same machine.
    static func mayDial(_ address: TransportAddress, introducedBy introducer: TransportAddress?) -> Bool {
        guard case .number(let place)? = try? TCPDestination(address), place.isUnicast, !place.hasScope else {
            return false
        }
        guard place.isLoopback else { return true }
        guard let introducer, case .number(let origin)? = try? TCPDestination(introducer) else {
            return false
        }
        return origin.isLoopback
    }

    /// Whether an address leads to a program of this machine that others do not reach there.
    package static func isOfThisMachine(_ address: TransportAddress) -> Bool {
        switch try? TCPDestination(address) {
        case .number(let place): place.isLoopback || place.isAny
        case .name(let name, _): name == "localhost" || name.hasSuffix(".localhost")
        case .found, nil: false
        }
    }

    /// The destination as a `tcp://` address.
    var address: TransportAddress {
        switch self {
        case .found(let peer): Self.address(of: peer)
        case .number(let address): address.transportAddress
        case .name(let name, let port):
            TransportAddress(scheme: TCPTransport.schemeName, value: "\(name):\(port)")
        }
    }

    /// Returns the address under which a peer that was found is dialled.
    package static func address(of peer: PeerID) -> TransportAddress {
        TransportAddress(scheme: TCPTransport.schemeName, value: "\(peer)\(foundSuffix)")
    }

    private static func readPair(_ value: String) throws(NighError) -> (host: String, port: String) {
        guard let colon = value.utf8.lastIndex(of: UInt8(ascii: ":")) else {
            throw invalid("address \"\(value)\", which has no port", advice)
        }
        let written = String(value[..<colon])
        let port = String(value[value.utf8.index(after: colon)...])
        let host = withoutBrackets(written)
        guard host != written || !host.utf8.contains(UInt8(ascii: ":")) else {
            throw invalid("address \"\(value)\"", "an IPv6 address stands in brackets: [\(host)]:\(port)")
        }
        return (host, port)
    }

    private static func readOptions(_ value: String) throws(NighError) -> (host: String, port: String) {
        let options = try TransportSpec(parsing: "\(TCPTransport.schemeName):\(value)").options
        guard let host = options["host"], let port = options["port"], options.count == 2 else {
            throw invalid("address \"\(value)\"", "as options, an address is tcp:host=HOST,port=PORT")
        }
        return (withoutBrackets(host), port)
    }

    private static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// Returns whether the system can be asked for this name: labels of letters, digits, `-` and `_`.
    private static func isName(_ text: String) -> Bool {
        guard (1...253).contains(text.utf8.count), text.contains(where: { $0.isLetter }) else { return false }
        return text.split(separator: ".", omittingEmptySubsequences: false).enumerated().allSatisfy {
            index, label in
            // A name may end with the dot of the root domain.
            if label.isEmpty { return index > 0 && text.hasSuffix(".") && text.dropLast().last != "." }
            return label.utf8.count <= 63
                && label.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
        }
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.connecting, .invalid(what), transport: TCPTransport.schemeName, advice: advice)
    }
}
