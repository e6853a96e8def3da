import Glibc
import JSONText
import NighCore
import NighIntroductions
import NighLoop
import NighRelays
import Terminal

/// Joins the peers nearby, collects their reports about each other, and reports changes of the map.
///
/// It calls the peers that discovery sees, one after the other. In a mesh it is then introduced to all others, so they
/// are not called.
///
/// `@unchecked Sendable`: all mutable state is confined to the session's loop.
final class MapWatch: @unchecked Sendable {
    /// The state at the end.
    struct Outcome: Sendable {
        let map: PeerMap
        /// Whether there was a conversation with anybody at any time.
        let hasMetAnybody: Bool
        /// The peers that this session could not connect to, with the reasons.
        let refusals: [String]
        /// The errors of the transports, if none of them works.
        let fault: TransportsUnavailable?
    }

    /// How often the map is made anew.
    private static let pace = Moment.Span.milliseconds(250)
    /// How long the map stays the same before it counts as complete.
    private static let quietTime = Moment.Span.seconds(2)
    /// The time in which a called peer has to answer.
    private static let callTime = Duration.seconds(8)
    /// The pause before a peer that did not let this session in is called again.
    private static let callPause = Moment.Span.seconds(30)
    /// The most peers whose refusals are remembered.
    private static let mostRefusals = 16

    private let commandSession: CommandSession
    private let results: Results
    private let plan: MapPlan
    private let startedAt: Moment
    private var map = PeerMap()
    private var changedAt: Moment
    /// Whether the map was complete once, so that changes are news for a person.
    private var isSettled = false
    private var hasMetAnybody = false
    private var hasEnded = false
    private var waiting: CheckedContinuation<Void, Never>?
    /// The peer that is being called.
    private var called: PeerID?
    private var calledAt: [PeerID: Moment] = [:]
    private var refusals: [PeerID: String] = [:]

    private var loop: UVEventLoop { commandSession.loop }

    init(_ commandSession: CommandSession, _ results: Results, _ plan: MapPlan) {
        self.commandSession = commandSession
        self.results = results
        self.plan = plan
        startedAt = commandSession.loop.now
        changedAt = startedAt
    }

    /// Watches until it is interrupted, or until the plan says so.
    func run(_ stopRequest: StopRequest) async -> Outcome {
        commandSession.start(onEvent: { [self] in handle($0) })
        stopRequest.onRequest { [self] in loop.execute { [self] in end() } }
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                if hasEnded { return continuation.resume() }
                waiting = continuation
                tick()
                guard let timeout = plan.timeout else { return }
                loop.schedule(at: startedAt + Moment.Span(timeout)) { [self] in end() }
            }
        }
        return await commandSession.onLoop { [self] commandSession in
            Outcome(
                map: map, hasMetAnybody: hasMetAnybody, refusals: refusals.values.sorted(),
                fault: commandSession.transportsUnavailable)
        }
    }

    private func end() {
        guard !hasEnded else { return }
        refresh()
        hasEnded = true
        waiting?.resume()
        waiting = nil
    }

    private func handle(_ event: SessionEvent) {
        guard !hasEnded else { return }
        switch event {
        case .invited(let invitation): invitation.accept()
        case .connected, .reconnected: hasMetAnybody = true
        case .transportDown(_, let error):
            if commandSession.transportsWereNamed { commandSession.remark(error) }
        default: break
        }
    }

    /// Makes the map anew, calls the next peer, and comes again.
    private func tick() {
        guard !hasEnded else { return }
        refresh()
        callNext()
        let now = loop.now
        if hasMetAnybody, called == nil, now >= changedAt + Self.quietTime {
            if plan.isOnce { return end() }
            settle()
        }
        if results.live.isVisible {
            show()
        } else if !hasMetAnybody, now >= startedAt + CommandSession.patience {
            results.showWaiting(
                Line("looking for peers of the service \(commandSession.session.configuration.service) …"))
        }
        loop.schedule(at: now + Self.pace) { [self] in tick() }
    }

    /// The map is complete for the first time: prints it where it is not kept up to date, so that the changes mean
    /// something. Ctrl-C would end the reader of a pipe before the map at the end reaches it.
    private func settle() {
        guard !isSettled else { return }
        isSettled = true
        guard results.isText, !results.live.isVisible || !isTerminal(STDOUT_FILENO) else { return }
        results.report(MapCommand.change, [], lines: PeerMapText(map: map).lines + [""])
    }

    private func refresh() {
        let next = commandSession.peerMap
        guard next != map else { return }
        let changes = PeerMapChange.all(from: map, to: next)
        map = next
        changedAt = loop.now
        for change in changes { report(change) }
    }

    private func report(_ change: PeerMapChange) {
        // One JSON object has the map at the end: a list of all changes would grow without bound. A person sees the
        // first map as a whole.
        guard results.form != .json, !results.isText || isSettled else { return }
        let after = (loop.now - startedAt).milliseconds / 1_000
        results.report(
            MapCommand.change,
            [.init("change", .text(change.kind.rawValue)), .init("after_s", .number(after))]
                + PeerMapText.members(change.pair, change.edge),
            lines: [PeerMapText.line(for: change, in: map)])
    }

    private func show() {
        let text = PeerMapText(map: map)
        let state: String =
            hasMetAnybody
            ? isSettled ? "Ctrl-C ends" : "still collecting"
            : called.map { "calling \(map.label(of: $0))" } ?? "looking for peers"
        results.live.show(
            [
                "",
                Line("\(commandSession.session.configuration.service)", .strong) + Line("  \(state)", .faint),
            ]
                + text.lines)
    }

    // MARK: Calling

    /// Calls a peer that discovery sees, if no other one is being called. With `--through` the session calls that one
    /// peer only.
    private func callNext() {
        guard called == nil, !commandSession.hasThrough else { return }
        let now = loop.now
        let candidate = commandSession.peers.values.filter { peer in
            peer.state == .available && !peer.isFull && commandSession.introducers(to: peer.id).isEmpty
                && peer.routes.contains { $0.address.scheme != RelayAddress.scheme }
                && calledAt[peer.id].map { $0 + Self.callPause <= now } ?? true
        }.min { $0.id < $1.id }
        guard let candidate else { return }
        called = candidate.id
        calledAt[candidate.id] = now
        let label = "\(candidate.name) (\(candidate.id.short))"
        commandSession.session.invite(
            candidate.id, context: InvitationPurpose.toJoin(candidate)[0].context, timeout: Self.callTime
        ) { [self] result in
            called = nil
            if case .failure(let error) = result, !hasEnded { refused(candidate.id, "\(label): \(error)") }
        }
    }

    private func refused(_ peer: PeerID, _ words: String) {
        if refusals.count < Self.mostRefusals || refusals[peer] != nil { refusals[peer] = words }
    }
}

extension CommandSession {
    /// The peers nearby and their connections, as far as this session knows. Loop only.
    var peerMap: PeerMap {
        var map = PeerMap()
        map.add(
            PeerMap.Node(
                id: session.id, name: session.configuration.name.description, isOwn: true))
        for peer in peers.values.sorted(by: { $0.id < $1.id }) {
            map.add(PeerMap.Node(id: peer.id, name: peer.name, isFull: peer.isFull))
            guard peer.state.hasConversation else { continue }
            let path = peer.transport.map {
                ConversationPath.over(scheme: $0, carrier: carrier(of: peer))
            }
            map.add(path ?? .interrupted, of: session.id, with: peer.id)
            let reported = peers(reportedBy: peer.id)
            for one in reported {
                let (report, advertisement) = (one.report, one.report.advertisement)
                map.add(
                    PeerMap.Node(
                        id: advertisement.peer, name: advertisement.name.description,
                        isMember: report.isMesh))
                map.add(one.path, of: peer.id, with: advertisement.peer)
            }
            if reported.contains(where: \.report.isMesh) {
                for member in [session.id, peer.id] {
                    map.add(PeerMap.Node(id: member, name: "", isMember: true))
                }
            }
        }
        map.sort()
        return map
    }
}
