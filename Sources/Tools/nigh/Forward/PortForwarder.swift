import JSONText
import NighCore
import NighForwarding
import NighLoop

/// The listening ports of one `nigh forward`, and the conversation to which their connections go.
///
/// `@unchecked Sendable`: confined to the session's loop, but for constants.
final class PortForwarder: @unchecked Sendable {
    private let commandSession: CommandSession
    private let client: ForwardingClient
    private let grace: Duration
    private let results: Results
    private let reports: ConnectionReports
    private var listeners: [(listener: LoopbackListener, mapping: PortMapping)] = []
    /// The peer of the conversation, also while it has no link; nil while there is no conversation.
    private var peer: Peer?
    /// Called when the conversation has ended.
    private var whenLost: (() -> Void)?
    private var hasWarned = false
    private var isOver = false

    init(_ commandSession: CommandSession, grace: Duration, _ results: Results) {
        self.commandSession = commandSession
        self.grace = grace
        self.results = results
        reports = ConnectionReports(results)
        client = ForwardingClient(commandSession.session)
    }

    /// Listens on the port of a mapping. Loop only.
    func listen(_ mapping: PortMapping) throws(NighError) {
        let listener = try LoopbackListener(
            port: mapping.local, on: commandSession.loop,
            accepted: { [unowned self] in accepted($0, mapping) },
            failed: { [unowned self] in commandSession.remark($0) })
        listeners.append((listener, mapping))
    }

    /// Keeps a conversation with the peer, which is connected now: calls it again whenever the conversation has ended.
    /// The calls end when the task is cancelled.
    func keepConnected(to first: Peer, calledAs choice: PeerChoice) async -> Task<Void, Never> {
        _ = await commandSession.onLoop { [self] _ in begin(with: first, isFirst: true) }
        // Somebody else may have that name by then.
        let choice = if case .named = choice { PeerChoice.named("\(first.identity)") } else { choice }
        return Task { [self, commandSession] in
            while !Task.isCancelled {
                await waitForLoss()
                let peer = try? await commandSession.connect(
                    to: choice, for: .forward, .init(retriesAddresses: true))
                guard let peer else {
                    // The peer has refused. Another try may help once somebody has changed that.
                    try? await Task.sleep(for: .seconds(5))
                    continue
                }
                _ = await commandSession.onLoop { [self] _ in begin(with: peer, isFirst: false) }
            }
        }
    }

    private func waitForLoss() async {
        await withCheckedContinuation { continuation in
            commandSession.loop.execute { [self] in
                if peer == nil || isOver { return continuation.resume() }
                whenLost = { continuation.resume() }
            }
        }
    }

    private func begin(with peer: Peer, isFirst: Bool) {
        guard !isOver else { return }
        // It may have left again.
        guard let now = commandSession.peers[peer.id], now.isConnected else { return lost() }
        self.peer = now
        for (listener, mapping) in listeners where isFirst {
            results.report(
                ConnectionReports.listening,
                [
                    .init("local_port", .integer(Int(listener.port))),
                    .init("port", .integer(Int(mapping.remote))),
                    .init("peer_id", .text(now.id.description)), .init("peer_name", .text("\(now.name)")),
                    .init("transport", JSON(now.transport)),
                ],
                lines: [
                    Line("127.0.0.1:\(listener.port)", .strong) + Line(" leads to port \(mapping.remote) of ")
                        + Line("\(now.name)", .strong) + Line(" \(commandSession.path(to: now))")
                ])
        }
        if !isFirst { results.remark("\(now.name) is back \(commandSession.path(to: now))") }
    }

    /// Handles an event of the session. Loop only.
    func handle(_ event: SessionEvent) {
        guard let changed = event.changedPeer, changed.id == peer?.id else { return }
        switch event {
        case .reconnecting(_, let cause):
            results.remark("\(changed.name) has no link now (\(cause.cause)); connections wait")
        case .reconnected:
            results.remark("\(changed.name) is reached again \(commandSession.path(to: changed))")
        case .disconnected(_, let cause):
            results.remark("\(changed.name) is gone (\(cause.cause)); calling it again")
            return lost()
        case .peerChanged:
            if changed.transport != peer?.transport, changed.isConnected {
                results.remark("\(changed.name) is reached \(commandSession.path(to: changed)) now")
            }
        default: break
        }
        peer = changed
    }

    private func lost() {
        peer = nil
        whenLost?()
        whenLost = nil
    }

    private func accepted(_ connection: SocketConnection, _ mapping: PortMapping) {
        guard !isOver, let peer else {
            connection.reset()
            return results.remark(
                "a connection to port \(mapping.remote) fails: there is no conversation now")
        }
        client.carry(
            connection, to: mapping.remote, at: peer.id,
            opened: { [self] theirs in
                report("opened", mapping, [], "connected to port \(mapping.remote) of \(peer.name)")
                warn(of: theirs, at: peer)
            },
            closed: { [self] sent, received, error in
                if let error, sent + received == 0 { commandSession.remark(error) }
                let bytes = CarriedBytes(sent: sent, received: received)
                report(
                    "closed", mapping,
                    bytes.members + [.init("error", error.map { Results.json(of: $0) } ?? .null)],
                    bytes.endOfConnection(to: mapping.remote, error))
            })
    }

    private func report(_ change: String, _ mapping: PortMapping, _ members: [JSON.Member], _ words: String) {
        reports.report(
            change, [.init("port", .integer(Int(mapping.remote)))] + members, Line(words, .faint))
    }

    private func warn(of theirs: Duration, at peer: Peer) {
        guard !hasWarned, let text = Forwarding.remark(ofTheirs: theirs, ours: grace, label: "\(peer.name)")
        else { return }
        hasWarned = true
        results.remark(text)
    }

    /// Stops listening and ends all connections. Returns the counts. Loop only.
    func end() -> ForwardingCounts {
        isOver = true
        for (listener, _) in listeners { listener.close() }
        listeners = []
        client.endAll(because: "the other side has ended the forwarding")
        lost()
        return client.counts
    }
}
