import JSONText
import NighLoop
import NighCore
import NighFiles
import NighMemory
import SessionArguments

/// A chat in lines with all peers that this side has invited or was invited by.
///
/// It runs on a thread of its own, so that a slow reader of its output holds up nothing else.
actor ChatRoom {
    /// What the summary reports.
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
    /// Whether the chat ends when the last member has left. True if this side invited a peer.
    private let endsWhenAlone: Bool

    private var members: [PeerID: Peer] = [:]
    private var seen: [PeerID: Peer] = [:]
    /// Messages of peers that are connected, while the event that reports this still waits for the thread.
    private(set) var early: [PeerID: [Message]] = [:]
    /// What carries the conversation with each member, for a person, and the peer that does if it is one.
    private var paths: [PeerID: (text: String, carrier: PeerID?)] = [:]
    private(set) var outcome = Outcome()
    private var hasEnded = false
    private var waiting: CheckedContinuation<Void, Never>?
    private var receiving: Task<Void, Never>?

    init(
        _ interface: any ChatInterface, over session: CommandSession, on thread: ThreadEventLoop,
        _ results: Results,
        endsWhenAlone: Bool
    ) {
        self.interface = interface
        self.session = session
        self.thread = thread
        self.results = results
        self.endsWhenAlone = endsWhenAlone
    }

    /// Passes on an event of the session. Called on its loop.
    nonisolated func enqueue(_ event: SessionEvent) {
        let path = path(of: event)
        thread.execute {
            self.assumeIsolated { room in
                if let path { room.paths[path.peer] = (path.text, path.carrier) }
                room.handle(event)
            }
        }
    }

    /// What carries the conversation with the peer of an event. Called on the session's loop.
    private nonisolated func path(of event: SessionEvent) -> (peer: PeerID, text: String, carrier: PeerID?)? {
        switch event {
        case .stateChanged(let peer, _, _), .peerChanged(let peer):
            (peer.id, session.path(to: peer), session.carrier(of: peer))
        default: nil
        }
    }

    /// Ends the chat, as `/quit` does. Callable from any thread.
    nonisolated func leave() { thread.execute { self.assumeIsolated { $0.end() } } }

    /// Shows a remark. Callable from any thread.
    nonisolated func remark(_ text: String) { thread.execute { self.assumeIsolated { $0.warn(text) } } }

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

    /// Leaves all members at once, so that those who do not answer take their time together.
    private func leaveAll() async {
        let (session, ids) = (session.session, members.keys.sorted())
        let error = await withTaskGroup(of: NighError?.self) { group in
            for id in ids {
                group.addTask {
                    do throws(NighError) {
                        try await session.disconnect(id)
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
        let everybody = members.keys.sorted()
        report(
            Self.line, id: session.session.id, session.session.configuration.name,
            [.init("text", .text(text)), .init("is_own", true)],
            // The terminal interface has removed the typed line from the input row, so it is shown again.
            line: interface is TerminalChatInterface ? Line("you: ", .strong) + Line(text) : nil)
        outcome.sentLines += 1
        // An event reports a peer that has left meanwhile.
        for line in ChatMessage.lines(of: text) {
            try? await session.session.send(ByteSlice(line), to: everybody)
        }
    }

    // MARK: Messages and events

    private func receive(_ message: Message) {
        guard let member = members[message.peer] else {
            early[message.peer, default: []].append(message)
            return
        }
        switch ChatMessage(message.payload) {
        case .line(let text):
            outcome.receivedLines += 1
            report(
                Self.line, id: member.id, member.name, [.init("text", .text(text)), .init("is_own", false)],
                line: Line("\(member.name): ", .strong) + Line(text))
        case .unknown: break
        case nil:
            show(Line("\(member.name) has sent an unreadable message and is disconnected", .bad))
            session.session.disconnect(member.id)
        }
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .invited(let invitation): session.session.accept(invitation)
        case .stateChanged(let peer, let before, let cause):
            switch peer.state {
            case .available: if before == .unavailable { peerSeen(peer) }
            case .unavailable:
                if seen.removeValue(forKey: peer.id) != nil {
                    report("gone", peer, nil, "is no longer visible")
                }
            case .connected:
                members[peer.id] = peer
                if before == .reconnecting {
                    report("back", peer, nil, "is back")
                } else {
                    report("joined", peer, nil, "has joined, \(paths[peer.id]?.text ?? "")")
                }
                for message in early.removeValue(forKey: peer.id) ?? [] { receive(message) }
            case .reconnecting:
                report("lost", peer, cause, "has lost the link; lines are kept for a while")
            case .disconnected: memberLeft(peer, cause)
            case .connecting: break
            }
        case .peerChanged(let peer):
            if members[peer.id] != nil { members[peer.id] = peer }
            if peer.state == .available, seen[peer.id] == nil { peerSeen(peer) }
        default: break
        }
    }

    private func peerSeen(_ peer: Peer) {
        guard Purpose.chat.isAccepted(by: peer) == true, !peer.routes.isEmpty,
            seen.updateValue(peer, forKey: peer.id) == nil
        else { return }
        report("seen", peer, nil, "is nearby")
        if let warning = PeerWarning(peer) { warn("\(warning)") }
    }

    private func memberLeft(_ peer: Peer, _ cause: NighError?) {
        // Everything that the peer sent has arrived by now. What others send meanwhile may wait, so that this ends.
        var unread = session.session.configuration.limits.receiveWindow * members.count
        while unread > 0, let message = session.session.messages.poll() {
            // With the four bytes that a message takes besides its payload.
            unread -= message.payload.count + 4
            receive(message)
        }
        guard members.removeValue(forKey: peer.id) != nil else { return }
        let isOrderly = cause.map { $0.cause == .peerLeft || $0.cause == .left } ?? true
        report("left", peer, isOrderly ? nil : cause, "has left")
        guard endsWhenAlone, members.isEmpty else { return }
        if !isOrderly { outcome.error = outcome.error ?? cause }
        end()
    }

    // MARK: Reporting

    private func reportMembers() {
        let there = members.values.sorted { $0.id < $1.id }
        let others = seen.values.filter { members[$0.id] == nil }.sorted { $0.id < $1.id }
        let people =
            there.map { ($0, "connected \(paths[$0.id]?.text ?? "")") } + others.map { ($0, "not connected") }
        if results.isText {
            if people.isEmpty { return show(Line("no peer is connected or nearby", .faint)) }
            for (peer, state) in people { show(Line("\(peer.name) (\(peer.id.short)) is \(state)", .faint)) }
            return
        }
        let list = people.map { peer, _ -> JSON in
            [
                "peer_id": .text("\(peer.id)"), "peer_name": .text("\(peer.name)"),
                "is_in_conversation": .bool(members[peer.id] != nil), "transport": JSON(peer.transport),
                "through": JSON(paths[peer.id]?.carrier.map { "\($0)" }),
            ]
        }
        results.report(Self.memberList, [.init("people", .list(list))], lines: [])
    }

    private func report(_ state: String, _ peer: Peer, _ error: NighError?, _ text: String) {
        let reason = error.map { ": \($0.cause)" } ?? ""
        report(
            Self.person, id: peer.id, peer.name,
            [
                .init("state", .text(state)), .init("transport", JSON(peer.transport)),
                .init("through", JSON(paths[peer.id]?.carrier.map { "\($0)" })),
                .init("error", error.map(Results.json) ?? .null),
            ], line: Line("\(peer.name) (\(peer.id.short)) \(text)\(reason)", .faint))
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
