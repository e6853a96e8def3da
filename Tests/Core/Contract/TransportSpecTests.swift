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
    func aSpecHasASchemeAndOptions(text: String, scheme: String, options: [String: String]) throws {
        let spec = try TransportSpec(parsing: text)
        #expect(spec.scheme == scheme && spec.options == options)
        #expect(try TransportSpec(parsing: spec.description) == spec)
    }

    @Test(arguments: [
        "", ":", "TCP", "5g", "tcp,memory", "t c p", "tcp=1", "abcdefghijklmnop", " tcp", "tçp",
    ])
    func specsWithoutASchemeAreRejected(text: String) {
        let error = #expect(throws: NighError.self) { try TransportSpec(parsing: text) }
        #expect(error?.stage == .configuring)
        #expect(error?.cause == .invalid("transport \"\(text)\""))
        #expect(error?.advice == "write a scheme, or scheme:key=value,key=value")
    }

    @Test(arguments: [
        ("tcp:", ""), ("tcp:port", "port"), ("tcp:port=1,", ""), ("tcp:=1", "=1"), ("tcp:port=1,,x=2", ""),
    ])
    func anOptionWithoutAValueIsNamedInTheError(text: String, part: String) {
        let error = #expect(throws: NighError.self) { try TransportSpec(parsing: text) }
        #expect(error?.cause == .invalid("option \"\(part)\" in \"\(text)\""))
        #expect(error?.transport == "tcp")
    }

    @Test func anOptionGivenTwiceIsNamed() {
        let error = #expect(throws: NighError.self) { try TransportSpec(parsing: "tcp:port=1,port=2") }
        #expect(error?.cause == .invalid("option \"port\", given twice in \"tcp:port=1,port=2\""))
    }

    @Test(arguments: [
        ("tcp", ["tcp"]),
        ("tcp,memory", ["tcp", "memory"]),
        (
            "tcp:port=1,interface=wlan0,bluetooth:adapter=hci1,memory",
            [
                "tcp:interface=wlan0,port=1", "bluetooth:adapter=hci1", "memory",
            ]
        ),
        ("tcp:address=fe80::1,port=2,memory:name=x:y", ["tcp:address=fe80::1,port=2", "memory:name=x:y"]),
    ])
    func aListIsSplitWhereATransportBegins(text: String, specs: [String]) throws {
        #expect(try TransportSpec.list(parsing: text).map(\.description) == specs)
    }

    @Test(arguments: ["", ",", "tcp,", ",tcp", "port=1,tcp", "tcp,,memory", "tcp,port=1"])
    func aListWithAGapOrALooseOptionIsRefused(text: String) {
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
    func anAddressIsReadAndWritten(text: String, scheme: String, value: String) {
        let address = TransportAddress(text)
        #expect(address == TransportAddress(scheme: scheme, value: value))
        #expect(address?.description == text)
    }

    @Test(arguments: [
        "", "tcp", "tcp:", "tcp://", "://x", "TCP://x", "tcp:/x", "tcp:x", "1tcp://x", "t c://x", ":tcp://x",
    ])
    func malformedAddressesAreRejected(text: String) {
        #expect(TransportAddress(text) == nil)
    }
}
