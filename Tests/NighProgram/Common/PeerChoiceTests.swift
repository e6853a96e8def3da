import NighCore
import NighRecord
import Testing

@testable import nigh

/// Tests which peer the text of a command line names.
@Suite struct PeerChoiceTests {
    private let puma = Identity.ephemeral(seed: 1).peerID
    private let stranger = Identity.ephemeral(seed: 2).peerID

    @Test("A name, a PeerID and its beginning name a peer")
    func matches() {
        for text in ["Puma", "\(puma)", "\(puma.short)", String("\(puma)".prefix(4))] {
            #expect(PeerChoice.matches(text, puma, DisplayName(fitting: "Puma")), "\(text)")
            #expect(!PeerChoice.matches(text, stranger, DisplayName(fitting: "Hare")), "\(text)")
        }
        #expect(!PeerChoice.matches(String("\(puma)".prefix(3)), puma, DisplayName(fitting: "Puma")))
    }

    @Test("A whole PeerID does not name a stranger that has taken it as its name")
    func disguised() throws {
        let name = try #require(DisplayName(exactly: "\(puma)"))
        #expect(!PeerChoice.matches("\(puma)", stranger, name))
        #expect(PeerChoice.matches("\(puma)", puma, name))
        var state = LinkState()
        state.greeting = LinkGreeting(peer: stranger, name: name, service: "nigh", incarnation: 1)
        #expect(!TraceFilter(peer: "\(puma)").matches(state))
        #expect(TraceFilter(peer: stranger.short).matches(state))
    }
}
