import NighCore
import NighTestKit
import Testing

@testable import NighRelays

@Suite("The transport of relayed pipes") struct RelayTransportTests {
    @Test("says how many pipes are open")
    func diagnosis() throws {
        let network = RelayNetwork()
        let (a, _, _) = try network.makeRelayedPair()
        let findings = a.relays.transport.diagnose().map { "\($0.subject): \($0.finding)" }
        #expect(findings == ["pipes: 1 open through other peers"])
        #expect(RelayTransport().diagnose().map(\.verdict) == [.fail])
        try network.close()
    }

    @Test("lets a dial end in time, and ends what the carrier began for it")
    func timeout() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain { $0.timings.loseAfter = .seconds(600) }
        c.faults[1]?.stall(.all, .incoming)
        let failure = try #require(try network.invite(c, from: a, within: .seconds(5)))
        #expect("\(failure)".contains("no answer in time"), "\(failure)")
        try network.run(.seconds(1))
        #expect(a.session.inspection(of: b.id)?.streams == 0)
        c.faults[1]?.release()
        try network.run(.seconds(1))
        #expect(b.relays.carrier.counts.pipes == 0 && !c.isConnected(to: a))
        #expect(try network.invite(c, from: a) == nil)
        try network.close()
    }

    @Test("gives up a dial that is cancelled, wherever its stream is")
    func cancelling() throws {
        for turns in 0..<30 {
            let network = RelayNetwork()
            let (a, b, c) = try network.makeChain()
            try network.loop.runQueued()
            a.session.invite(c.id) { _ in }
            for _ in 0..<turns { try network.loop.runTurn() }
            a.session.cancelInvitation(of: c.id)
            try network.run(.seconds(2))
            for member in [a, b, c] {
                let peers = member.session.inspection.peers
                #expect(peers.allSatisfy { $0.streams == 0 } || a.isConnected(to: c), "after \(turns) turns")
            }
            try network.close()
        }
    }
}
