/// How far the messages of one lane have come, counted since the conversation began.
package struct LaneProgress {
    /// Messages that the peer has acknowledged.
    package let acknowledged: UInt64
    /// Messages that were given whole to any link.
    package let everSent: UInt64
    /// Messages that have come whole.
    package let received: UInt64
}

/// What a session holds inside, as far as somebody who checks it from outside wants to know. Made for the simulated
/// world and for benchmarks; no part of the public face.
package struct SessionInspection {
    /// One record of a peer.
    package struct PeerView {
        /// Whose.
        package let id: PeerID
        /// As the machine has it; in a turn of its own the same as was told.
        package let state: PeerState
        /// The conversation there is.
        package let conversation: UInt64?
        /// With which incarnation of the peer.
        package let incarnation: UInt64
        /// Whether a link carries the conversation.
        package let hasLink: Bool
        /// The scheme of that link's transport.
        package let transport: String?
        /// Links whose hello named the peer.
        package let linkCount: Int
        /// Links that carry a conversation with the peer.
        package let carryingLinks: Int
        /// Accepted and not acknowledged.
        package let bytesWaiting: Int
        /// Received and not read.
        package let bytesUnread: Int
        /// Whether a request of this side is under way.
        package let isAsking: Bool
        /// Whether an invitation waits for the program.
        package let isInvited: Bool
        /// Whether another link is looked for.
        package let isRecovering: Bool
        /// Whether this side is leaving.
        package let isLeaving: Bool
        /// Where the peer can be dialled.
        package let routes: [TransportAddress]
        /// How far messages have come, by lane; empty without a conversation.
        package let lanes: [LaneProgress]
    }

    /// Which run of this session's identity it is.
    package let incarnation: UInt64
    /// Everybody known, by PeerID.
    package let peers: [PeerView]
    /// Pipes with a machine on them.
    package let links: Int
    /// Those that came in and have no conversation yet.
    package let strangers: Int
    /// Pipes the driver holds.
    package let connections: Int
    /// Dials whose outcome is not known, or whose link has not greeted.
    package let dials: Int
    /// Pings without an answer.
    package let pings: Int
    /// Calls of the program whose outcome it has not been told.
    package let calls: Int
}

extension Session {
    /// Ends everything as the death of the process would: no goodbye, nothing is written or called back any more. To be
    /// called on the loop.
    package func die() { driver.die() }

    /// The inside as it is now. To be read on the loop.
    package var inspection: SessionInspection {
        let machine = driver.machine
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
            connections: driver.connections.count, dials: machine.dials.count, pings: machine.pings.count,
            calls: driver.unansweredCalls)
    }

    /// One peer as it is now; nil when nothing is known of it. To be read on the loop.
    package func inspection(of peer: PeerID) -> SessionInspection.PeerView? {
        driver.machine.peers[peer].map {
            SessionInspection.PeerView(
                $0, transport: driver.machine.scheme(inUseWith: $0), carryingLinks: $0.link == nil ? 0 : 1)
        }
    }
}

extension SessionInspection.PeerView {
    fileprivate init(_ peer: PeerRecord, transport: String?, carryingLinks: Int) {
        self.init(
            id: peer.id, state: peer.state, conversation: peer.conversation?.id,
            incarnation: peer.conversation?.incarnation ?? 0, hasLink: peer.link != nil, transport: transport,
            linkCount: peer.linkCount,
            carryingLinks: carryingLinks, bytesWaiting: peer.conversation?.port.outstanding ?? 0,
            bytesUnread: peer.conversation?.unread ?? 0, isAsking: peer.attempt != nil,
            isInvited: peer.invitation != nil, isRecovering: peer.recovery != nil,
            isLeaving: peer.conversation?.departure != nil, routes: peer.routes.map(\.address),
            lanes: peer.conversation.map { Lane.allCases.map($0.progress) } ?? [])
    }
}
