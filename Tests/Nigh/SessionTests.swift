import Nigh
import NighTestKit
import Testing

/// Sessions as programs use them, over memory.
@Suite("A session", .timeLimit(.minutes(15))) struct SessionTests {
    private struct Note: Codable, Equatable {
        var text: String
    }

    private let network = TestNetwork()

    // MARK: Meeting

    @Test func `A session finds, connects and names its peers automatically`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let asPuma = try await lynx.connectedPeer()
            #expect(asPuma.name == "Puma" && asLynx.name == "Lynx")
            #expect(asPuma.id == puma.id && asLynx.id == lynx.id)
            #expect(puma.connectedPeers == [asLynx] && asLynx.transport == "memory")
        }
    }

    @Test func `A session connects automatically to a peer once they are paired`() async throws {
        func session(_ name: String) throws -> Session {
            try network.session(name) {
                $0.security = .paired
                $0.acceptsPairing = true
            }
        }
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        let (events, lynxsEvents) = (puma.events, lynx.events)
        for await case .automaticInvitationFailed(_, let error) in lynxsEvents {
            #expect(error.cause == .notPaired)
            break
        }
        for await case .automaticInvitationFailed(let asLynx, let error) in events {
            #expect(error.cause == .notPaired)
            try await asLynx.pair(events, lynxsEvents)
            break
        }
        for await case .connected(let peer) in events {
            #expect(peer.name == "Lynx")
            break
        }
        for await case .connected in lynxsEvents { break }
        await puma.close()
        await lynx.close()
    }

    @Test func `A session that does not browse accepts a stranger and does not invite it`() async throws {
        let puma = try network.session("Puma") { $0.browses = false }
        let lynx = try network.session("Lynx", connects: false)
        let events = lynx.events
        try await lynx.foundPeer().invite()
        for await event in events {
            if case .invitationsCrossed = event { Issue.record("Puma has invited Lynx") }
            if case .connected = event { await lynx.close() }
        }
        await puma.close()
    }

    @Test func `A program answers invitations, and declines with a reason`() async throws {
        let puma = try network.session("Puma", connects: false)
        let lynx = try network.session("Lynx", connects: false)
        async let answers: Void = {
            var isFirst = true
            for await case .invited(let invitation) in lynx.events {
                #expect(invitation.peer.name == "Puma" && invitation.context == [1, 2])
                if isFirst { invitation.decline(because: "not now") } else { return invitation.accept() }
                isFirst = false
            }
        }()
        let peer = try await puma.foundPeer()
        let error = await #expect(throws: NighError.self) { try await peer.invite(context: [1, 2]) }
        #expect(error?.cause == .declined("not now"))
        try await peer.invite(context: [1, 2])
        await answers
        #expect(puma.connectedPeers.map(\.name) == ["Lynx"])
        await puma.close()
        await lynx.close()
    }

    @Test func `A user interface gets the latest list of peers`() async throws {
        let puma = try network.session("Puma", connects: false)
        let lynx = try network.session("Lynx", connects: false) { $0.info = ["mood": "good"] }
        for await list in puma.peerLists where !list.isEmpty {
            #expect(list.map(\.name) == ["Lynx"] && list[0].info == ["mood": "good"])
            break
        }
        try lynx.advertise(["mood": "better"])
        for await list in puma.peerLists where list.first?.info["mood"] == "better" { break }
        await lynx.close()
        for await list in puma.peerLists where list.isEmpty { break }
        await puma.close()
    }

    /// The last has a transport that cannot work here, and uses the other. One after the other, since those of one
    /// network would meet.
    @Test(
        .serialized,
        arguments: [
            "tcp:interface=lo,mdns=embedded", "bluetooth:adapter=hci60000,tcp:interface=lo,mdns=embedded",
        ])
    func `A session works over any transport that a flag names`(transports: String) async throws {
        let sessions = try ["Puma", "Lynx"].map { name in
            try Session(service: "chat", name: name, transports: transports) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        for session in sessions {
            let peer = try await session.connectedPeer()
            try await peer.send("Hello from \(session.name)!")
            #expect(peer.transport == "tcp")
        }
        for (session, other) in zip(sessions, sessions.reversed()) {
            #expect(
                try await session.messages(of: String.self).first().content == "Hello from \(other.name)!")
        }
        for session in sessions { await session.close() }
    }

    // MARK: Settings

    @Test(
        arguments: [
            ("Not a service!", "tcp", 1 << 20), ("chat", "pigeon", 1 << 20),
            ("chat", "memory,memory", 1 << 20),
            ("chat", "memory:colour=red", 1 << 20), ("chat", "memory", 0), ("chat", "", 1 << 20),
        ])
    func `Wrong settings are an error and do not stop the program`(
        service: String, transports: String, message: Int
    ) {
        let error = #expect(throws: NighError.self) {
            try Session(service: service, transports: transports) { settings in
                settings.identity = .temporary
                settings.limits.message = message
            }
        }
        #expect(error?.stage == .configuring)
    }

    @Test func `An invalid address is refused with advice`() async throws {
        let puma = try network.session("Puma")
        let error = await #expect(throws: NighError.self) { try await puma.invite(at: "nowhere") }
        #expect(error?.cause == .invalid("address \"nowhere\"") && error?.advice != nil)
        await puma.close()
    }

    @Test func `A session can save its temporary identity, and is the same peer next time`() async throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/identity.pem"
        let first = try network.session("Puma")
        try first.saveIdentity(to: path)
        await first.close()
        let second = try network.session("Puma") { $0.identity = .file(path) }
        #expect(second.id == first.id)
        await second.close()
    }

    // MARK: Messages

    @Test func `A session carries values of the program's own types`() async throws {
        try await network.pair { puma, lynx, asLynx in
            try await asLynx.send(Note(text: "one"))
            try await puma.broadcast(Note(text: "two"))
            try await puma.send(Note(text: "three"), to: [asLynx])
            var notes = lynx.messages(of: Note.self).makeAsyncIterator()
            for text in ["one", "two", "three"] {
                let note = await notes.next()
                #expect(note?.content == Note(text: text) && note?.sender.id == puma.id)
            }
        }
    }

    @Test func `A broadcast succeeds when a peer leaves while the message waits for room`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let sending = Task {
                while !puma.connectedPeers.isEmpty {
                    try await puma.broadcast(bytes: [UInt8](repeating: 7, count: 64 << 10))
                }
            }
            await puma.fill(asLynx)
            await lynx.close()
            try await sending.value
        }
    }

    @Test func `A session carries bytes unchanged, also without a copy`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let content = [UInt8](0...255)
            try await asLynx.send(bytes: content)
            try asLynx.sendUnreliably(bytes: content.reversed())
            for _ in 0..<2 {
                let message = try #require(await lynx.messages.next())
                #expect(message.sender == puma.id && message.count == 256)
                #expect(message.bytes == (message.isReliable ? content : content.reversed()))
                #expect(message.withBytes { $0.byteCount } == 256)
            }
        }
    }

    @Test func `A message of another type is reported, and the next one arrives`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let events = lynx.events
            try await asLynx.send(bytes: Array("no JSON".utf8))
            try await asLynx.send(7)
            try await asLynx.send(Note(text: "fine"))
            #expect(try await lynx.messages(of: Note.self).first().content == Note(text: "fine"))
            var count = 0
            for await case .messageUnreadable(let sender, let error) in events {
                #expect(sender.name == "Puma" && error.stage == .receiving)
                count += 1
                if count == 2 { break }
            }
        }
    }

    @Test func `A program that prefers handlers has them called`() async throws {
        let (messages, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let (names, nameContinuation) = AsyncStream.makeStream(of: String.self)
        try await network.pair { settings in
            settings.onMessage = { bytes, _ in
                _ = bytes.withUnsafeBytes { continuation.yield(Array($0)) }
            }
            settings.onEvent = { if case .connected(let peer) = $0 { nameContinuation.yield(peer.name) } }
        } _: { puma, _, _ in
            let seen = [try await names.first(), try await names.first()]
            #expect(seen.sorted() == ["Lynx", "Puma"])
            try await puma.broadcast(bytes: [7, 8])
            #expect(try await messages.first() == [7, 8])
        }
    }

    // MARK: Streams

    @Test func `Streams carry bytes both ways, and their writer waits for the reader`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let content = (0..<2 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 11) }
            let echo = Task {
                let stream = try await lynx.streams.first()
                #expect(stream.name == "camera" && stream.peer == puma.id)
                for try await piece in stream { try await stream.write(piece) }
                stream.finish()
            }
            let stream = try await asLynx.openStream(named: "camera")
            let writer = Task {
                try await stream.write(content)
                stream.finish()
            }
            var echoed: [UInt8] = []
            for try await piece in stream { echoed += piece.bytes }
            try await writer.value
            try await echo.value
            #expect(echoed == content)
        }
    }

    @Test func `A stream that one side cancels ends at the other with the reason`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let stream = try await asLynx.openStream(named: "camera")
            try await stream.write([1, 2, 3])
            try await lynx.streams.first().cancel(because: "the battery is empty")
            let reading = await #expect(throws: NighError.self) { try await stream.read() }
            #expect(reading?.cause == .streamCancelled("the battery is empty"))
            let writing = await #expect(throws: NighError.self) {
                while true { try await stream.write([UInt8](repeating: 0, count: 1_000)) }
            }
            #expect(writing?.cause == .streamCancelled("the battery is empty"))
        }
    }

    @Test func `Waiting on a stream ends when its task is cancelled, and with the session`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let stream = try await asLynx.openStream(named: "camera")
            let reader = Task { try await stream.read() }
            let writer = Task {
                while true { try await stream.write([UInt8](repeating: 0, count: 100_000)) }
            }
            reader.cancel()
            let reading = await #expect(throws: NighError.self) { try await reader.value }
            #expect(reading?.cause == .cancelled)
            await puma.close()
            let writing = await #expect(throws: NighError.self) { try await writer.value }
            #expect(writing?.cause == .closed)
        }
    }

    // MARK: The end

    @Test func `Every call after the end of a session is answered with closed`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let group = try await puma.join("late")
            await puma.close()
            let calls: [(String, () async throws -> Void)] = [
                ("invite", { try await asLynx.invite() }),
                ("invite at an address", { _ = try await puma.invite(at: "memory://nowhere") }),
                ("ping", { _ = try await asLynx.ping() }), ("pair", { try await asLynx.pair() }),
                ("disconnect", { try await asLynx.disconnect() }),
                ("open a stream", { _ = try await asLynx.openStream(named: "late") }),
                ("send", { try await asLynx.send("late") }),
                ("send unreliably", { try asLynx.sendUnreliably(bytes: [1]) }),
                ("send to several", { try await puma.send("late", to: [asLynx]) }),
                ("send to none", { try await puma.send("late", to: []) }),
                ("broadcast", { try await puma.broadcast("late") }),
                ("send files", { _ = try await asLynx.send(file: "/dev/null") }),
                ("send to a group", { try await group.send("late") }),
                ("join a group", { _ = try await puma.join("later") }),
                ("advertise", { try puma.advertise(["late": "yes"]) }),
            ]
            for (name, call) in calls {
                let error = await #expect(throws: (any Error).self, "\(name)") { try await call() }
                let cause = (error as? NighError)?.cause ?? (error as? PartialSendError)?.reason?.cause
                #expect(cause == .closed, "\(name)")
            }
            _ = await puma.statistics()
            await group.leave()
            await puma.close()
        }
    }

    @Test func `A session delivers what was sent before it closes, and ends its sequences`() async throws {
        try await network.pair { puma, lynx, asLynx in
            let events = puma.events
            for number in 0..<1_000 { try await asLynx.send(number) }
            await puma.close()
            for await _ in events {}
            #expect(await puma.messages.next() == nil)
            var iterator = lynx.messages(of: Int.self).makeAsyncIterator()
            for number in 0..<1_000 {
                let message = try #require(await iterator.next())
                // The name stays known although the peer has left.
                #expect(message.content == number && message.sender.name == "Puma")
            }
            await lynx.close()
            #expect(await iterator.next() == nil)
        }
    }

    @Test func `A session ends with its closure, even if that throws`() async throws {
        let lynx = try network.session("Lynx")
        let events = lynx.events
        let error = await #expect(throws: NighError.self) {
            try await withSession(service: "chat", name: "Puma", transports: network.transports) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            } _: { session in
                _ = try await session.connectedPeer()
                throw NighError(.conversing, .busy)
            }
        }
        #expect(error?.cause == .busy)
        #expect(await events.peerLeft()?.name == "Puma")
        await lynx.close()
    }
}
