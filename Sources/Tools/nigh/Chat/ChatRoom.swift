import JSONText
import NighLoop
import NighCore
import NighFiles
import NighMemory
import SessionArguments

/// A chat in lines with all peers that this side has invited for it or was invited by, and with `--mesh` with those of
/// the mesh that chat. A peer that is only connected, to carry connections or to be seen, is no member: it gets no
/// line, and nothing that it sends is shown.
///
/// It runs on a thread of its own, so that a slow reader of its output holds up nothing else.
actor ChatRoom {
    /// The counts for the summary, and the error that ended the chat.
    struct Outcome: Sendable {
        var sentLines = 0
        var receivedLines = 0
        var error: (any Error)?
    }

    static let person = Results.Kind("person", plural: "people")
    static let line = Results.Kind("line", plural: "lines")
    static let memberList = Results.Kind("who", plural: "who")

    nonisolated let thread: ThreadEventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private let session: CommandSession
    private let results: Results
    private let interface: any ChatInterface
    /// The peer that this side has invited. If there is one, the chat ends when the last member has left.
    private let invitee: PeerID?

    private var members: [PeerID: Peer] = [:]
    /// The connected peers that are no members.
    private var others: [PeerID: Peer] = [:]
    /// The peers whose invitation to chat was accepted, until they are connected.
    private var expected: Set<PeerID> = []
    private var seen: [PeerID: Peer] = [:]
    /// Messages of peers that are connected, while the event that makes them members still waits for the thread.
    private(set) var early: [PeerID: [Message]] = [:]
    /// The most of them that are kept of a connected peer that is no member.
    private static let mostEarly = 256
    private var standings: [PeerID: Standing] = [:]
    private(set) var outcome = Outcome()
    private var hasEnded = false
    private var waiting: CheckedContinuation<Void, Never>?
    private var receiving: Task<Void, Never>?

    init(
        _ interface: any ChatInterface, over session: CommandSession, on thread: ThreadEventLoop,
        _ results: Results,
        invitee: PeerID?
    ) {
        self.interface = interface
        self.session = session
        self.thread = thread
        self.results = results
        self.invitee = invitee
    }

    /// Passes on an event of the session. Called on its loop.
    nonisolated func enqueue(_ event: SessionEvent) {
        let standing = standing(after: event)
        thread.execute {
            self.assumeIsolated { room in
                if let (peer, standing) = standing { room.standings[peer] = standing }
                room.handle(event)
            }
        }
    }

    /// The session's knowledge of the conversation with a peer.
    private struct Standing {
        /// The route that carries it, for a person.
        let path: String
        /// The peer that carries it, if one does.
        let carrier: PeerID?
        /// Whether this chat and the peer are in one mesh.
        let isInMesh: Bool
    }

    /// Called on the session's loop.
    private nonisolated func standing(after event: SessionEvent) -> (PeerID, Standing)? {
        guard let peer = event.changedPeer else { return nil }
        let standing = Standing(
            path: session.path(to: peer), carrier: session.carrier(of: peer),
            isInMesh: session.isInMesh(with: peer.id))
        return (peer.id, standing)
    }

    /// Ends the chat, as `/quit` does. Callable from any thread.
    nonisolated func leave() { thread.execute { self.assumeIsolated { $0.end() } } }

    /// Shows a remark. Callable from any thread.
    nonisolated func remark(_ text: String) { thread.execute { self.assumeIsolated { $0.warn(text) } } }

    /// Shows an invitation for a guest. Callable from any thread.
    nonisolated func show(_ invitation: GuestInvitation, isRenewed: Bool) {
        thread.execute {
            self.assumeIsolated { room in
                guard room.results.isText else {
                    return GuestCode.report(invitation, isRenewed: isRenewed, room.results)
                }
                for line in GuestCode.lines(for: invitation, isRenewed: isRenewed) { room.show(line) }
            }
        }
    }

    /// Starts to show received lines.
    func listen() {
        receiving = Task {
            while let message = await session.session.messages.next() {
                receive(message)
                // Otherwise a peer that always has another message would keep everything else waiting.
                await Task.yield()
            }
        }
    }

    /// Sends typed lines until the input or the chat ends. Then leaves once everything that was sent has arrived.
    func run() async -> Outcome {
        let typing = Task {
            while !hasEnded, let line = await interface.next() {
                guard !hasEnded, await typed(line) else { break }
            }
            end()
        }
        await withCheckedContinuation { continuation in
            if hasEnded { return continuation.resume() }
            waiting = continuation
        }
        typing.cancel()
        // A second signal ends the program at once, and must find the terminal as it was before.
        _ = interface.stop()
        await leaveAll()
        receiving?.cancel()
        return outcome
    }

    /// Leaves all members at once, so that peers that do not answer take their time together.
    private func leaveAll() async {
        let (session, ids) = (session.session, members.keys.sorted())
        let error = await withTaskGroup(of: NighError?.self) { group in
            for id in ids {
                group.addTask {
                    do throws(NighError) {
                        try await session.peer(id).disconnect()
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(nil) { $0 ?? $1 }
        }
        outcome.error = outcome.error ?? error
    }

    /// Ends the chat because of an error. Callable from any thread.
    nonisolated func fail(_ error: any Error) {
        thread.execute {
            self.assumeIsolated { room in
                guard !room.hasEnded else { return }
                room.outcome.error = error
                room.end()
            }
        }
    }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        waiting?.resume()
        waiting = nil
    }

    // MARK: Typed lines

    /// Handles a typed line. Returns false when it is time to leave.
    private func typed(_ line: String) async -> Bool {
        switch ChatInput(line) {
        case .quit: return false
        case .help: show(Line(ChatInput.guide, .faint))
        case .unknown(let command): show(Line("unknown command \(command). \(ChatInput.guide)", .warning))
        case .listMembers: reportMembers()
        case .say(let text): await send(text)
        }
        return true
    }

    private func send(_ text: String) async {
        guard !members.isEmpty else {
            outcome.error = FileFailure("some lines were not sent, because nobody was connected")
            return show(Line("not sent: nobody is connected", .warning))
        }
        let everybody = members.values.sorted { $0.id < $1.id }
        report(
            Self.line, id: session.session.id, session.session.configuration.name,
            [.init("text", .text(text)), .init("is_own", true)],
            // The terminal interface has removed the typed line from the input row, so it is shown again.
            line: interface is TerminalChatInterface ? Line("you: ", .strong) + Line(text) : nil)
        outcome.sentLines += 1
        // An event reports a peer that has left meanwhile.
        for line in ChatMessage.lines(of: text) {
            try? await session.session.send(bytes: line, to: everybody)
        }
    }

    // MARK: Messages and events

    private func receive(_ message: Message) {
        guard let member = members[message.sender] else { return keep(message) }
        switch ChatMessage(message.payload) {
        case .line(let text):
            outcome.receivedLines += 1
            report(
                Self.line, id: member.id, member.displayName,
                [.init("text", .text(text)), .init("is_own", false)],
                line: Line("\(member.name): ", .strong) + Line(text))
        case .unknown: break
        case nil:
            show(Line("\(member.name) has sent an unreadable message and is disconnected", .bad))
            session.session.disconnect(member.id)
        }
    }

    /// Keeps a message of a peer that becomes a member as soon as an event that waits is handled. A peer that never
    /// does cannot make the room keep much.
    private func keep(_ message: Message) {
        let isShort = message.payload.count <= ChatMessage.longestLine + 1
        guard
            others[message.sender] == nil
                || isShort && early[message.sender, default: []].count < Self.mostEarly
        else { return }
        early[message.sender, default: []].append(message)
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation):
            if InvitationPurpose(context: invitation.context) == .chat { expected.insert(invitation.peer.id) }
            invitation.accept()
        case .invitationEnded(let invitation, _): expected.remove(invitation.peer.id)
        case .peerFound(let peer): peerSeen(peer)
        case .peerLost(let peer):
            if seen.removeValue(forKey: peer.id) != nil {
                report("gone", peer, nil, "is no longer visible")
            }
        case .connected(let peer):
            connected(peer, isForChat: expected.remove(peer.id) != nil || peer.id == invitee)
        case .reconnecting(let peer, let cause):
            guard members[peer.id] != nil else { return }
            report("lost", peer, cause, "has lost the link; lines are kept for a while")
        case .reconnected(let peer):
            guard members[peer.id] != nil else { return }
            members[peer.id] = peer
            report("back", peer, nil, "is back")
        case .disconnected(let peer, let cause):
            memberLeft(peer, cause)
            others[peer.id] = nil
            early[peer.id] = nil
        case .peerChanged(let peer):
            if members[peer.id] != nil { members[peer.id] = peer }
            // It has said of itself whether it is in the mesh.
            if others[peer.id] != nil { connected(peer, isForChat: false) }
            if peer.state == .available, seen[peer.id] == nil { peerSeen(peer) }
        default: break
        }
    }

    /// Makes a connected peer a member if it belongs to the chat.
    private func connected(_ peer: Peer, isForChat: Bool) {
        let isOfMesh =
            standings[peer.id]?.isInMesh == true && InvitationPurpose.chat.isAccepted(by: peer) == true
        guard isForChat || isOfMesh else {
            others[peer.id] = peer
            return
        }
        others[peer.id] = nil
        members[peer.id] = peer
        report("joined", peer, nil, "has joined, \(standings[peer.id]?.path ?? "")")
        for message in early.removeValue(forKey: peer.id) ?? [] { receive(message) }
    }

    private func peerSeen(_ peer: Peer) {
        guard InvitationPurpose.chat.isAccepted(by: peer) == true, !peer.routes.isEmpty,
            seen.updateValue(peer, forKey: peer.id) == nil
        else { return }
        report("seen", peer, nil, "is nearby")
        if let warning = PeerWarning(peer) { warn("\(warning)") }
    }

    private func memberLeft(_ peer: Peer, _ cause: NighError?) {
        // Everything that the peer sent has arrived by now. Later lines may wait, so that this ends.
        var unread = session.session.configuration.limits.receiveWindow * members.count
        while unread > 0, let message = session.session.messages.poll() {
            // With the four bytes that a message takes besides its payload.
            unread -= message.payload.count + 4
            receive(message)
        }
        guard members.removeValue(forKey: peer.id) != nil else { return }
        let isOrderly = cause.map { $0.cause == .peerLeft || $0.cause == .left } ?? true
        report("left", peer, isOrderly ? nil : cause, "has left")
        guard invitee != nil, members.isEmpty else { return }
        if !isOrderly { outcome.error = outcome.error ?? cause }
        end()
    }

    // MARK: Reporting

    private func reportMembers() {
        let there = members.values.sorted { $0.id < $1.id }
        let besides = others.values.sorted { $0.id < $1.id }
        let seen = seen.values.filter { members[$0.id] == nil && others[$0.id] == nil }.sorted {
            $0.id < $1.id
        }
        func path(_ peer: Peer) -> String { standings[peer.id]?.path ?? "" }
        let people =
            there.map { ($0, "connected \(path($0))") }
            + besides.map { ($0, "connected \(path($0)), but not in this chat") }
            + seen.map { ($0, "not connected") }
        if results.isText {
            if people.isEmpty { return show(Line("no peer is connected or nearby", .faint)) }
            for (peer, state) in people {
                show(Line("\(peer.name) (\(peer.identity.short)) is \(state)", .faint))
            }
            return
        }
        let list = people.map { peer, _ -> JSON in
            [
                "peer_id": .text("\(peer.id)"), "peer_name": .text("\(peer.name)"),
                "is_in_conversation": .bool(members[peer.id] != nil), "transport": JSON(peer.transport),
                "through": JSON(standings[peer.id]?.carrier.map { "\($0)" }),
            ]
        }
        results.report(Self.memberList, [.init("people", .list(list))], lines: [])
    }

    private func report(_ state: String, _ peer: Peer, _ error: NighError?, _ text: String) {
        let reason = error.map { ": \($0.cause)" } ?? ""
        report(
            Self.person, id: peer.id, peer.displayName,
            [
                .init("state", .text(state)), .init("transport", JSON(peer.transport)),
                .init("through", JSON(standings[peer.id]?.carrier.map { "\($0)" })),
                .init("error", error.map(Results.json) ?? .null),
            ], line: Line("\(peer.name) (\(peer.identity.short)) \(text)\(reason)", .faint))
    }

    private func report(
        _ kind: Results.Kind, id: PeerID, _ name: DisplayName, _ members: [JSON.Member], line: Line?
    ) {
        guard !results.isText else {
            if let line { show(line) }
            return
        }
        results.report(
            kind, [.init("peer_id", .text("\(id)")), .init("peer_name", .text("\(name)"))] + members,
            lines: [])
    }

    /// Shows a remark, above the typed line if there is one, otherwise on standard error.
    private func warn(_ text: String) {
        guard interface is TerminalChatInterface else { return results.remark(text) }
        show(Line(text, .warning))
    }

    private func show(_ line: Line) {
        if interface is TerminalChatInterface { return interface.show(line) }
        guard results.isText else { return results.remark(line.text(colours: false)) }
        results.report(Self.line, [], lines: [line])
    }
}
