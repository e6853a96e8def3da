import Arguments
import Glibc
import JSONText
import NighLoop
import NighCore
import NighMemory
import ProgramSupport
import Terminal

/// `nigh chat`: sends typed lines to everyone in the chat, and shows theirs.
struct ChatCommand: Subcommand {
    let commandName = "chat"
    let output: OutputOptions
    var session: SessionOptions
    let peer: PeerChoice?
    let timeout: Duration
    /// Whether everybody connected to one of them is connected to all of them.
    let isMesh: Bool

    static let description = Command<any Subcommand>(
        "chat", "Chats with everyone connected",
        text: """
            Without PEER it shows the peers nearby and waits for an invitation; with PEER it invites that peer. Each line \
            goes to everyone in the chat: those that you invited, and those that invited you. A peer that --through names only \
            carries connections, and gets no line. Two peers that are both \
            connected to a third are not connected to each other, unless one invites the other or all three chat with --mesh.

            If a link breaks, the chat waits for another one, and lines sent meanwhile still arrive. /who lists the peers, \
            and /quit leaves. The end of the input also leaves, once all lines have arrived. With PEER the chat ends when \
            nobody is connected any more.
            """,
        Operand(optional: "PEER", .peer, "the peer to invite"), OutputOptions.options, SessionOptions.options,
        Option(
            "wait", .duration(in: .seconds(1)...(.seconds(86_400))), default: .seconds(30),
            "the time limit for finding PEER, reaching it and getting its answer"),
        Option(flag: "mesh", "connects to everybody to whom one of the others with --mesh is connected"),
        SessionOptions.web,
        examples: [
            Example("", "waits for an invitation"),
            Example("puma", "invites the device called puma"),
            Example("puma --mesh", "chats with puma, and with all who chat with puma in this way"),
            Example("--web", "lets phones without the program join, by their browsers"),
            Example(
                "puma --json-lines", "for programs: reads lines, and prints JSON"),
        ]
    ) { peer, output, session, timeout, isMesh, web in
        var command = ChatCommand(
            output: output, session: session, peer: peer, timeout: timeout, isMesh: isMesh)
        command.session.admitsGuests = web
        return command
    }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let session = try CommandSession(
            self.session, role: .peer, accepting: [.chat, .join], isMesh: isMesh, results: results)
        let isAtTerminal =
            results.isText && isTerminal(STDIN_FILENO) && isTerminal(STDOUT_FILENO)
            && !TerminalTraits.ofThisProcess.isDumb
        let relay = EventRelay()
        session.startReading { relay.enqueue($0) }
        var first: Peer?
        let interface: any ChatInterface
        do {
            if let peer {
                first = try await stopRequest.cancelling { [timeout] in
                    try await session.connect(to: peer, for: .chat, .init(timeLimit: timeout))
                }
            }
            // Earlier reports stand above the chat. From here on the room writes to the terminal.
            _ = await session.onLoop { session in
                session.onRemark = { relay.remark($0) }
                session.onGuestInvitation = { relay.show($0, isRenewed: $1) }
            }
            LineOutput.flush()
            interface = isAtTerminal ? try TerminalChatInterface() : PlainChatInterface()
        } catch {
            await session.close()
            throw stopRequest.isRequested ? CancellationError() : error
        }
        let room = ChatRoom(
            interface, over: session, on: ThreadEventLoop(), results, invitee: first?.id)
        relay.pass(to: room)
        await room.listen()
        stopRequest.onRequest { room.leave() }
        let check = Task {
            if first == nil, let unusable = await session.unusableTransports() { room.fail(unusable) }
        }
        let outcome = await room.run()
        check.cancel()
        let shown = interface.stop()
        await session.close()
        if !shown.isEmpty { results.report(ChatRoom.line, [], lines: shown) }
        var members: [JSON.Member] = [
            .init("said", .integer(outcome.sentLines)), .init("heard", .integer(outcome.receivedLines)),
        ]
        guard let error = outcome.error else {
            results.summarize(members, lines: [])
            return .success
        }
        members.append(.init("error", Results.json(of: error)))
        results.summarize(members, lines: [])
        results.remark(error)
        return error is TransportsUnavailable ? .unavailable : .failed
    }
}

/// Keeps session events and remarks until there is a room to pass them to.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
private final class EventRelay: @unchecked Sendable {
    private let lock = Lock()
    private var early: [SessionEvent] = []
    private var remarks: [String] = []
    private var invitations: [(GuestInvitation, isRenewed: Bool)] = []
    private var room: ChatRoom?

    func enqueue(_ event: SessionEvent) {
        lock.withLock {
            if let room { room.enqueue(event) } else { early.append(event) }
        }
    }

    func remark(_ text: String) {
        lock.withLock {
            if let room { room.remark(text) } else { remarks.append(text) }
        }
    }

    func show(_ invitation: GuestInvitation, isRenewed: Bool) {
        lock.withLock {
            if let room {
                room.show(invitation, isRenewed: isRenewed)
            } else {
                invitations.append((invitation, isRenewed))
            }
        }
    }

    func pass(to room: ChatRoom) {
        lock.withLock {
            for (invitation, isRenewed) in invitations { room.show(invitation, isRenewed: isRenewed) }
            invitations = []
            for event in early { room.enqueue(event) }
            for remark in remarks { room.remark(remark) }
            (early, remarks) = ([], [])
            self.room = room
        }
    }
}
