import NighCore
import NighMemory
import SessionArguments
import Synchronization
import Testing

@testable import nigh

/// Tests the room of a chat without a program around it.
@Suite(.callsPrograms) struct ChatRoomTests {
    /// Nobody types, and nothing is shown.
    private final class NoInterface: ChatInterface {
        func next() async -> String? { nil }
        func show(_ line: Line) {}
        func stop() -> [Line] { [] }
    }

    /// Types one line, and ends the input when it is told to.
    private final class OneLine: ChatInterface {
        private let (handled, source) = AsyncStream.makeStream(of: Void.self)
        private let (ends, end) = AsyncStream.makeStream(of: Void.self)
        private let hasTyped = Mutex(false)

        func next() async -> String? {
            guard
                hasTyped.withLock({ hadTyped in
                    defer { hadTyped = true }
                    return hadTyped
                })
            else { return "for members only" }
            source.finish()
            for await _ in ends {}
            return nil
        }

        func show(_ line: Line) {}
        func stop() -> [Line] { [] }
        func waitUntilHandled() async { for await _ in handled {} }
        func endInput() { end.finish() }
    }

    private let service = CommandSession.service()
    private let results = Results(of: "test", OutputOptions(form: .json), onFailure: {})

    private func commandSession(_ name: String) throws -> CommandSession {
        try .overMemory(name, service, .peer, accepting: [.chat, .join])
    }

    /// A chat whose peer has sent 100 lines and left, of which the room does not know yet.
    private struct Finished {
        let mine: CommandSession
        let theirs: CommandSession
        let room: ChatRoom
        /// The events that the peer was connected, and that it has left.
        let connected: SessionEvent
        let left: SessionEvent

        /// Passes an event to the room.
        func enqueue(_ event: SessionEvent) async { await mine.onLoop { [room] _ in room.enqueue(event) } }

        /// Calls `isOver` on the room's thread, each time behind all that waits there, until it returns true.
        func watch(_ isOver: @escaping @Sendable (isolated ChatRoom) -> Bool) async {
            await withCheckedContinuation { watch(isOver, $0) }
        }

        private func watch(
            _ isOver: @escaping @Sendable (isolated ChatRoom) -> Bool,
            _ continuation: CheckedContinuation<Void, Never>
        ) {
            room.thread.execute {
                if room.assumeIsolated(isOver) { continuation.resume() } else { watch(isOver, continuation) }
            }
        }

        func close() async {
            room.thread.shutdown()
            await mine.close()
            await theirs.close()
        }
    }

    private func finishedChat() async throws -> Finished {
        let (mine, theirs) = (try commandSession("Puma"), try commandSession("Lynx"))
        let (events, source) = AsyncStream.makeStream(of: SessionEvent.self)
        mine.startReading { source.yield($0) }
        theirs.start()
        let sending = Task {
            let peer = try await theirs.connect(
                to: .named("Puma"), for: .chat, .init(timeLimit: .seconds(60)))
            for number in 0..<100 {
                try theirs.session.trySend(ChatMessage.lines(of: "\(number)")[0], to: peer.id)
            }
            // This returns when everything has arrived.
            try await peer.disconnect()
        }
        var changes: [PeerState: SessionEvent] = [:]
        for await event in events where changes[.disconnected] == nil {
            if case .invited(let invitation) = event { invitation.accept() }
            guard let peer = event.stateChange?.peer else { continue }
            changes[peer.state] = event
            if peer.state == .disconnected { source.finish() }
        }
        try await sending.value
        return Finished(
            mine: mine, theirs: theirs,
            room: ChatRoom(
                NoInterface(), over: mine, on: ThreadEventLoop(), results, invitee: theirs.session.id),
            connected: try #require(changes[.connected]), left: try #require(changes[.disconnected]))
    }

    @Test(.timeLimit(.minutes(15)))
    func `A peer that is connected to carry connections gets no line, and none of its own is shown`()
        async throws
    {
        let (mine, theirs) = (try commandSession("Puma"), try commandSession("Lynx"))
        let interface = OneLine()
        let room = ChatRoom(interface, over: mine, on: ThreadEventLoop(), results, invitee: nil)
        let (states, source) = AsyncStream.makeStream(of: PeerState.self)
        mine.startReading { event in
            room.enqueue(event)
            if let peer = event.stateChange?.peer { source.yield(peer.state) }
        }
        let heard = Mutex(0)
        theirs.start(onMessage: { _, _ in heard.withLock { $0 += 1 } })
        let peer = try await theirs.connect(
            to: .named("Puma"), for: .join, .init(timeLimit: .seconds(60)))
        for await state in states where state == .connected { break }
        await room.listen()
        async let outcome = room.run()
        await interface.waitUntilHandled()
        try theirs.session.trySend(ChatMessage.lines(of: "hello")[0], to: peer.id)
        // This returns when everything has arrived, in both directions.
        try await peer.disconnect()
        for await state in states where state == .disconnected { break }
        interface.endInput()
        #expect(await outcome.sentLines == 0)
        #expect(await outcome.receivedLines == 0)
        #expect(heard.withLock { $0 } == 0)
        room.thread.shutdown()
        await mine.close()
        await theirs.close()
    }

    @Test(.timeLimit(.minutes(15)))
    func `However many lines wait, something else has its turn between two of them`() async throws {
        let chat = try await finishedChat()
        await chat.enqueue(chat.connected)
        let seen = Mutex<Set<Int>>([])
        await chat.watch { room in
            if seen.withLock({ $0.isEmpty }) { room.listen() }
            _ = seen.withLock { $0.insert(room.outcome.receivedLines) }
            return room.outcome.receivedLines == 100
        }
        #expect(seen.withLock { $0 } == Set(0...100))
        await chat.close()
    }

    @Test(.timeLimit(.minutes(15)))
    func `Lines that are read before it is known who is connected are kept until then`() async throws {
        let chat = try await finishedChat()
        await chat.room.listen()
        await chat.watch { $0.early.values.first?.count == 100 }
        await chat.enqueue(chat.connected)
        await chat.enqueue(chat.left)
        let outcome = await chat.room.run()
        #expect(outcome.receivedLines == 100 && outcome.error == nil, "\(outcome)")
        await chat.close()
    }
}
