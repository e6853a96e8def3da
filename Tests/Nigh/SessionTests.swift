import Nigh
import NighTestKit
import Testing

/// Sessions as programs use them, over memory.
@Suite("A session", .timeLimit(.minutes(15))) struct SessionTests {
    private struct Note: Codable, Equatable {
        var text: String
    }

    /// Only the sessions of one test meet.
    private let network = "memory:hub=test-\(UInt64.random(in: 0 ... .max))"

    private func session(
        _ name: String, configure: (inout SessionSettings) -> Void = { _ in }
    ) throws(NighError) -> Session {
        try Session(service: "chat", name: name, transports: network) { settings in
            settings.identity = .temporary
            configure(&settings)
        }
    }

    /// Two sessions that connect by themselves, and each as the other sees it.
    private func pair() async throws -> (puma: Session, lynx: Session, asPuma: Peer, asLynx: Peer) {
        let puma = try session("Puma") { $0.connectsAutomatically = true }
        let lynx = try session("Lynx") { $0.connectsAutomatically = true }
        return (puma, lynx, try await connected(in: lynx), try await connected(in: puma))
    }

    private func connected(in session: Session) async throws -> Peer {
        for await case .connected(let peer) in session.events { return peer }
        throw NighError(.conversing, .notConnected)
    }

    @Test("finds, connects and names its peers automatically")
    func connects() async throws {
        let (puma, lynx, asPuma, asLynx) = try await pair()
        #expect(asPuma.name == "Puma" && asLynx.name == "Lynx")
        #expect(asPuma.id == puma.id && asLynx.id == lynx.id)
        #expect(puma.connectedPeers == [asLynx])
        #expect(asLynx.transport == "memory")
        await puma.close()
        await lynx.close()
    }

    @Test("connects automatically to a peer that it has to be paired with, as soon as it is")
    func connectsOncePaired() async throws {
        func session(_ name: String) throws -> Session {
            try self.session(name) {
                $0.security = .paired
                $0.acceptsPairing = true
                $0.connectsAutomatically = true
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

    @Test("accepts automatically, and does not invite at the same time, a peer that it did not look for")
    func acceptsAStranger() async throws {
        let puma = try session("Puma") {
            $0.connectsAutomatically = true
            $0.browses = false
        }
        let lynx = try session("Lynx")
        let events = lynx.events
        for await case .peerFound(let peer) in lynx.events {
            try await peer.invite()
            break
        }
        for await event in events {
            if case .invitationsCrossed = event { Issue.record("Puma has invited Lynx") }
            if case .connected = event { await lynx.close() }
        }
        await puma.close()
    }

    @Test("answers every call after its end, with closed where it can fail")
    func afterClose() async throws {
        let (puma, lynx, asPuma, asLynx) = try await pair()
        let group = try await puma.join("late")
        await puma.close()
        var causes: [String: NighError.Cause?] = [:]
        func note(_ name: String, _ call: () async throws -> Void) async {
            do { try await call() } catch let error as NighError { causes[name] = error.cause } catch let
                error as PartialSendError
            { causes[name] = error.reason?.cause } catch {}
        }
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
        for (name, call) in calls { await note(name, call) }
        #expect(causes == Dictionary(uniqueKeysWithValues: calls.map { ($0.0, .some(.closed)) }))
        _ = await puma.statistics()
        await group.leave()
        await puma.close()
        await lynx.close()
        #expect(asPuma.id == puma.id)
    }

    @Test("carries values of the program's own types")
    func values() async throws {
        let (puma, lynx, asPuma, asLynx) = try await pair()
        try await asLynx.send(Note(text: "one"))
        try await puma.broadcast(Note(text: "two"))
        try await puma.send(Note(text: "three"), to: [asLynx])
        var received: [Note] = []
        for await note in lynx.messages(of: Note.self) {
            #expect(note.sender == asPuma)
            received.append(note.content)
            if received.count == 3 { break }
        }
        #expect(received == ["one", "two", "three"].map(Note.init))
        await puma.close()
        await lynx.close()
    }

    @Test("broadcasts without an error when a peer leaves while a message waits for room")
    func leavesWhileFull() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let sending = Task {
            while !puma.connectedPeers.isEmpty {
                try await puma.broadcast(bytes: [UInt8](repeating: 7, count: 64 << 10))
            }
        }
        await puma.fill(asLynx)
        await lynx.close()
        try await sending.value
        await puma.close()
    }

    @Test("carries bytes unchanged, also without a copy")
    func bytes() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let content = [UInt8](0...255)
        try await asLynx.send(bytes: content)
        try asLynx.sendUnreliably(bytes: content.reversed())
        for _ in 0..<2 {
            let message = try #require(await lynx.messages.next())
            #expect(message.sender == puma.id && message.count == 256)
            #expect(message.bytes == (message.isReliable ? content : content.reversed()))
            #expect(message.withBytes { $0.byteCount } == 256)
        }
        await puma.close()
        await lynx.close()
    }

    @Test("reports a message of another type, and continues with the next")
    func unreadable() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let events = lynx.events
        try await asLynx.send(bytes: Array("no JSON".utf8))
        try await asLynx.send(7)
        try await asLynx.send(Note(text: "fine"))
        var iterator = lynx.messages(of: Note.self).makeAsyncIterator()
        #expect(await iterator.next()?.content == Note(text: "fine"))
        var count = 0
        for await case .messageUnreadable(let sender, let error) in events {
            #expect(sender.name == "Puma" && error.stage == .receiving)
            count += 1
            if count == 2 { break }
        }
        await puma.close()
        await lynx.close()
    }

    @Test("lets the program answer invitations, and decline with a reason")
    func invitations() async throws {
        let puma = try session("Puma")
        let lynx = try session("Lynx")
        async let answers: Void = {
            var isFirst = true
            for await case .invited(let invitation) in lynx.events {
                #expect(invitation.peer.name == "Puma" && invitation.context == [1, 2])
                if isFirst { invitation.decline(because: "not now") } else { return invitation.accept() }
                isFirst = false
            }
        }()
        for await case .peerFound(let peer) in puma.events {
            let error = await #expect(throws: NighError.self) { try await peer.invite(context: [1, 2]) }
            #expect(error?.cause == .declined("not now"))
            try await peer.invite(context: [1, 2])
            break
        }
        await answers
        #expect(puma.connectedPeers.map(\.name) == ["Lynx"])
        await puma.close()
        await lynx.close()
    }

    @Test("delivers messages that were sent before it closes, and ends its sequences")
    func closesSurviveARoundTrip() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let events = puma.events
        for number in 0..<1_000 { try await asLynx.send(number) }
        await puma.close()
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
        let error = await #expect(throws: NighError.self) { try await asLynx.send("late") }
        #expect(error?.cause == .closed)
    }

    @Test("says goodbye when the program releases it")
    func saysGoodbyeWhenReleased() async throws {
        let lynx = try session("Lynx") { $0.connectsAutomatically = true }
        let events = lynx.events
        do {
            let puma = try session("Puma") { $0.connectsAutomatically = true }
            _ = try await connected(in: puma)
        }
        for await case .disconnected(let peer, let error) in events {
            #expect(peer.name == "Puma" && error.cause == .peerLeft)
            break
        }
        await lynx.close()
    }

    @Test("gives user interfaces the latest list of peers")
    func lists() async throws {
        let puma = try session("Puma")
        let lynx = try session("Lynx") { $0.info = ["mood": "good"] }
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

    @Test("calls handlers for programs that prefer them")
    func handlers() async throws {
        let (messages, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let lynx = try session("Lynx") { settings in
            settings.connectsAutomatically = true
            settings.onMessage = { bytes, _ in
                _ = bytes.withUnsafeBytes { continuation.yield(Array($0)) }
            }
        }
        let (names, nameContinuation) = AsyncStream.makeStream(of: String.self)
        let puma = try session("Puma") { settings in
            settings.connectsAutomatically = true
            settings.onEvent = { if case .connected(let peer) = $0 { nameContinuation.yield(peer.name) } }
        }
        for await name in names {
            #expect(name == "Lynx")
            break
        }
        try await puma.broadcast(bytes: [7, 8])
        for await bytes in messages {
            #expect(bytes == [7, 8])
            break
        }
        await puma.close()
        await lynx.close()
    }

    @Test(
        "throws an error for wrong settings, and does not stop the program",
        arguments: [
            ("Not a service!", "tcp", 1 << 20), ("chat", "pigeon", 1 << 20),
            ("chat", "memory,memory", 1 << 20),
            ("chat", "memory:colour=red", 1 << 20), ("chat", "memory", 0), ("chat", "", 1 << 20),
        ])
    func mistakes(service: String, transports: String, message: Int) {
        let error = #expect(throws: NighError.self) {
            try Session(service: service, transports: transports) { settings in
                settings.identity = .temporary
                settings.limits.message = message
            }
        }
        #expect(error?.stage == .configuring)
    }

    @Test("can save its temporary identity, and is the same peer next time")
    func savedIdentity() async throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/identity.pem"
        let first = try session("Puma")
        try first.saveIdentity(to: path)
        let id = first.id
        await first.close()
        let second = try session("Puma") { $0.identity = .file(path) }
        #expect(second.id == id)
        await second.close()
    }

    @Test("carries streams in both directions, whose writer waits for the reader")
    func streams() async throws {
        let (puma, lynx, asPuma, asLynx) = try await pair()
        let content = (0..<2 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 11) }
        let echo = Task {
            for await stream in lynx.streams {
                #expect(stream.name == "camera" && stream.peer == asPuma.id)
                for try await piece in stream { try await stream.write(piece) }
                stream.finish()
                break
            }
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
        await puma.close()
        await lynx.close()
    }

    @Test("ends a stream that one side cancels with an error for the other, which says why")
    func cancelledStream() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let stream = try await asLynx.openStream(named: "camera")
        try await stream.write([1, 2, 3])
        var opened = lynx.streams.makeAsyncIterator()
        let other = try #require(await opened.next())
        other.cancel(because: "the battery is empty")
        let reading = await #expect(throws: NighError.self) { try await stream.read() }
        #expect(reading?.cause == .streamCancelled("the battery is empty"))
        let writing = await #expect(throws: NighError.self) {
            while true { try await stream.write([UInt8](repeating: 0, count: 1_000)) }
        }
        #expect(writing?.cause == .streamCancelled("the battery is empty"))
        await puma.close()
        await lynx.close()
    }

    @Test("ends the wait of a stream's task that is cancelled, and of all tasks with the session")
    func waitingStreams() async throws {
        let (puma, lynx, _, asLynx) = try await pair()
        let stream = try await asLynx.openStream(named: "camera")
        let reader = Task { try await stream.read() }
        let writer = Task { while true { try await stream.write([UInt8](repeating: 0, count: 100_000)) } }
        reader.cancel()
        #expect(await reader.result.failure?.cause == .cancelled)
        await puma.close()
        #expect(await writer.result.failure?.cause == .closed)
        await lynx.close()
    }

    @Test("refuses an invalid address, with advice")
    func address() async throws {
        let puma = try session("Puma")
        let error = await #expect(throws: NighError.self) { try await puma.invite(at: "nowhere") }
        #expect(error?.cause == .invalid("address \"nowhere\"") && error?.advice != nil)
        await puma.close()
    }

    /// The last has a transport that cannot work here, and uses the other. One after the other, since those of one
    /// network would meet.
    @Test(
        "works over any transport that a flag names", .serialized,
        arguments: [
            "tcp:interface=lo,mdns=embedded", "bluetooth:adapter=hci60000,tcp:interface=lo,mdns=embedded",
        ])
    func transports(_ transports: String) async throws {
        let sessions = try ["Puma", "Lynx"].map { name in
            try Session(service: "chat", name: name, transports: transports) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        for session in sessions {
            let peer = try await connected(in: session)
            try await peer.send("Hello from \(session.name)!")
            #expect(peer.transport == "tcp")
        }
        for (session, other) in zip(sessions, sessions.reversed()) {
            for await message in session.messages(of: String.self) {
                #expect(message.content == "Hello from \(other.name)!")
                break
            }
        }
        for session in sessions { await session.close() }
    }

    @Test("ends with its closure, even if that throws")
    func scope() async throws {
        let lynx = try session("Lynx") { $0.connectsAutomatically = true }
        let events = lynx.events
        let error = await #expect(throws: NighError.self) {
            try await withSession(service: "chat", name: "Puma", transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            } _: { session in
                _ = try await connected(in: session)
                throw NighError(.conversing, .busy)
            }
        }
        #expect(error?.cause == .busy)
        for await case .disconnected(let peer, let error) in events {
            #expect(peer.name == "Puma" && error.cause == .peerLeft)
            break
        }
        await lynx.close()
    }
}

extension Result where Failure == any Error {
    /// The error of Nigh's with which it failed.
    fileprivate var failure: NighError? {
        if case .failure(let error) = self { error as? NighError } else { nil }
    }
}
