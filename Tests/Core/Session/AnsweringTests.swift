import Testing

@testable import NighCore

/// Tests what a session answers, when, and in which order, as a peer sees it that reads the bytes.
@Suite struct AnsweringTests {
    private let ping: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

    @Test("The answer to a ping comes behind the acknowledgement that leaves with it")
    func acknowledgementFirst() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        let frames = Frames.frame(.ping, ping) + Frames.frame(.message, [7]) + Frames.frame(.ping, ping)
        try peer.say(frames)
        let answer = try peer.hearFrames()
        #expect(answer.map(\.type) == [FrameType.acknowledge, .pong, .pong].map(\.rawValue))
        #expect(answer[0].payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 1])
    }

    @Test("A goodbye comes behind the answers to pings")
    func pongThenClose() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.say(Frames.frame(.ping, ping) + Frames.frame(.hello, ScriptedPeer.hello.payload))
        #expect(try peer.hearFrames().map(\.type) == [FrameType.pong, .close].map(\.rawValue))
    }

    @Test("An acknowledgement is under way before 100 ms have passed, also where timers go off late")
    func acknowledgementInTime() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.say(.message, [7])
        try peer.run(.milliseconds(80))
        #expect(try peer.hearFrames().isEmpty, "it may still travel with something")
        try peer.run(.milliseconds(12))
        #expect(try peer.hearFrames().map(\.type) == [FrameType.acknowledge.rawValue])
    }

    @Test(
        "A pairing message of a later version is refused, and the conversation goes on",
        arguments: [[0], [6], [6, 1, 2, 3], [255]] as [[UInt8]])
    func unknownPairing(payload: [UInt8]) throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        try peer.say(.pair, payload)
        #expect(try peer.hearFrames() == [.init(.pair, [5, 3])])
        try peer.say(.message, Array("still here".utf8))
        #expect(peer.texts == ["still here"] && peer.state == .connected)
    }

    @Test("Somebody of another version is told so, however their hello goes on")
    func otherVersion() throws {
        for rest in [[], [1, 2, 3], [UInt8](repeating: 0xFF, count: 4_000)] as [[UInt8]] {
            let peer = try ScriptedPeer()
            try peer.open()
            try peer.say(ScriptedPeer.preface)
            _ = peer.hear()
            try peer.say(.hello, [2, 3] + rest)
            #expect(try peer.hearFrames() == [.close(7)])
        }
    }

    @Test("A hello field that must be understood and is not breaks the protocol; others are passed over")
    func helloFields() throws {
        let peer = try ScriptedPeer()
        try peer.open()
        try peer.say(ScriptedPeer.preface)
        _ = peer.hear()
        try peer.say(.hello, ScriptedPeer.hello.payload + [0x7F, 0, 1, 5] + [0x80, 0, 0])
        let close = try #require(try peer.hearFrames().last)
        #expect(close.type == FrameType.close.rawValue && close.payload.prefix(2) == [0, 1])
    }
}
