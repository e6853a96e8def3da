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

    private func announced(_ text: String, _ peers: [(PeerID, String)]) -> [PeerID] {
        PeerName(text).matchingNumbered(peers) { ($0.0, DisplayName(fitting: $0.1)) }.map(\.0)
    }

    @Test func `A name in upper or lower case, a PeerID and its beginning name a peer`() {
        let both = [(puma, "Puma"), (stranger, "Hare")]
        for text in ["Puma", "puma", "\(puma)", puma.short, String("\(puma)".prefix(4))] {
            #expect(named(text, both) == [puma] && named(text.uppercased(), both) == [puma], "\(text)")
        }
        #expect(named(String("\(puma)".prefix(3)), both).isEmpty)
    }

    @Test func `Of two names that differ in case only, the one that is written exactly so is meant`() {
        let both = [(puma, "Puma"), (stranger, "puma")]
        #expect(named("puma", both) == [stranger] && named("Puma", both) == [puma])
        #expect(named("PUMA", both) == [puma, stranger])
    }

    @Test func `A stranger gains nothing by taking another's PeerID, or its beginning, as its name`() throws {
        #expect(named(puma.short, [(puma, "Puma"), (stranger, puma.short)]) == [puma, stranger])
        #expect(named("\(puma)", [(puma, "Puma"), (stranger, "\(puma)")]) == [puma])
        #expect(announced("\(puma)", [(stranger, "\(puma) #2")]).isEmpty)
        var state = LinkState()
        let name = try #require(DisplayName(exactly: "\(puma)"))
        state.greeting = LinkGreeting(peer: stranger, name: name, service: "nigh", incarnation: 1)
        #expect(!TraceFilter(peer: "\(puma)").matches(state))
        #expect(TraceFilter(peer: stranger.short).matches(state))
    }

    @Test
    func `A name without a number names the peers that are announced with one where they are asked for`() {
        let both = [(puma, "Puma #2"), (stranger, "Hare #2")]
        #expect(named("Puma", both).isEmpty)
        #expect(announced("pUMA", both) == [puma] && announced("Hare", both) == [stranger])
        for text in ["Puma #2", "Puma #3", "Pum", "\(puma)", puma.short] {
            #expect(announced(text, both).isEmpty, "\(text)")
        }
    }

    @Test func `A name that is nearly typed is suggested`() {
        let names = ["Lynx", "Hare"].map { DisplayName(fitting: $0) }
        #expect(PeerName("lnyx").suggestion(among: names) == "Lynx")
        #expect(PeerName("Elephant").suggestion(among: names) == nil)
    }

    @Test func `An address is understood without its scheme if it cannot be a name`() throws {
        for text in ["192.168.1.7:4000", "[fe80::1]:4000", "localhost:9", "lynx.local:4000"] {
            let address = TransportAddress(scheme: "tcp", value: text)
            #expect(try TransportAddress.typed(text) == address)
            #expect(try TransportAddress.typed("tcp://\(text)") == address)
        }
        for text in [
            "Puma", "Puma 2.0", "Team:1", "lynx:4000", "10:30", "a.b", "1.2.3", "v1.2.3.4", "Anna's laptop",
        ] {
            #expect(try TransportAddress.typed(text) == nil, "\(text)")
        }
        for (text, advice) in [
            ("192.168.1.7", "tcp://192.168.1.7:4000"), ("192.168.1.7:0", "a port from 1 to 65535"),
            ("192.168.1.7:70000", "a port from 1 to 65535"), ("fe80::1", "tcp://[fe80::1]:4000"),
            ("00:1A:7D:DA:71:13", "bluetooth://"), ("tcp://", "is not an address such as"),
        ] {
            let error = #expect(throws: UsageError.self) { try TransportAddress.typed(text) }
            #expect(error?.description.contains(advice) == true, "\(text): \(String(describing: error))")
        }
    }
}
