import NighCore
import NighTestKit
import Testing

@testable import NighForwarding

@Suite("A connection that is not forwarded") struct RefusalTests {
    private func refused(_ pair: ForwardingPair, port: UInt16) throws -> NighError? {
        let (program, outcome) = pair.connect(to: port)
        try pair.run()
        #expect(program.wasReset && outcome.isClosed && outcome.grace == nil)
        #expect(pair.openCounts[0] == pair.openCounts[1])
        return outcome.error
    }

    @Test(
        arguments: [
            // A port that is not exposed, although a program listens there.
            (true, [22], 23, nil, "nigh expose 23"),
            // A peer that is not paired, which does not learn what is exposed.
            (false, [22], 22, .notPaired, "nigh pair"), (false, [22], 23, .notPaired, "nigh pair"),
            // A port on which no program listens.
            (true, [22, 24], 24, .refused, "no program listens on port 24 there"),
        ] as [(Bool, Set<UInt16>, UInt16, NighError.Cause?, String)])
    func `A connection that is not allowed or cannot be made is refused with the reason`(
        isPaired: Bool, exposed: Set<UInt16>, port: UInt16, cause: NighError.Cause?, words: String
    ) throws {
        let pair = try ForwardingPair(ForwardingPolicy(ports: exposed), isPaired: isPaired)
        pair.ports.listening = [22, 23]
        let error = try #require(try refused(pair, port: port))
        #expect("\(error)".contains(words) && error.cause == cause ?? error.cause, "\(error)")
        // No program there hears of a connection that is not allowed.
        #expect(pair.ports.asked == (port == 24 ? [24] : []))
        try pair.close()
    }

    @Test func `A peer that is not paired connects if every device may`() throws {
        let pair = try ForwardingPair(ForwardingPolicy(ports: [22], peers: .any), isPaired: false)
        _ = try pair.open()
        try pair.close()
    }

    @Test func `A connection to a device whose program exposes nothing is refused`() throws {
        let pair = try ForwardingPair(lynxExposes: false)
        #expect(try refused(pair, port: 22)?.cause == .unsupported("forwarded connections"))
        try pair.close()
    }

    @Test(arguments: [true, false])
    func `A connection beyond the limit is refused, until another one has ended`(isPerPeer: Bool) throws {
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

    @Test func `A connection with a name that is no port is refused`() throws {
        let pair = try ForwardingPair()
        for name in ["", "0", "ssh", "022", "10.0.0.1:22"] {
            let stream = try pair.puma.session.reference.openStream(
                named: name, to: pair.lynx.session.id, for: .forward)
            try pair.run()
            guard case .bytes(let answer) = stream.poll() else {
                Issue.record("\(name) was not answered")
                continue
            }
            #expect(answer.bytes == ForwardingAnswer.refused(.notAllowed).bytes)
        }
        #expect(pair.ports.asked == [])
        try pair.close()
    }

    @Test func `A connection ends when the devices are no longer paired`() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, outcome) = try pair.open()
        pair.lynx.session.trust.unpair(pair.puma.session.id)
        pair.puma.faults.cut()
        try pair.run()
        #expect(puma.wasReset && lynx.wasReset && outcome.isClosed)
        try pair.close()
    }
}
