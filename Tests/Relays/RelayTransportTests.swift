import NighCore
import NighTestKit
import Testing

@testable import NighRelays

@Suite("The transport of relayed pipes") struct RelayTransportTests {
    private let network = RelayNetwork()

    @Test func `says how many pipes are open`() throws {
        let (a, _, _) = try network.makeRelayedPair()
        let findings = a.relays.transport.diagnose().map { "\($0.subject): \($0.finding)" }
        #expect(findings == ["pipes: 1 open through other peers"])
        #expect(RelayTransport().diagnose().map(\.verdict) == [.fail])
    }

    @Test func `lets a dial end in time, and ends what the carrier began for it`() throws {
        let (a, b, c) = try network.makeChain { $0.timings.loseAfter = .seconds(600) }
        c.faults[1]?.stall(.all, .incoming)
        let failure = try #require(try network.invite(c, from: a, within: .seconds(5)))
        #expect("\(failure)".contains("no answer in time"), "\(failure)")
        try network.run(.seconds(1))
        #expect(a.session.inspection(of: b.id)?.streams == 0)
        c.faults[1]?.release()
        try network.run(.seconds(1))
        #expect(b.counts.pipes == 0 && !c.isConnected(to: a))
        #expect(try network.invite(c, from: a) == nil)
    }

    @Test(arguments: 0..<30)
    func `gives up a dial that is cancelled, wherever its stream is`(turns: Int) throws {
        let (a, b, c) = try network.makeChain()
        try network.loop.runQueued()
        a.session.invite(c.id) { _ in }
        for _ in 0..<turns { try network.loop.runTurn() }
        a.session.cancelInvitation(of: c.id)
        try network.run(.seconds(2))
        for member in [a, b, c] {
            let peers = member.session.inspection.peers
            #expect(peers.allSatisfy { $0.streams == 0 } || a.isConnected(to: c))
        }
    }
}

@Suite("The address of a relayed peer") struct RelayAddressTests {
    private let carrier = Identity.ephemeral(seed: 1).peerID
    private let peer = Identity.ephemeral(seed: 2).peerID

    @Test func `is written and read as via://CARRIER/PEER`() throws {
        let address = RelayAddress(carrier: carrier, peer: peer)
        #expect(address.description == "via://\(carrier)/\(peer)")
        let text = try #require(TransportAddress(address.description))
        #expect(try RelayAddress(text) == address)
    }

    @Test func `is refused in every other form`() {
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

    @Test func `names the streams that carry its pipe, in the only forms that are read`() throws {
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
