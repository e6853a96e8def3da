import Glibc
import NighCore
import Testing

@testable import NighTCP

struct AddressTests {
    @Test(arguments: [
        ("192.168.1.5", "192.168.1.5:4000"), ("::1", "[::1]:4000"), ("2001:db8::7", "[2001:db8::7]:4000"),
        ("fe80::1%lo", "[fe80::1%lo]:4000"), ("fe80::1%1", "[fe80::1%lo]:4000"),
        ("::ffff:10.0.0.1", "10.0.0.1:4000"),
    ])
    func `Numbers are read and written`(_ text: String, _ written: String) {
        #expect(SocketAddress(numeric: text, port: 4000)?.description == written)
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.4.5", "example.org", "fe80::1%nowhere0", "fe80::1%", "1.2.3.4%lo", ":::1",
        "1.2.3.4\0", "::1\0.example.org", "fe80::1%lo\0", "fe80::1%+1",
    ])
    func `Invalid numeric addresses are rejected`(_ text: String) {
        #expect(SocketAddress(numeric: text, port: 1) == nil)
    }

    @Test(arguments: ["10.0.0.7", "fe80::abcd%lo", "2001:db8::1"])
    func `An address survives conversion to sockaddr`(_ text: String) throws {
        let address = try #require(SocketAddress(numeric: text, port: 65_535))
        #expect(address.withSockaddr { socket, _ in SocketAddress(socket) } == address)
    }

    @Test func `Addresses report their scope`() throws {
        func address(_ text: String) throws -> SocketAddress {
            try #require(SocketAddress(numeric: text, port: 1))
        }
        #expect(try address("127.3.0.1").isLoopback)
        #expect(try address("::1").isLoopback)
        #expect(try !address("128.0.0.1").isLoopback)
        #expect(try address("169.254.9.9").isLinkLocal)
        #expect(try address("febf::1%lo").isLinkLocal)
        #expect(try !address("fec0::1").isLinkLocal)
        #expect(try address("fe80::1").lacksScope)
        #expect(try !address("fe80::1%lo").lacksScope)
    }

    // MARK: Addresses that another peer tells

    @Test(arguments: [
        "10.0.0.9:4000", "169.254.3.4:4000", "[2001:db8::7]:4000", "[fd00::1]:4000", "8.8.8.8:53",
    ])
    func `An address that is the same host for everybody is dialled`(_ value: String) {
        let address = TransportAddress(scheme: "tcp", value: value)
        for introducer in [nil, "tcp://10.0.0.2:4000", "tcp://127.0.0.1:4000"] {
            #expect(
                TCPDestination.mayDial(address, introducedBy: introducer.flatMap { TransportAddress($0) }))
        }
    }

    @Test(arguments: [
        "0.0.0.0:22", "0.1.2.3:22", "[::]:22", "224.0.0.251:5353", "255.255.255.255:9", "[ff02::fb]:5353",
        "[::ffff:0.0.0.0]:22", "[fe80::1]:22", "[fe80::1%lo]:22", "[fe80::1%1]:22", "localhost:22",
        "printer.local:80", "host=localhost,port=22", "host=0.0.0.0,port=22", "1.2.3.4", "",
        "\(Identity.ephemeral(seed: 1).peerID).mdns",
    ])
    func `An address that means something else here is not dialled`(_ value: String) {
        let address = TransportAddress(scheme: "tcp", value: value)
        for introducer in [nil, "tcp://10.0.0.2:4000", "tcp://127.0.0.1:4000"] {
            #expect(
                !TCPDestination.mayDial(address, introducedBy: introducer.flatMap { TransportAddress($0) }))
        }
    }

    @Test(arguments: [
        "127.0.0.1:22", "127.9.9.9:22", "[::1]:22", "[::ffff:127.0.0.1]:22", "host=127.0.0.1,port=22",
        "0177.0.0.1:22",
    ])
    func `An address of this machine is dialled only if the peer that tells it is on this machine`(
        _ value: String
    ) {
        let address = TransportAddress(scheme: "tcp", value: value)
        let isNumber = !value.hasPrefix("0")
        for (introducer, isHere) in [
            (nil, false), ("tcp://10.0.0.2:4000", false), ("tcp://[2001:db8::2]:4000", false),
            ("via://127.0.0.1:4000", false), ("tcp://127.0.0.1:4000", true), ("tcp://[::1]:4000", true),
        ] {
            let result = TCPDestination.mayDial(
                address, introducedBy: introducer.flatMap { TransportAddress($0) })
            #expect(result == (isHere && isNumber))
        }
    }

    // MARK: Addresses that a person writes

    @Test(arguments: ["0.0.0.0:0", "192.168.1.5:4000", "255.255.255.255:65535", "127.0.0.1:1"])
    func `Addresses of IPv4 are read in one pass`(text: String) throws {
        let address = try #require(SocketAddress(dotted: text))
        #expect(address.description == text)
        let colon = try #require(text.lastIndex(of: ":"))
        let port = try #require(UInt16(text[text.index(after: colon)...]))
        #expect(address == SocketAddress(numeric: String(text[..<colon]), port: port))
    }

    @Test(arguments: [
        "", ":", "1.2.3.4", "1.2.3.4:", "1.2.3:4", "1.2.3.4.5:6", "1..3.4:5", "256.2.3.4:5", "1.2.3.4:65536",
        "1.2.3.4:999999", "01.2.3.4:5", "1.2.3.4:05", "1.2.3.4:5 ", "+1.2.3.4:5", "1.2.3.4:5:6", "1:2.3.4:5",
        "[::1]:4000", "host:1",
    ])
    func `Other text is no address of IPv4`(text: String) { #expect(SocketAddress(dotted: text) == nil) }

    private func destination(_ text: String) throws(NighError) -> TCPDestination {
        guard let address = TransportAddress(text) else {
            throw NighError(.connecting, .invalid("no address"))
        }
        return try TCPDestination(address)
    }

    @Test func `Destinations are read in their three forms`() throws {
        let four = TCPDestination.number(try #require(SocketAddress(numeric: "10.0.0.1", port: 80)))
        let six = TCPDestination.number(try #require(SocketAddress(numeric: "fe80::1%lo", port: 4000)))
        #expect(try destination("tcp://10.0.0.1:80") == four)
        #expect(try destination("tcp:host=10.0.0.1,port=80") == four)
        #expect(try destination("tcp://[fe80::1%lo]:4000") == six)
        #expect(try destination("tcp:port=4000,host=fe80::1%lo") == six)
        #expect(try destination("tcp://example.org:4000") == .name("example.org", port: 4000))
        #expect(try destination("tcp:host=puma.local,port=9") == .name("puma.local", port: 9))
        let peer = Identity.ephemeral().peerID
        #expect(try destination(TCPDestination.address(of: peer).description) == .found(peer))
    }

    @Test(arguments: [
        ("tcp://10.0.0.1", "has no port"), ("tcp://10.0.0.1:0", "1 to 65535"),
        ("tcp://10.0.0.1:70000", "1 to 65535"),
        ("tcp://fe80::1:4000", "in brackets"), ("tcp://[fe80::1]:4000", "name the interface"),
        ("tcp://[fe80::1%nowhere0]:4000", "interface \"nowhere0\""),
        ("tcp://exa mple:1", "host \"exa mple\""),
        ("tcp://-:1", "host"), ("tcp://a..b:1", "host"), ("tcp:host=x", "host=HOST,port=PORT"),
        ("tcp:host=x,port=1,colour=red", "host=HOST,port=PORT"), ("udp://x:1", "address udp://x:1"),
    ])
    func `Invalid destinations are reported`(_ text: String, _ words: String) throws {
        let error = #expect(throws: NighError.self) { try destination(text) }
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
        #expect(error?.stage == .connecting)
        #expect(error?.advice != nil)
    }

    @Test func `Promising addresses come first`() {
        let texts = [
            "fe80::2%lo", "10.0.0.1", "2001:db8::1", "127.0.0.1", "169.254.1.1", "10.0.0.1", "10.0.0.2",
        ]
        let ordered = texts.compactMap { SocketAddress(numeric: $0, port: 1) }.inDialOrder
        #expect(
            ordered.map(\.hostDescription)
                == ["127.0.0.1", "2001:db8::1", "10.0.0.1", "fe80::2%lo", "10.0.0.2", "169.254.1.1"])
    }

    // MARK: Options

    @Test func `Options are read from a spec`() throws {
        let spec = try TransportSpec(parsing: "tcp:port=4000,interface=wlan0,mdns=off")
        #expect(
            try TCPOptions(spec) == TCPOptions(port: 4000, interface: "wlan0", discovery: .off))
        #expect(try TCPOptions(TransportSpec(parsing: "tcp")) == TCPOptions())
        for (host, value) in [
            ("10.0.0.1", "10.0.0.1:4000"), ("2001:db8::7", "[2001:db8::7]:4000"),
            ("[::1]", "[::1]:4000"), ("puma.local", "puma.local:4000"),
        ] {
            let options = try TCPOptions(TransportSpec(parsing: "tcp:host=\(host),port=4000,interface=eth0"))
            // The port is the other side's. The port on which this side listens is chosen by the system.
            let known = TransportAddress(scheme: "tcp", value: value)
            #expect(options == TCPOptions(interface: "eth0", knownAddresses: [known]))
            #expect(try TCPDestination(known).address == known)
        }
    }

    @Test(arguments: [
        ("tcp:port=x", "0 to 65535"), ("tcp:port=65536", "0 to 65535"),
        ("tcp:mdns=avahi", "daemon, embedded, off"),
        ("tcp:interface=", "ip link"), ("tcp:interface=a/b", "ip link"),
        ("tcp:colour=red", "host, interface, mdns, port"), ("tcp:host=x", "without a port"),
        ("tcp:host=x,port=0", "1 to 65535"), ("tcp:host=,port=1", "host \"\""),
        ("tcp:host=a b,port=1", "host \"a b\""), ("tcp:host=fe80::1,port=1", "name the interface"),
    ])
    func `Wrong options are refused`(_ text: String, _ words: String) throws {
        let registry = TransportRegistry([TCPTransport.registryEntry])
        let error = #expect(throws: NighError.self) { try registry.makeAll(text) }
        #expect(error?.description.contains(words) == true, "\(String(describing: error))")
        #expect(error?.stage == .configuring)
    }
}
