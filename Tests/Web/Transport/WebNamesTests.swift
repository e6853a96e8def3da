import NighTestKit
import Testing

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// Reads an address of numbers, with its port behind the last colon.
private func address(_ text: String) -> SocketAddress {
    let colon = text.lastIndex(of: ":") ?? text.endIndex
    let host = text[..<colon].trimmingPrefix("[").prefix { $0 != "]" }
    guard let port = UInt16(text[colon...].dropFirst()),
        let address = SocketAddress(numeric: String(host), port: port)
    else { preconditionFailure("no address: \(text)") }
    return address
}

@Suite("The names of a server for guests") struct WebNamesTests {
    private static let names = WebNames(
        addresses: ["192.168.1.5:8080", "[fd00::5]:8080", "127.0.0.1:8080"].map(address), host: "Puma.local")

    @Test(arguments: [
        "puma.local:8080", "PUMA.LOCAL:8080", "192.168.1.5:8080", "[fd00::5]:8080", "[FD00::5]:8080",
        "127.0.0.1:8080", "localhost:8080", "LocalHost:8080",
    ])
    func `A browser that was given one of this machine's names means this server`(host: String) {
        #expect(Self.names.contains(host))
    }

    @Test(arguments: [
        "", "evil.example", "evil.example:8080", "puma.local", "puma.local:80", "puma.local:8081",
        "192.168.1.6:8080", "192.168.1.5", "fd00::5:8080", "[fd00::6]:8080", "puma.local.evil.example:8080",
        "evil.example.puma.local:8080", "puma.local:8080.evil.example", "puma.local:8080 ",
        "user@puma.local:8080", "puma.local:08080", "0x7f.1:8080", "127.1:8080", "puma:8080",
        "localhost.evil.example:8080", "0.0.0.0:8080",
    ])
    func `A browser that was given any other name does not`(host: String) {
        #expect(!Self.names.contains(host))
    }

    @Test func `At port 80 browsers leave out the port`() {
        let names = WebNames(addresses: ["192.168.1.5:80", "[fd00::5]:80"].map(address), host: "puma.local")
        for host in ["puma.local", "192.168.1.5", "[fd00::5]", "localhost"] { #expect(names.contains(host)) }
        for host in ["puma.local:80", "fd00::5", "puma.local:8080"] { #expect(!names.contains(host)) }
        #expect(names.urls == ["http://puma.local/", "http://192.168.1.5/", "http://[fd00::5]/"])
        #expect(names.permits(origin: "http://puma.local", at: "puma.local"))
    }

    @Test(arguments: ["http://puma.local:8080", "HTTP://Puma.Local:8080", nil])
    func `A page of the same name may open a WebSocket, whatever the case`(origin: String?) {
        #expect(Self.names.permits(origin: origin, at: "puma.local:8080"))
    }

    @Test(arguments: [
        "", "null", "http://evil.example", "https://puma.local:8080", "http://puma.local",
        "http://puma.local:8081", "http://puma.local:8080/", "http://puma.local:8080.evil.example",
        "http://192.168.1.5:8080", "http://localhost:8080", "file://", "puma.local:8080",
        "http://evil.example,http://puma.local:8080",
    ])
    func `A page of another origin may not`(origin: String) {
        #expect(!Self.names.permits(origin: origin, at: "puma.local:8080"))
    }

    @Test func `Addresses to open have the name first, and loopback only if there is nothing else`() {
        #expect(
            Self.names.urls
                == ["http://puma.local:8080/", "http://192.168.1.5:8080/", "http://[fd00::5]:8080/"])
        var names = Self.names
        names.host = nil
        #expect(names.urls == ["http://192.168.1.5:8080/", "http://[fd00::5]:8080/"])
        #expect(WebNames(addresses: [address("127.0.0.1:9")]).urls == ["http://127.0.0.1:9/"])
        #expect(WebNames(host: "puma.local").urls == [])
    }
}

@Suite("The local network") struct LocalNetworkTests {
    private static func own(_ interface: String, _ text: String) -> NetworkWatch.InterfaceAddress {
        NetworkWatch.InterfaceAddress(
            interface: interface, index: 1, address: address(text), isLoopback: interface == "lo", isUp: true)
    }

    private static let all = [
        own("lo", "127.0.0.1:0"), own("lo", "[::1]:0"), own("eth0", "192.168.1.5:0"),
        own("eth0", "8.8.8.8:0"),
        own("eth0", "[2001:db8::1]:0"), own("eth0", "[fd00::5]:0"), own("eth0", "[fe80::1%1]:0"),
        own("wlan0", "10.1.2.3:0"), own("wlan0", "172.16.0.1:0"), own("wlan0", "172.32.0.1:0"),
        own("wlan0", "169.254.3.4:0"), own("wlan0", "100.64.0.1:0"), own("docker0", "172.17.0.1:0"),
        own("br-12ab", "172.18.0.1:0"), own("veth1", "10.2.0.1:0"), own("virbr0", "192.168.122.1:0"),
        own("tailscale0", "10.9.0.1:0"), own("tun0", "10.8.0.1:0"), own("wg0", "10.7.0.1:0"),
    ]

    private static func chosen(_ interface: String? = nil) -> [String] {
        LocalNetwork.addresses(among: all, interface: interface).map(\.address.hostDescription)
    }

    @Test func `Guests are served at private addresses and loopback, not at public or virtual ones`() {
        #expect(Self.chosen() == ["127.0.0.1", "::1", "192.168.1.5", "fd00::5", "10.1.2.3", "172.16.0.1"])
    }

    @Test func `An interface that somebody has named is the only one besides loopback`() {
        #expect(Self.chosen("docker0") == ["127.0.0.1", "::1", "172.17.0.1"])
        #expect(Self.chosen("lo") == ["127.0.0.1", "::1"])
        #expect(Self.chosen("eth0") == ["127.0.0.1", "::1", "192.168.1.5", "fd00::5"])
    }
}

@Suite("The options of the transport for guests") struct WebOptionsTests {
    private static func options(_ text: String) throws -> WebOptions {
        try WebOptions(TransportSpec(parsing: text))
    }

    @Test func `The options are read`() throws {
        let options = try Self.options("web:port=80,interface=wlan0,rate=2M,bytes=3G")
        #expect(options.port == 80 && options.interface == "wlan0")
        #expect(options.rate == 2 << 20 && options.byteLimit == 3 << 30)
        #expect(try Self.options("web") == WebOptions())
    }

    @Test(arguments: [
        "port=x", "port=65536", "port=-1", "interface=a/b", "interface=abcdefghijklmnop", "rate=0", "rate=-1",
        "rate=M", "bytes=1T", "bytes=9999999999999999999", "bytes=9223372036854775807G",
    ])
    func `Wrong options are refused with advice`(option: String) {
        let error = #expect(throws: NighError.self) { try Self.options("web:\(option)") }
        #expect(error?.stage == .configuring && error?.advice != nil)
    }
}
