import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("Streams for files") struct FileStreamTests {
    /// The streams that a session was given for files.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Received: @unchecked Sendable {
        var streams: [ByteStream] = []
    }

    /// Opens a stream. Call it on the loop, where it is opened at once.
    private func open(
        _ name: String, for purpose: StreamPurpose = .files, from session: Session, to peer: PeerID
    ) throws -> ByteStream {
        nonisolated(unsafe) var opened: Result<ByteStream, NighError>?
        session.openStream(named: name, to: peer, for: purpose) { opened = $0 }
        return try #require(opened).get()
    }

    /// Two connected sessions, of which the second accepts files.
    private func pair(
        in place: Neighbourhood, streams: Int = 4, _ onStream: @escaping @Sendable (ByteStream) -> Void
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let puma = place.join("puma")
        let lynx = place.join("lynx") {
            $0.layers.append(TestLayer(streams: .files, onStream: onStream))
            $0.limits.streams = streams
        }
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        return (puma, lynx)
    }

    private func names(of events: [SessionEvent]) -> [String] {
        events.compactMap { if case .streamOpened(let stream) = $0 { stream.name } else { nil } }
    }

    @Test("reach only their own handler, and those of the program only the program")
    func purposes() throws {
        let place = Neighbourhood()
        let received = Received()
        let (puma, lynx) = try pair(in: place) { stream in
            received.streams.append(stream)
            // A handler may use the stream and the session at once.
            _ = try? stream.tryWrite(ByteSlice([7]))
        }
        let file = try open("photo", from: puma.session, to: lynx.id)
        let own = try open("camera", for: .program, from: puma.session, to: lynx.id)
        try file.put([1, 2, 3])
        file.finish()
        puma.faults.cut()
        try place.run(.seconds(5))
        #expect(received.streams.map(\.name) == ["photo"] && names(of: lynx.events) == ["camera"])
        let other = try #require(received.streams.first)
        #expect(other.purpose == .files && other.isIncoming && other.peer == puma.id)
        #expect(other.take() == .init(bytes: [1, 2, 3], hasEnded: true))
        #expect(file.take().bytes == [7] && own.take() == .init())
        #expect(puma.statistics.peers[lynx.id]?.streamsOpened == 2)
    }

    @Test("are refused by a session that accepts no files, with which other streams work")
    func unsupported() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place) { _ in }
        let error = #expect(throws: NighError.self) { try open("x", from: lynx.session, to: puma.id) }
        #expect(error?.cause == .unsupported("files") && error?.peer == "puma (\(puma.id.short))")
        #expect(
            error?.description.hasSuffix(
                "the peer does not support files; run a program there that accepts files") == true,
            "\(error?.description ?? "")")
        let own = try open("camera", for: .program, from: lynx.session, to: puma.id)
        try place.run(.seconds(1))
        #expect(names(of: puma.events) == ["camera"] && lynx.state(of: puma.id) == .connected)
        withExtendedLifetime(own) {}
    }

    @Test("are refused where there are no streams at all")
    func withoutStreams() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pair(in: place, streams: 0) { _ in }
        #expect(lynx.session.driver.machine.hello.abilities & 0b11 == 0)
        for (member, other) in [(puma, lynx), (lynx, puma)] {
            let error = #expect(throws: NighError.self) { try open("x", from: member.session, to: other.id) }
            #expect(error?.cause == .unsupported("files"))
        }
    }

    // MARK: A peer of which each byte is known

    /// A hello that has streams, and accepts files or not.
    private func hello(acceptsFiles: Bool) -> Hello {
        var hello = ScriptedPeer.hello
        hello.streams = StreamTerms(streams: 4, window: 10_000, for: acceptsFiles ? [.files] : [])
        return hello
    }

    /// The frame that opens the first stream of the peer, or of the session.
    private func opening(byPeer: Bool, of peer: ScriptedPeer, _ kind: [UInt8]) -> [UInt8] {
        let isOdd = byPeer == (ScriptedPeer.peer > peer.session.id)
        return [0, 0, 0, isOdd ? 1 : 2] + kind + [1, 0x78]
    }

    @Test("are opened with a frame of their own")
    func frames() throws {
        let received = Received()
        let peer = try ScriptedPeer {
            $0.layers.append(TestLayer(streams: .files) { received.streams.append($0) })
        }
        #expect(peer.session.driver.machine.hello.abilities & 0b11 == 0b11)
        try peer.beginConversation(hello(acceptsFiles: true))
        let stream = try open("x", from: peer.session, to: ScriptedPeer.peer)
        try peer.run(.zero)
        #expect(try peer.takeFrames() == [.init(.streamControl, opening(byPeer: false, of: peer, [6, 1]))])
        try peer.send(.streamControl, opening(byPeer: true, of: peer, [6, 1]))
        #expect(received.streams.map(\.name) == ["x"] && names(of: peer.events) == [])
        withExtendedLifetime(stream) {}
    }

    @Test("end the conversation if the session does not accept them, or their purpose is unknown")
    func violations() throws {
        let faults: [(kind: [UInt8], acceptsFiles: Bool, words: String)] = [
            ([6, 1], false, "a stream for files, which this side does not accept"),
            ([6, 2], true, "a stream for relay, which this side does not accept"),
            ([6, 3], true, "a stream for channel, which this side does not accept"),
            ([6, 4], true, "a stream for calls, which this side does not accept"),
            ([6, 5], true, "a stream for channelStream, which this side does not accept"),
            ([6, 6], true, "a stream for actors, which this side does not accept"),
            ([6, 7], true, "a stream for forward, which this side does not accept"),
            ([6, 255], true, "a stream for the purpose 255"), ([6, 0], true, "a stream for the purpose 0"),
        ]
        for fault in faults {
            let received = Received()
            let peer = try ScriptedPeer {
                if fault.acceptsFiles {
                    $0.layers.append(TestLayer(streams: .files) { received.streams.append($0) })
                }
            }
            try peer.beginConversation(hello(acceptsFiles: true))
            try peer.send(.streamControl, opening(byPeer: true, of: peer, fault.kind))
            #expect(peer.endings == [.protocolViolation(fault.words)])
            let close = try #require(try peer.takeFrames().last)
            #expect(close.type == FrameType.close.rawValue && close.payload.prefix(2) == [0, 1])
            #expect(received.streams.isEmpty && names(of: peer.events) == [])
        }
    }

    @Test("are never opened to a peer that does not know them, with which other streams are as before")
    func earlier() throws {
        let received = Received()
        let peer = try ScriptedPeer {
            $0.layers.append(TestLayer(streams: .files) { received.streams.append($0) })
        }
        try peer.beginConversation(hello(acceptsFiles: false))
        #expect(throws: NighError.self) { try open("x", from: peer.session, to: ScriptedPeer.peer) }
        let own = try open("x", for: .program, from: peer.session, to: ScriptedPeer.peer)
        try peer.run(.zero)
        #expect(try peer.takeFrames() == [.init(.streamControl, opening(byPeer: false, of: peer, [0]))])
        try peer.send(.streamControl, opening(byPeer: true, of: peer, [0]))
        #expect(names(of: peer.events) == ["x"] && received.streams.isEmpty && peer.state == .connected)
        withExtendedLifetime(own) {}
    }

    @Test("cannot be taken by two layers of one session")
    func twice() throws {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma"))
        func make() throws {
            _ = try Session(
                checking: configuration, identity: .ephemeral(), trust: .ephemeral(), transports: [],
                loop: VirtualEventLoop())
        }
        configuration.layers = [TestLayer(streams: .files) { _ in }, TestLayer(streams: .relay) { _ in }]
        try make()
        configuration.layers.append(TestLayer(streams: .files) { _ in })
        #expect(throws: NighError.self) { try make() }
    }
}
