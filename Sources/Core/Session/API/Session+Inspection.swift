/// The internal state of a session, for checks from outside: the simulated world and benchmarks. Not part of the public
/// interface.
package struct SessionInspection {
    /// The record of one peer.
    package struct PeerView {
        package let id: PeerID
        /// The state in the machine. Read in a turn of its own, it is the state that was reported last.
        package let state: PeerState
        /// The ID of the conversation, if there is one.
        package let conversation: UInt64?
        /// The peer's incarnation in the conversation; 0 without a conversation.
        package let incarnation: UInt64
        /// Whether a link carries the conversation.
        package let hasLink: Bool
        /// The scheme of that link's transport.
        package let transport: String?
        /// Links whose hello named the peer.
        package let linkCount: Int
        /// Links that carry a conversation with the peer.
        package let carryingLinks: Int
        /// Bytes accepted for sending and not acknowledged.
        package let bytesWaiting: Int
        /// Bytes received and not read.
        package let bytesUnread: Int
        /// Whether this side has a request under way.
        package let isRequesting: Bool
        /// Whether an invitation waits for the program.
        package let isInvited: Bool
        /// Whether the session looks for another link.
        package let isRecovering: Bool
        /// Whether this side is leaving.
        package let isLeaving: Bool
        /// The addresses at which the peer can be dialled.
        package let routes: [TransportAddress]
        /// How far the messages have come, by lane; empty without a conversation.
        package let lanes: [LaneProgress]
        /// Streams that are open, or whose end was not reported to the other side yet.
        package let streams: Int
    }

    /// The incarnation of this session.
    package let incarnation: UInt64
    /// All known peers, sorted by PeerID.
    package let peers: [PeerView]
    /// The number of links.
    package let links: Int
    /// The number of accepted links without a conversation.
    package let strangers: Int
    /// The number of pipes that the driver holds.
    package let connections: Int
    /// The number of dials without an outcome, including those whose link has not exchanged hellos.
    package let dials: Int
    /// The number of pings without an answer.
    package let pings: Int
    /// The number of the program's calls whose outcome was not reported yet.
    package let calls: Int
}

extension Session {
    /// Ends everything like a crash of the process: no goodbye, nothing is written, and no event or message is reported
    /// any more. Waiting calls fail with `closed`. Call it on the loop.
    package func crash() { driver.crash() }

    /// The internal state as it is now. Read it on the loop.
    package var inspection: SessionInspection { driver.inspection }

    /// Returns the state of one peer as it is now, or nil if nothing is known about it. Call it on the loop.
    package func inspection(of peer: PeerID) -> SessionInspection.PeerView? {
        driver.machine.peers[peer].map {
            SessionInspection.PeerView(
                $0, transport: driver.machine.scheme(inUseWith: $0), carryingLinks: $0.link == nil ? 0 : 1)
        }
    }

    /// Returns the scheme of the transport that carries the conversation with a peer, and whether this session is
    /// leaving the peer. Returns nil if no link carries it. It costs less than an inspection. Call it on the loop.
    package func carriage(of peer: PeerID) -> (scheme: String, isLeaving: Bool)? {
        guard let record = driver.machine.peers[peer], let scheme = driver.machine.scheme(inUseWith: record)
        else { return nil }
        return (scheme, record.conversation?.departure != nil)
    }
}

extension SessionDriver {
    fileprivate var inspection: SessionInspection {
        var carrying: [PeerID: Int] = [:]
        for link in machine.links.values where link.purpose == .carrying {
            if let peer = link.peer { carrying[peer.id, default: 0] += 1 }
        }
        return SessionInspection(
            incarnation: machine.hello.incarnation,
            peers: machine.sortedPeers.map {
                SessionInspection.PeerView(
                    $0, transport: machine.scheme(inUseWith: $0), carryingLinks: carrying[$0.id] ?? 0)
            },
            links: machine.links.count,
            strangers: machine.strangerCount,
            connections: connections.count, dials: machine.dials.count, pings: machine.pings.count,
            calls: unansweredCalls)
    }

    /// The contradictions in the state between two turns. Empty after the end, when nothing is kept in order any more.
    fileprivate var inconsistencies: [String] {
        guard !isClosed else { return [] }
        var found = machine.inconsistencies
        if machine.hasDirectives { found.append("a directive was not carried out") }
        if machine.hasDirtyLinks, !flushIsDue { found.append("no flush is due although links have bytes") }
        if !wakesInTime { found.append("the timer fires after the deadline") }
        return found
    }
}

extension Session {
    /// The contradictions in the state of this session, in words. Read it on the loop.
    package var inconsistencies: [String] { driver.inconsistencies }

    /// The largest number of bytes that one of the session's links holds. Read it on the loop.
    package var mostBytesHeld: Int {
        driver.machine.links.values.reduce(0) { max($0, $1.machine.heldByteCount) }
    }
}

extension SessionInspection.PeerView {
    fileprivate init(_ peer: PeerRecord, transport: String?, carryingLinks: Int) {
        self.init(
            id: peer.id, state: peer.state, conversation: peer.conversation?.id,
            incarnation: peer.conversation?.incarnation ?? 0, hasLink: peer.link != nil, transport: transport,
            linkCount: peer.linkCount,
            carryingLinks: carryingLinks, bytesWaiting: peer.conversation?.port.outstanding ?? 0,
            bytesUnread: peer.conversation?.unread ?? 0, isRequesting: peer.attempt != nil,
            isInvited: peer.invitation != nil, isRecovering: peer.recovery != nil,
            isLeaving: peer.conversation?.departure != nil, routes: peer.routes.map(\.address),
            lanes: peer.conversation.map { Lane.allCases.map($0.progress) } ?? [],
            streams: peer.conversation?.streams?.count ?? 0)
    }
}
