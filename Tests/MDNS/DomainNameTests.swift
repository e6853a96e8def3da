import Testing

@testable import NighMDNS

struct DomainNameTests {
    @Test func `Names survive writing and reading`() throws {
        let labels = ["A. b\\#1", "Größe", "_greet", "_tcp", "local"].map { Array($0.utf8) }
        let name = try #require(DomainName(labels: labels))
        #expect(DomainName(wire: name.wire)?.labels == labels)
        #expect(DomainName(escaped: name.escaped)?.labels == labels)
        #expect(name.escaped == #"A\.\032b\\\0351.Gr\195\182\195\159e._greet._tcp.local"#)
        #expect(DomainName(escaped: name.escaped + ".") == name)
        #expect(name.description == "A. b\\#1.Größe._greet._tcp.local")
    }

    @Test func `Case of ascii letters is the same`() {
        #expect(DomainName(literal: "Puma.Local") == DomainName(literal: "pUMA.local"))
        #expect(Set([DomainName(literal: "Puma.Local"), DomainName(literal: "puma.local")]).count == 1)
        #expect(DomainName(escaped: #"\195\164.local"#) != DomainName(escaped: #"\195\132.local"#))
    }

    @Test(
        arguments: [
            [], [0], [1], [1, 97], [2, 97, 0], [1, 97, 0, 0], [64] + [UInt8](repeating: 97, count: 64) + [0],
            [0xC0, 0], [1, 97, 0xC0, 0], [1, 0, 0], [2, 0xC3, 0x28, 0],
        ] as [[UInt8]])
    func `Invalid wire names are rejected`(_ wire: [UInt8]) {
        #expect(DomainName(wire: wire) == nil)
    }

    @Test(arguments: ["", ".", "a..b", #"a\"#, #"a\1"#, #"a\12"#, #"a\999b"#, #"a\000b"#, #"a\x"#, ".a"])
    func `Invalid text names are rejected`(_ text: String) {
        #expect(DomainName(escaped: text) == nil)
    }

    @Test func `Names are bounded`() {
        let long = [UInt8](repeating: 97, count: 63)
        #expect(DomainName(labels: [long, long, long, [UInt8](repeating: 97, count: 61)])?.wire.count == 255)
        #expect(DomainName(labels: [long, long, long, [UInt8](repeating: 97, count: 62)]) == nil)
        #expect(DomainName(labels: [long + [97]]) == nil)
    }

    @Test func `The label below a domain is found`() {
        let type = DomainName(literal: "_greet._tcp.local")
        #expect(DomainName(literal: "Puma._GREET._tcp.local").label(below: type) == Array("Puma".utf8))
        #expect(DomainName(literal: "Puma._other._tcp.local").label(below: type) == nil)
        #expect(DomainName(literal: "a.Puma._greet._tcp.local").label(below: type) == nil)
        #expect(type.label(below: type) == nil)
    }
}
