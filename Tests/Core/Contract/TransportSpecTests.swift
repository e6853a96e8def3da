import NighCore
import Testing

@Suite struct TransportSpecTests {
    @Test(arguments: [
        ("tcp", "tcp", [:]),
        ("tcp:port=4000", "tcp", ["port": "4000"]),
        ("tcp:port=4000,interface=wlan0", "tcp", ["port": "4000", "interface": "wlan0"]),
        ("tcp:address=fe80::1%eth0", "tcp", ["address": "fe80::1%eth0"]),
        ("memory:name=a=b,empty=", "memory", ["name": "a=b", "empty": ""]),
        ("l2cap5", "l2cap5", [:]),
    ])
    func `A spec has a scheme and options`(text: String, scheme: String, options: [String: String]) throws {
        let spec = try TransportSpec(parsing: text)
        #expect(spec.scheme == scheme && spec.options == options)
        #expect(try TransportSpec(parsing: spec.description) == spec)
    }

    @Test func `A spec without a scheme, or with an option without a value or given twice, is refused`() {
        var causes = ["tcp:port=1,port=2": "option \"port\", given twice in \"tcp:port=1,port=2\""]
        for text in [
            "", ":", "TCP", "5g", "tcp,memory", "t c p", "tcp=1", "abcdefghijklmnop", " tcp", "tçp",
        ] {
            causes[text] = "transport \"\(text)\""
        }
        for (text, part) in [
            ("tcp:", ""), ("tcp:port", "port"), ("tcp:port=1,", ""), ("tcp:=1", "=1"),
            ("tcp:port=1,,x=2", ""),
        ] {
            causes[text] = "option \"\(part)\" in \"\(text)\""
        }
        for (text, cause) in causes {
            let error = #expect(throws: NighError.self) { try TransportSpec(parsing: text) }
            #expect(error?.cause == .invalid(cause) && error?.stage == .configuring)
        }
    }

    @Test(arguments: [
        ("tcp", ["tcp"]), ("tcp,memory", ["tcp", "memory"]),
        (
            "tcp:port=1,interface=wlan0,bluetooth:adapter=hci1,memory",
            ["tcp:interface=wlan0,port=1", "bluetooth:adapter=hci1", "memory"]
        ),
        ("tcp:address=fe80::1,port=2,memory:name=x:y", ["tcp:address=fe80::1,port=2", "memory:name=x:y"]),
    ])
    func `A list is split where a transport begins`(text: String, specs: [String]) throws {
        #expect(try TransportSpec.list(parsing: text).map(\.description) == specs)
    }

    @Test(arguments: ["", ",", "tcp,", ",tcp", "port=1,tcp", "tcp,,memory", "tcp,port=1"])
    func `A list with a gap or a loose option is refused`(text: String) {
        #expect(throws: NighError.self) { try TransportSpec.list(parsing: text) }
    }
}

@Suite struct TransportAddressTests {
    @Test(arguments: [
        ("tcp://[fe80::1%eth0]:4000", "tcp", "[fe80::1%eth0]:4000"),
        ("memory://table-1", "memory", "table-1"),
        ("bluetooth://00:11:22:33:44:55", "bluetooth", "00:11:22:33:44:55"),
        ("memory://a://b", "memory", "a://b"),
    ])
    func `An address is read and written`(text: String, scheme: String, value: String) {
        let address = TransportAddress(text)
        #expect(address == TransportAddress(scheme: scheme, value: value))
        #expect(address?.description == text)
    }

    @Test(arguments: [
        "", "tcp", "tcp:", "tcp://", "://x", "TCP://x", "tcp:/x", "tcp:x", "1tcp://x", "t c://x", ":tcp://x",
    ])
    func `Malformed addresses are rejected`(text: String) {
        #expect(TransportAddress(text) == nil)
    }
}

@Suite struct TransportRegistryTests {
    private static func entry(_ scheme: String, options: [String: String] = [:]) -> TransportRegistry.Entry {
        TransportRegistry.Entry(scheme: scheme, summary: "for tests", options: options) { spec in
            ScriptedTransport(spec: spec)
        }
    }

    private let registry = TransportRegistry([
        entry("tcp", options: ["port": "where to listen", "interface": "which network"]), entry("memory"),
    ])

    @Test func `A spec makes its transport`() throws {
        let transport = try registry.make(TransportSpec(parsing: "tcp:port=4000"))
        #expect((transport as? ScriptedTransport)?.spec.options == ["port": "4000"])
        #expect(try registry.makeAll("memory,tcp:port=1,interface=lo").map(\.scheme) == ["memory", "tcp"])
    }

    @Test(arguments: [
        ("tpc:port=1", "there is no transport \"tpc\"; known are: memory, tcp"),
        ("tcp:prot=1,port=2", "invalid option \"prot\"; known are: interface, port"),
        ("memory:name=x", "it takes no options"),
        ("tcp,memory,tcp:port=1", "transport \"tcp\", given twice in \"tcp,memory,tcp:port=1\""),
    ])
    func `A transport or an option that is not known, or a transport given twice, is refused`(
        list: String, words: String
    ) {
        let error = #expect(throws: NighError.self) { try registry.makeAll(list) }
        #expect(error?.stage == .configuring && error?.description.contains(words) == true)
    }

    @Test func `An error of the factory is passed on`() {
        let refusing = TransportRegistry.Entry(scheme: "radio", summary: "") { _ throws(NighError) in
            throw NighError(.starting, .unavailable("no antenna"))
        }
        let error = #expect(throws: NighError.self) { try TransportRegistry([refusing]).makeAll("radio") }
        #expect(error?.cause == .unavailable("no antenna"))
        let none = #expect(throws: NighError.self) { try TransportRegistry().makeAll("tcp") }
        #expect(none?.advice == "none is registered")
    }

    @Test func `A third party transport is registered once`() throws {
        var registry = registry
        try registry.register(Self.entry("pigeon"))
        #expect(registry.entries.map(\.scheme) == ["memory", "pigeon", "tcp"])
        #expect(try registry.makeAll("pigeon").count == 1)
        let taken = #expect(throws: NighError.self) { try registry.register(Self.entry("tcp")) }
        #expect(taken?.cause == .invalid("scheme \"tcp\", which is registered already"))
        for bad in ["", "TCP", "my-wire", "5g", "abcdefghijklmnop"] {
            let error = #expect(throws: NighError.self) { try registry.register(Self.entry(bad)) }
            #expect(error?.cause == .invalid("scheme \"\(bad)\""))
        }
        #expect(self.registry.entries.count == 2, "a registry is a value")
    }
}
