import Testing

@testable import NighCore

/// Tests what a session answers, when, and in which order, as a peer sees it that reads the bytes.
@Suite struct AnsweringTests {
    private let ping: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

    @Test("The answer to a ping follows the acknowledgement that is sent with it")
    func acknowledgementFirst() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        let frames = Frames.frame(.ping, ping) + Frames.frame(.message, [7]) + Frames.frame(.ping, ping)
        try peer.send(frames)
        let answer = try peer.takeFrames()
        #expect(answer.map(\.type) == [FrameType.acknowledge, .pong, .pong].map(\.rawValue))
        #expect(answer[0].payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 1])
    }

    @Test("A goodbye follows the answers to pings")
    func pongThenClose() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.send(Frames.frame(.ping, ping) + Frames.frame(.hello, ScriptedPeer.hello.payload))
        #expect(try peer.takeFrames().map(\.type) == [FrameType.pong, .close].map(\.rawValue))
    }

    @Test("An acknowledgement is sent within 100 ms, even if timers fire late")
    func acknowledgementInTime() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.send(.message, [7])
        try peer.run(.milliseconds(89))
        #expect(try peer.takeFrames().isEmpty, "it may still travel with something")
        try peer.run(.milliseconds(3))
        #expect(try peer.takeFrames().map(\.type) == [FrameType.acknowledge.rawValue])
    }

    @Test(
        "A pairing message of a later version is refused, and the conversation continues",
        arguments: [[0], [6], [6, 1, 2, 3], [255]] as [[UInt8]])
    func unknownPairing(payload: [UInt8]) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.send(.pair, payload)
        #expect(try peer.takeFrames() == [.init(.pair, [5, 3])])
        try peer.send(.message, Array("still here".utf8))
        #expect(peer.texts == ["still here"] && peer.state == .connected)
    }

    @Test("A peer of another version is notified, whatever the rest of its hello is")
    func otherVersion() throws {
        for rest in [[], [1, 2, 3], [UInt8](repeating: 0xFF, count: 4_000)] as [[UInt8]] {
            let peer = try ScriptedPeer()
            try peer.open()
            try peer.send(ScriptedPeer.preface)
            _ = peer.takeOutput()
            try peer.send(.hello, [2, 3] + rest)
            #expect(try peer.takeFrames() == [.close(7)])
        }
    }

    @Test("An unknown critical hello field breaks the protocol; other unknown fields are skipped")
    func helloFields() throws {
        let peer = try ScriptedPeer()
        try peer.open()
        try peer.send(ScriptedPeer.preface)
        _ = peer.takeOutput()
        try peer.send(.hello, ScriptedPeer.hello.payload + [0x7F, 0, 1, 5] + [0x80, 0, 0])
        let close = try #require(try peer.takeFrames().last)
        #expect(close.type == FrameType.close.rawValue && close.payload.prefix(2) == [0, 1])
    }

    @Test("A request that the peer made before it accepted another is out of date when it arrives")
    func lateRequest() throws {
        let peer = try ScriptedPeer()
        try peer.invite()
        let third: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 3]
        try peer.send(.accept, peer.conversation + third + ScriptedPeer.standing)
        let moves = peer.moves
        try peer.open()
        try peer.exchangeHellos()
        _ = try peer.takeFrames()
        let other = [UInt8](repeating: 9, count: 8)
        try peer.send(.invite, other + third + ScriptedPeer.standing + [0, 0, 0x75, 0x30, 0, 0])
        let answer = try #require(try peer.takeFrames().first)
        #expect(answer.type == FrameType.decline.rawValue)
        #expect(Array(answer.payload.prefix(9)) == other + [ConversationRefusal.Code.outOfDate.rawValue])
        #expect(peer.state == .connected && peer.moves == moves)
    }
}
