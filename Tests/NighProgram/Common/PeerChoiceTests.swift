import Arguments
import NighCore
import NighRecord
import SessionArguments
import Testing

@testable import nigh

/// Tests which peer the text of a command line names.
@Suite struct PeerChoiceTests {
    private let puma = Identity.ephemeral(seed: 1).peerID
    private let stranger = Identity.ephemeral(seed: 2).peerID

    private func named(_ text: String, _ peers: [(PeerID, String)]) -> [PeerID] {
        PeerName(text).matching(peers) { ($0.0, DisplayName(fitting: $0.1)) }.map(\.0)
    }

    @Test("A name in upper or lower case, a PeerID and its beginning name a peer")
    func matches() {
        for text in ["Puma", "puma", "PUMA", "\(puma)", "\(puma.short)", String("\(puma)".prefix(4))] {
            #expect(PeerName(text).matches(puma, DisplayName(fitting: "Puma")), "\(text)")
            #expect(PeerName(text.uppercased()).matches(puma, DisplayName(fitting: "Puma")), "\(text)")
            #expect(!PeerName(text).matches(stranger, DisplayName(fitting: "Hare")), "\(text)")
        }
        #expect(!PeerName(String("\(puma)".prefix(3))).matches(puma, DisplayName(fitting: "Puma")))
    }

    @Test("Of two names that differ in case only, the one that is written exactly so is meant")
    func exact() {
        let both = [(puma, "Puma"), (stranger, "puma")]
        #expect(named("puma", both) == [stranger])
        #expect(named("Puma", both) == [puma])
        #expect(named("PUMA", both) == [puma, stranger])
        // A stranger gains nothing by taking the beginning of another's PeerID as its name.
        #expect(named(puma.short, [(puma, "Puma"), (stranger, puma.short)]) == [puma, stranger])
    }

    @Test("A whole PeerID does not name a stranger that has taken it as its name")
    func disguised() throws {
        let name = try #require(DisplayName(exactly: "\(puma)"))
        #expect(!PeerName("\(puma)").matches(stranger, name))
        #expect(PeerName("\(puma)").matches(puma, name))
        var state = LinkState()
        state.greeting = LinkGreeting(peer: stranger, name: name, service: "nigh", incarnation: 1)
        #expect(!TraceFilter(peer: "\(puma)").matches(state))
        #expect(TraceFilter(peer: stranger.short).matches(state))
    }

    @Test("A name without a number names the peers that are announced with one only where they are asked for")
    func numbered() {
        let both = [(puma, "Puma #2"), (stranger, "Hare #2")]
        func announced(_ text: String) -> [PeerID] {
            PeerName(text).matchingNumbered(both) { ($0.0, DisplayName(fitting: $0.1)) }.map(\.0)
        }
        #expect(named("Puma", both) == [])
        #expect(announced("pUMA") == [puma] && announced("Hare") == [stranger])
        for text in ["Puma #2", "Puma #3", "Pum", "\(puma)", puma.short] {
            #expect(announced(text) == [], "\(text)")
        }
        let taken = [(stranger, "\(puma) #2")]
        #expect(PeerName("\(puma)").matchingNumbered(taken) { ($0.0, DisplayName(fitting: $0.1)) }.isEmpty)
    }

    @Test("A name that is nearly typed is suggested")
    func suggestion() {
        let names = ["Lynx", "Hare"].map { DisplayName(fitting: $0) }
        #expect(PeerName("lnyx").suggestion(among: names) == "Lynx")
        #expect(PeerName("Elephant").suggestion(among: names) == nil)
    }

    @Test(
        "An address is understood without its scheme if it cannot be a name",
        arguments: ["192.168.1.7:4000", "[fe80::1]:4000", "localhost:9", "lynx.local:4000"])
    func typedAddress(_ text: String) throws {
        #expect(try TransportAddress.typed(text) == TransportAddress(scheme: "tcp", value: text))
        #expect(try TransportAddress.typed("tcp://\(text)") == TransportAddress(scheme: "tcp", value: text))
    }

    @Test(
        "A text that can only be a wrong address is refused with the right form",
        arguments: [
            ("192.168.1.7", "tcp://192.168.1.7:4000"), ("192.168.1.7:0", "a port from 1 to 65535"),
            ("192.168.1.7:70000", "a port from 1 to 65535"), ("fe80::1", "tcp://[fe80::1]:4000"),
            ("00:1A:7D:DA:71:13", "bluetooth://"), ("tcp://", "is not an address such as"),
        ])
    func wrongAddress(_ text: String, _ advice: String) {
        let error = #expect(throws: UsageError.self) { try TransportAddress.typed(text) }
        #expect(error?.description.contains(advice) == true, "\(text): \(String(describing: error))")
    }

    @Test(
        "What may be a name is one",
        arguments: [
            "Puma", "Puma 2.0", "Team:1", "lynx:4000", "10:30", "a.b", "1.2.3", "v1.2.3.4", "Anna's laptop",
        ])
    func names(_ text: String) throws { #expect(try TransportAddress.typed(text) == nil) }
}
