import NighCore
import Testing

@testable import NighRelays

@Suite("The address of a relayed peer") struct RelayAddressTests {
    private let carrier = Identity.ephemeral(seed: 1).peerID
    private let peer = Identity.ephemeral(seed: 2).peerID

    @Test("is written and read as via://CARRIER/PEER")
    func address() throws {
        let address = RelayAddress(carrier: carrier, peer: peer)
        #expect(address.description == "via://\(carrier)/\(peer)")
        let text = try #require(TransportAddress(address.description))
        #expect(try RelayAddress(text) == address)
    }

    @Test("is refused in every other form")
    func otherForms() {
        for value in [
            "", "/", "\(carrier)", "\(carrier)/", "/\(peer)", "\(carrier)/\(peer)/", "\(carrier)//\(peer)",
            "\(carrier)/\(peer.short)", "\(carrier)/\(carrier)", "\(carrier) /\(peer)",
        ] {
            #expect(throws: NighError.self) {
                try RelayAddress(TransportAddress(scheme: "via", value: value))
            }
        }
        let other = TransportAddress(scheme: "tcp", value: "\(carrier)/\(peer)")
        #expect(throws: NighError.self) { try RelayAddress(other) }
    }

    @Test("names the streams that carry its pipe, in the only forms that are read")
    func names() throws {
        for name in [RelayStreamName.to(peer), .from(peer)] {
            #expect(try RelayStreamName(name.description) == name)
        }
        for name in [
            "", "to", "to:", ":\(peer)", "\(peer)", "to:\(peer) ", "TO:\(peer)", "to:\(peer):\(peer)",
        ] {
            #expect(throws: NighError.self) { try RelayStreamName(name) }
        }
    }
}
