import Testing

@testable import NighMDNS

struct DomainNameTests {
    @Test func readsWhatItWrites() throws {
        let name = try #require(
            DomainName(labels: [Array("A. b\\#1".utf8), Array("_greet".utf8), Array("_tcp".utf8)]))
        #expect(DomainName(wire: name.wire) == name)
        #expect(DomainName(escaped: name.escaped) == name)
        #expect(name.escaped == #"A\.\032b\\\0351._greet._tcp"#)
    }
}
