import NighTestKit
import Testing

@testable import NighCore

/// Tests what a session answers, when, and in which order, as a peer sees it that reads the bytes.
@Suite struct AnsweringTests {
    private let ping: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

    @Test func `The answer to a ping follows the acknowledgement that is sent with it`() throws {
        let peer = try ScriptedPeer.connected()
        let frames = Frames.frame(.ping, ping) + Frames.frame(.message, [7]) + Frames.frame(.ping, ping)
        try peer.send(frames)
        let answer = try peer.takeFrames()
        #expect(answer.map(\.type) == [FrameType.acknowledge, .pong, .pong].map(\.rawValue))
        #expect(answer[0].payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 1])
    }

    @Test func `A goodbye follows the answers to pings`() throws {
        let peer = try ScriptedPeer.connected()
        try peer.send(Frames.frame(.ping, ping) + Frames.frame(.hello, ScriptedPeer.hello.payload))
        #expect(try peer.takeFrames().map(\.type) == [FrameType.pong, .close].map(\.rawValue))
    }

    @Test func `An acknowledgement is sent within 100 ms, even if timers fire late`() throws {
        let peer = try ScriptedPeer.connected()
        try peer.send(.message, [7])
        try peer.run(.milliseconds(89))
        #expect(try peer.takeFrames().isEmpty, "it may still travel with something")
        try peer.run(.milliseconds(3))
        #expect(try peer.takeFrames().map(\.type) == [FrameType.acknowledge.rawValue])
    }

    @Test(arguments: [[0], [6], [6, 1, 2, 3], [255]] as [[UInt8]])
    func `A pairing message of a later version is refused, and the conversation goes on`(
        payload: [UInt8]
    ) throws {
        let peer = try ScriptedPeer.connected()
        try peer.send(.pair, payload)
        #expect(try peer.takeFrames() == [.init(.pair, [5, 3])])
        try peer.send(.message, Array("still here".utf8))
        #expect(peer.texts == ["still here"] && peer.state == .connected)
    }

    @Test func `A peer of another version is notified, whatever the rest of its hello is`() throws {
        for rest in [[], [1, 2, 3], [UInt8](repeating: 0xFF, count: 4_000)] as [[UInt8]] {
            let peer = try ScriptedPeer.waiting()
            try peer.send(.hello, [2, 3] + rest)
            #expect(try peer.takeFrames() == [.close(7)])
        }
    }

    @Test func `An unknown critical hello field breaks the protocol; other ones are skipped`() throws {
        let peer = try ScriptedPeer.waiting()
        try peer.send(.hello, ScriptedPeer.hello.payload + [0x7F, 0, 1, 5] + [0x80, 0, 0])
        #expect(try peer.takeCloseCode() == 1)
    }

    @Test func `A request that the peer made before it accepted another one is out of date`() throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        let third: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 3]
        try peer.send(.accept, peer.conversation + third + ScriptedPeer.standing)
        let moves = peer.moves
        try peer.open()
        try peer.exchangeHellos()
        _ = try peer.takeFrames()
        try peer.send(.invite, ScriptedPeer.invitation(number: 3))
        let answer = try #require(try peer.takeFrames().first)
        #expect(answer.type == FrameType.decline.rawValue)
        #expect(answer.payload[8] == ConversationRefusal.Code.outOfDate.rawValue)
        #expect(peer.state == .connected && peer.moves == moves)
    }
}

/// Tests a peer that breaks the protocol: both sides report it, and the peer is told what it did.
@Suite struct ViolationTests {
    private let network = SimulatedNetwork()

    @Test func `A peer that breaks the protocol gets the reason`() throws {
        let (first, second) = try network.connectedPair()
        try first.force(.piece, [1, 2, 3], to: second.id)
        try network.run(for: .seconds(1))
        #expect(second.lastCause(of: first.id)?.cause == .protocolViolation("a piece without a message"))
        #expect(
            first.lastCause(of: second.id)?.cause
                == .protocolViolation("reported by the other side: a piece without a message"))
    }

    /// An answer that claims to have received five messages.
    private func claim(of peer: ScriptedPeer) -> [UInt8] {
        var standing = ScriptedPeer.standing
        standing[7] = 5
        return peer.conversation + [UInt8](repeating: 0, count: 8) + standing
    }

    @Test func `An acceptance that claims messages that were never sent begins no conversation`() throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        try peer.send(.accept, claim(of: peer))
        let words = "impossible counts at the beginning of a conversation"
        #expect(peer.failure?.cause == .protocolViolation(words))
        #expect(!peer.moves.contains(.connected) && peer.state != .connecting)
    }

    @Test func `A request for pairing on a link without encryption ends the conversation`() throws {
        let peer = try ScriptedPeer.connected { $0.acceptsPairing = true }
        try peer.send(.pair, [1] + [UInt8](repeating: 7, count: 32))
        #expect(
            peer.endings == [.protocolViolation("a request for pairing on a link without encryption")])
        #expect(try peer.takeCloseCode() == 1)
    }

    @Test func `A resume that claims messages that were never sent ends the conversation`() throws {
        let peer = try ScriptedPeer.asking()
        try peer.send(.accept, claim(of: peer))
        #expect(peer.endings == [.protocolViolation("an impossible count of messages")])
        #expect(peer.state != .reconnecting)
    }
}
