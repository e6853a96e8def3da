import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighMemory
import Terminal

/// `nigh chat`: sends typed lines to everyone in the chat, and shows theirs.
struct ChatErrand: Errand {
    let command = "chat"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice?
    let patience: Duration

    static let description = Command<any Errand>(
        "chat", "Says what is typed to those who are there, and shows what they say",
        text: """
            Without PEER it shows who is there and waits to be invited; with PEER it invites that one. What is typed goes to all in the \
            conversation: those who were invited here, and those who have invited. Two who are both in a conversation with a third are not \
            in one with each other, unless one invites the other.

            A link that is cut is waited for, and what was said meanwhile arrives. /who tells who is there, and /quit leaves; so does the end of \
            the input, when all that was said has arrived. With PEER it ends when the other side has left.
            """,
        Operand(optional: "PEER", .peer, "whom to invite"), OutputOptions.options, SessionOptions.options,
        Option(
            "wait", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(30),
            "for how long PEER is looked for, called again while it is not reached, and its answer waited for"
        ),
        examples: [
            Example("", "waits"),
            Example("puma", "invites the device called puma"),
            Example(
                "puma --json-lines", "for programs: what is said goes in as lines, and comes out as JSON"),
        ]
    ) { peer, output, session, patience in
        ChatErrand(output: output, session: session, peer: peer, patience: patience)
    }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let session = try CommandSession(self.session, role: .peer, taking: [.chat], results: results)
        let isAtTerminal =
            results.isInWords && isTerminal(STDIN_FILENO) && isTerminal(STDOUT_FILENO)
            && !TerminalTraits.ofThisProcess.isDumb
        let relay = EventRelay()
        session.startReading { relay.enqueue($0) }
        var first: Peer?
        if let peer {
            first = try await interruption.cancels { [patience] in
                try await session.connect(to: peer, for: .chat, .init(span: patience))
            }
        }
        let front: any ChatFront = isAtTerminal ? try TerminalChatFront() : PlainChatFront()
        let room = ChatRoom(
            front, over: session, on: ThreadEventLoop(), results, endsAlone: first != nil)
        relay.pass(to: room)
        // From here on the room writes to the terminal.
        _ = await session.onLoop { $0.onWarning = { room.warn(of: $0) } }
        await room.listen()
        interruption.onRequest { room.leave() }
        let outcome = await room.talk()
        let shown = front.stop()
        await session.close()
        if !shown.isEmpty { results.tell(ChatRoom.line, [], words: shown) }
        var members: [JSON.Member] = [
            .init("said", .integer(outcome.said)), .init("heard", .integer(outcome.heard)),
        ]
        guard let error = outcome.error else {
            results.sumUp(members, words: [])
            return .well
        }
        members.append(.init("error", Results.json(of: error)))
        results.sumUp(members, words: [])
        results.remark("\(error)")
        return .failed
    }
}

/// Keeps session events until there is a room to pass them to.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
private final class EventRelay: @unchecked Sendable {
    private let lock = Lock()
    private var early: [SessionEvent] = []
    private var room: ChatRoom?

    func enqueue(_ event: SessionEvent) {
        lock.withLock {
            if let room { room.took(event) } else { early.append(event) }
        }
    }

    func pass(to room: ChatRoom) {
        lock.withLock {
            for event in early { room.took(event) }
            early = []
            self.room = room
        }
    }
}
