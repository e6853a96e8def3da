/// The reports of a session so far, for every thread: its peers, and the readers of its events.
final class SessionReports: Sendable {
    private struct State {
        var peers = ReportedPeers()
        var problems = LastingProblems()
        /// The last event of each transport that listens, by scheme.
        var listening: [String: SessionEvent] = [:]
        var readers: [Reader] = []
        var listReaders = ListReaders<Peer>()
        /// Whether the program has ever asked for events.
        var hasBeenRead = false
        var isClosed = false

        mutating func noteTransport(_ event: SessionEvent) {
            problems.note(event)
            switch event {
            case .listening(let scheme, let addresses): listening[scheme] = addresses.isEmpty ? nil : event
            case .transportDown(let scheme, _): listening[scheme] = nil
            default: break
            }
        }

        /// Gives the readers of the peers the new list.
        mutating func showPeers() {
            if !listReaders.isEmpty { listReaders.yield(peers.sorted) }
        }

        /// Gives an event to every reader, which keeps up to `limit`.
        mutating func append(_ event: SessionEvent, limit: Int) {
            guard !readers.isEmpty else { return }
            readers.removeAll { $0.inbox == nil }
            for reader in readers { reader.inbox?.append(event, droppingOldestBeyond: limit) }
        }

        /// The events that describe the present state.
        var lasting: [SessionEvent] {
            let peerEvents = peers.sorted.flatMap { peer -> [SessionEvent] in
                peer.isConnected ? [.peerFound(peer), .connected(peer)] : [.peerFound(peer)]
            }
            return problems.all + listening.sorted { $0.key < $1.key }.map(\.value) + peerEvents
        }
    }

    /// Weak, so that a sequence ends with its reader.
    private struct Reader {
        weak var inbox: Inbox<SessionEvent>?
    }

    private let state = Guarded(State())
    /// The number of events that wait for a slow reader.
    private let readerLimit: Int

    init(readerLimit: Int) { self.readerLimit = readerLimit }

    // MARK: The loop

    /// Takes an event in, and gives it to every reader, in one step: a new reader gets it either as a part of the
    /// beginning or by itself.
    func note(_ event: SessionEvent) {
        switch event {
        case .peerFound(let peer), .peerChanged(let peer), .connecting(let peer), .connected(let peer),
            .reconnecting(let peer, _), .reconnected(let peer), .disconnected(let peer, _),
            .available(let peer, _):
            state.withLock { state in
                state.peers.note(peer)
                state.showPeers()
                state.append(event, limit: readerLimit)
            }
        case .peerLost(let peer):
            state.withLock { state in
                state.peers.noteLoss(of: peer)
                state.showPeers()
                state.append(event, limit: readerLimit)
            }
        case .transportUp, .transportDown, .listening, .advertised, .problem:
            state.withLock { state in
                state.noteTransport(event)
                state.append(event, limit: readerLimit)
            }
        default: state.withLock { $0.append(event, limit: readerLimit) }
        }
    }

    /// Ends all sequences.
    func finish() {
        let (readers, lists) = state.withLock { state in
            state.isClosed = true
            defer {
                state.readers = []
                state.listReaders = ListReaders()
            }
            return (state.readers, state.listReaders)
        }
        for reader in readers { reader.inbox?.finish() }
        lists.finish()
    }

    /// Forgets the peers of a session that nobody holds any more. Each peer refers to the session, and so to these
    /// reports.
    func forgetPeers() { state.withLock { $0.peers = ReportedPeers() } }

    // MARK: Any thread

    /// The peers that can be reached now, or are connected, by PeerID.
    var peers: [Peer] { state.withLock { $0.peers.sorted } }

    /// The peers that are connected now, in any order.
    var connectedPeers: [Peer] { state.withLock { $0.peers.connected } }

    /// The peer, if it can be reached now, or is connected.
    func presentPeer(_ id: PeerID) -> Peer? { state.withLock { $0.peers.present(id) } }

    /// The peer as it was last reported; nil if it was not, or too many were lost after it.
    func peer(_ id: PeerID) -> Peer? { state.withLock { $0.peers.present(id) ?? $0.peers.lost(id) } }

    /// Whether the program has ever asked for events.
    var hasBeenRead: Bool { state.withLock { $0.hasBeenRead } }

    func events() -> EventSequence {
        let inbox = Inbox<SessionEvent>()
        let isClosed = state.withLock { state in
            state.hasBeenRead = true
            for event in state.lasting { inbox.append(event) }
            if !state.isClosed { state.readers.append(Reader(inbox: inbox)) }
            return state.isClosed
        }
        if isClosed { inbox.finish() }
        return EventSequence(inbox: inbox)
    }

    func peerLists() -> AsyncStream<[Peer]> {
        state.withLock { state in
            let list = state.peers.sorted
            guard !state.isClosed else { return ListReaders.only(list) }
            return state.listReaders.add(list) { [weak self] number in
                self?.remove(listReader: number)
            }
        }
    }

    private func remove(listReader number: Int) { state.withLock { $0.listReaders.remove(number) } }
}
