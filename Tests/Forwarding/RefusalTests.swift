import NighCore
import NighTestKit
import Testing

@testable import NighForwarding

@Suite("A connection that is not forwarded") struct RefusalTests {
    private func refused(_ pair: ForwardingPair, port: UInt16) throws -> NighError? {
        let (program, outcome) = pair.connect(to: port)
        try pair.run()
        #expect(program.wasReset && outcome.isClosed && outcome.grace == nil)
        #expect(pair.client.counts.open == pair.sessions.lynx.layer.counts.open)
        return outcome.error
    }

    @Test("is one to a port that is not exposed, and no program there hears of it")
    func notAllowed() throws {
        let pair = try ForwardingPair(ForwardingPolicy(ports: [22]))
        pair.ports.listening = [22, 23]
        let error = try refused(pair, port: 23)
        #expect("\(try #require(error))".contains("nigh expose 23"), "\(error!)")
        #expect(pair.ports.asked == [])
        try pair.close()
    }

    @Test("is one of a peer that is not paired, which does not learn what is exposed")
    func notPaired() throws {
        let pair = try ForwardingPair(isPaired: false)
        for port: UInt16 in [22, 23] {
            let error = try refused(pair, port: port)
            #expect(error?.cause == .notPaired)
            #expect(error?.advice?.contains("nigh pair") == true)
        }
        #expect(pair.ports.asked == [])
        try pair.close()
    }

    @Test("is not one of a peer that is not paired if every device may connect")
    func anyone() throws {
        let pair = try ForwardingPair(ForwardingPolicy(ports: [22], peers: .any), isPaired: false)
        _ = try pair.open()
        try pair.close()
    }

    @Test("is one to a port on which no program listens")
    func nobodyListens() throws {
        let pair = try ForwardingPair(ForwardingPolicy(ports: [22, 23]))
        let error = try refused(pair, port: 23)
        #expect(error?.cause == .refused)
        #expect(error?.advice?.contains("no program listens on port 23 there") == true)
        try pair.close()
    }

    @Test("is one to a device whose program exposes nothing")
    func unsupported() throws {
        let pair = try ForwardingPair(lynxExposes: false)
        let (program, outcome) = pair.connect()
        try pair.run()
        #expect(program.wasReset && outcome.error?.cause == .unsupported("forwarded connections"))
        try pair.sessions.close()
    }

    @Test("is one beyond the limit, until another one has ended")
    func limits() throws {
        for isPerPeer in [true, false] {
            var limits = ForwardingLimits()
            if isPerPeer { limits.connectionsPerPeer = 2 } else { limits.connections = 2 }
            let pair = try ForwardingPair(limits: limits)
            let (first, second) = (try pair.open(), try pair.open())
            #expect(try refused(pair, port: 22)?.cause == .limit("connections there", 2))
            first.puma.crash()
            try pair.run()
            let third = try pair.open()
            #expect(!second.puma.wasReset && !third.puma.wasReset)
            try pair.close()
        }
    }

    @Test("is one that has a name which is no port")
    func names() throws {
        let pair = try ForwardingPair()
        for name in ["", "0", "ssh", "022", "10.0.0.1:22"] {
            nonisolated(unsafe) var stream: ByteStream?  // the loop is virtual: one thread
            pair.sessions.puma.session.openStream(
                named: name, to: pair.sessions.lynx.session.id, for: .forward
            ) { stream = try? $0.get() }
            try pair.run()
            guard case .bytes(let answer)? = stream?.poll() else {
                Issue.record("\(name) was not answered")
                continue
            }
            #expect(answer.bytes == ForwardingAnswer.refused(.notAllowed).bytes)
        }
        #expect(pair.ports.asked == [])
        try pair.close()
    }

    @Test("ends when the devices are no longer paired")
    func unpaired() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, outcome) = try pair.open()
        pair.sessions.lynx.session.trust.unpair(pair.sessions.puma.session.id)
        pair.sessions.puma.faults.cut()
        try pair.run()
        #expect(puma.wasReset && lynx.wasReset && outcome.isClosed)
        try pair.close()
    }
}
