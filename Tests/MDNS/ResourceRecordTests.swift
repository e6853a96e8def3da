import NighCore
import Testing

@testable import NighMDNS

struct ResourceRecordTests {
    @Test func `Service records`() throws {
        let record = ServiceRecord(port: 4_000, host: DomainName(literal: "host.local"))
        #expect(
            record.data == [0, 0, 0, 0, 0x0F, 0xA0, 4] + Array("host".utf8) + [5] + Array("local".utf8) + [0])
        #expect(ServiceRecord(data: record.data) == record)
        #expect(ServiceRecord(data: []) == nil)
        #expect(ServiceRecord(data: Array(record.data.prefix(6))) == nil)
        #expect(ServiceRecord(data: record.data + [0]) == nil)
        #expect(ServiceRecord(data: Array(record.data.dropLast())) == nil)
        #expect(ServiceRecord(data: [0, 0, 0, 0, 0, 0] + record.host.wire) == nil, "port 0")
        #expect(ServiceRecord(data: [0, 0, 0, 0, 1, 1, 0]) == nil, "the root is no host")
    }

    @Test func `Text records`() throws {
        let entries = [
            try #require(TextEntry(key: "v", value: "1")), try #require(TextEntry(key: "flag", value: nil)),
            try #require(TextEntry(key: "empty", value: "")),
            try #require(TextEntry(key: "b", value: [0, 255, 61])),
        ]
        #expect(TextRecord(data: TextRecord(entries: entries).data)?.entries == entries)
        #expect(TextRecord(entries: []).data == [0])
        #expect(TextRecord(data: [0])?.entries == [])
        #expect(TextRecord(data: [])?.entries == [])
    }

    @Test func `Invalid text entries are skipped`() {
        func pieces(_ texts: String...) -> [UInt8] {
            texts.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        }
        let record = TextRecord(data: pieces("a=1", "=2", "", "A=3", "\u{7}=4", "ü=5", "b==6"))
        #expect(
            record?.entries
                == [TextEntry(key: "a", value: "1"), TextEntry(key: "b", value: "=6")].compactMap(\.self))
        #expect(TextRecord(data: [3, 97, 61]) == nil, "cut short")
        #expect(TextRecord(data: [UInt8](repeating: 0, count: TextRecord.maximumByteCount + 1)) == nil)
    }

    @Test func `Text entries are checked`() {
        #expect(TextEntry(key: "", value: "x") == nil)
        #expect(TextEntry(key: "a=b", value: "x") == nil)
        #expect(TextEntry(key: "ä", value: "x") == nil)
        #expect(TextEntry(key: "k", value: [UInt8](repeating: 0, count: 253)) != nil)
        #expect(TextEntry(key: "k", value: [UInt8](repeating: 0, count: 254)) == nil)
    }

    @Test func `An address has a scope only if it is link-local, and tells whether it is loopback`() throws {
        let linkLocal: [UInt8] = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [9]
        #expect(HostAddress(bytes: [10, 0, 0, 1], interface: 3)?.description == "10.0.0.1")
        #expect(HostAddress(bytes: [10, 0, 0, 1], interface: 3)?.scope == 0)
        #expect(HostAddress(bytes: linkLocal, interface: 3)?.description == "fe80:0:0:0:0:0:0:9%3")
        #expect(HostAddress(bytes: [0x20, 1] + linkLocal.dropFirst(2), interface: 3)?.scope == 0)
        #expect(try #require(HostAddress(bytes: [127, 0, 0, 1], interface: 1)).isLoopback)
        #expect(
            try #require(HostAddress(bytes: [UInt8](repeating: 0, count: 15) + [1], interface: 1)).isLoopback)
    }

    @Test(
        arguments: [
            [], [10, 0, 0], [0, 0, 0, 0], [224, 0, 0, 251], [255, 255, 255, 255],
            [UInt8](repeating: 0, count: 16),
            [0xFF, 2] + [UInt8](repeating: 0, count: 13) + [0xFB],
            [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, 0, 0, 1], [UInt8](repeating: 1, count: 17),
        ] as [[UInt8]])
    func `Unusable host addresses are rejected`(_ bytes: [UInt8]) {
        #expect(HostAddress(bytes: bytes, interface: 2) == nil)
    }

    @Test func `A publication has every record that DNS-SD requires`() {
        let publication = Publication(
            type: ServiceType(tcp: "greet").domain, instance: DomainName(literal: "Puma._greet._tcp.local"),
            service: ServiceRecord(port: 1, host: DomainName(literal: "h.local")),
            text: TextRecord(entries: []))
        let names = publication.records.map { "\($0.name) \($0.type)" }
        #expect(
            names == [
                "_greet._tcp.local pointer", "_services._dns-sd._udp.local pointer",
                "Puma._greet._tcp.local service",
                "Puma._greet._tcp.local text",
            ])
        #expect(DomainName(wire: publication.records[0].data) == publication.instance)
        #expect(DomainName(wire: publication.records[1].data) == publication.type)
        #expect(
            !publication.defendedService.flags.contains(.withoutProbing),
            "or nobody is ever told of a collision")
        #expect(publication.defendedService.data == publication.records[2].data)
    }
}
