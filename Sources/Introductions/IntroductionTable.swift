import NighCore
import NighRelays

/// The introductions of one session: its connected peers, their reports about others, and the records to send.
///
/// The records for a peer follow from the table, so nothing queues while the peer has no room. The peers that a session
/// of a mesh still lacks follow from the reports; `MeshPlan` decides when to invite them. A value without I/O or clock:
/// `flush` sends records, and `takeActions` returns the instructions to the session.
///
/// This file is long because the table is private to it. What has a state of its own is in `ReportedPeers`, `MeshPlan`
/// and `TokenLedger`.
package struct IntroductionTable {
    /// An instruction to the session.
    package enum Action: Equatable {
        /// Make the peer known to the session, at these addresses and no others.
        case introduce(IntroducedPeer)
        /// Invite the peer, and show it the introduction.
        case invite(PeerID, introduction: [UInt8])
        /// Forget the addresses that others have given for the peer.
        case forget(PeerID)
    }

    /// The state of another peer as this session has sent it to a peer.
    private struct SentState: Equatable {
        struct Membership: Equatable {
            var version: UInt64
            var isMesh: Bool
            var isCarried: Bool
        }

        var membership: Membership
        /// The path of the conversation with the other peer; nil if the receiver does not ask for paths.
        var path: ConversationPath?
    }

    /// A connected peer.
    private struct Entry {
        var tokens: TokenLedger
        /// The path of the conversation.
        var path = ConversationPath.interrupted
        var sentPresence: Presence?
        /// The peer's latest description of itself.
        var presence: Presence?
        /// The number of the peer's latest presence, counted over all peers.
        var version: UInt64 = 0
        var sent: [PeerID: SentState] = [:]
        /// The peers whose state may have to be sent to this one.
        var pending: Set<PeerID> = []
        /// Questions and answers that wait to be sent.
        var outgoingRecords: [IntroductionRecord] = []
        var flushAt = Moment.never
        /// When the peer was last introduced to another one.
        var answeredAt: [PeerID: Moment] = [:]
        var takesRecords = true
    }

    /// The most peers that one peer can report.
    package static let mostReported = 1_024
    /// The most questions and answers that wait for one peer.
    private static let mostOutgoingRecords = 256
    /// The bytes of records that are sent in one message.
    private static let batch = 8 << 10
    /// The time for which changes are collected before they are sent.
    package static let gatheringTime = Moment.Span.milliseconds(50)
    /// The least time between two introductions of the same two peers.
    private static let answerInterval = Moment.Span.milliseconds(500)
    /// How long the peer with the smaller PeerID waits for the other one's invitation.
    package static let secondInviterDelay = Moment.Span.seconds(2)
    /// The pause before the next question for the addresses of a peer that is connected through a carrier only.
    package static let relayedPause = Moment.Span.seconds(30)
    /// The most carriers through which one peer is dialled.
    private static let mostCarriers = 2
    /// How long the peer with the greater PeerID waits, in case the two connect without an introduction.
    private static let firstInviterDelay = Moment.Span.milliseconds(20)

    private let identity: Identity
    private let policy: Policy
    private var own: (advertisement: Advertisement, addresses: [TransportAddress])
    private var peers: [PeerID: Entry] = [:]
    private var reportedPeers = ReportedPeers()
    /// The reported peers whose conversation with this session was ended by either side. They are not asked for.
    private var left: Set<PeerID> = []
    /// The peers in `left` that this session itself has disconnected. Their invitations are declined, too.
    private var rejected: Set<PeerID> = []
    private var lastVersion: UInt64 = 0
    /// The connected peers whose link is broken now.
    private var interrupted: Set<PeerID> = []
    /// The peers that are connected through a carrier only.
    private var relayed: Set<PeerID> = []
    /// The direct addresses of peers, as introducers have given them.
    private var direct: [PeerID: [TransportAddress]] = [:]
    /// The addresses that this table has given the session.
    private var shown: [PeerID: [TransportAddress]] = [:]
    /// No flush is due before this moment.
    private var nextFlush = Moment.never
    private var plan: MeshPlan
    private var actions: [Action] = []

    /// - Parameter seed: makes the pauses a little random.
    package init(
        _ identity: Identity, _ advertisement: Advertisement, _ policy: Policy, seed: UInt64
    ) {
        self.identity = identity
        self.policy = policy
        own = (advertisement, [])
        plan = MeshPlan(seed: seed)
    }

    // MARK: State

    /// The connected peers, by PeerID.
    package var connectedPeers: [PeerID] { peers.keys.sorted() }

    /// Whether this peer is connected and may take part in introductions.
    package func isConnected(to id: PeerID) -> Bool { peers[id] != nil }

    /// Whether both this session and a connected peer are in the mesh.
    package func isInMesh(with id: PeerID) -> Bool { policy.isMesh && peers[id]?.presence?.isMesh == true }

    /// The peers that a peer reports to be connected to, by PeerID.
    package func peers(reportedBy id: PeerID) -> [ReportedPeer] { reportedPeers.peers(reportedBy: id) }

    /// The peers that could introduce this session to this one, by PeerID.
    package func introducers(to id: PeerID) -> [PeerID] {
        reportedPeers.meshMembers(connectedTo: id).filter { introducer in
            guard let entry = peers[introducer] else { return false }
            return entry.takesRecords && entry.presence?.isMesh == true
        }
    }

    /// Returns the instructions to the session, in order.
    package mutating func takeActions() -> [Action] {
        defer { actions.removeAll() }
        return actions
    }

    /// When `timeArrived` must be called next. It may turn out to be early, but never late.
    package var deadline: Moment { min(plan.deadline, nextFlush) }

    // MARK: This session

    /// Sets the advertisement and the addresses of this session.
    package mutating func setOwn(
        _ advertisement: Advertisement, at addresses: [TransportAddress], now: Moment
    ) {
        own = (advertisement, Self.usable(addresses))
        for id in peers.keys { flushSoon(id, now: now) }
    }

    /// Returns the addresses that also work on other machines, of each scheme in turn.
    private static func usable(_ addresses: [TransportAddress]) -> [TransportAddress] {
        // A scope, as in [fe80::1%eth0], names an interface of this machine.
        let portable = addresses.filter { !$0.value.contains("%") }
        let positions = portable.indices.map { index in
            (portable[..<index].count { $0.scheme == portable[index].scheme }, index)
        }
        return positions.sorted { $0 < $1 }.prefix(IntroductionRecord.mostAddresses).map { portable[$0.1] }
    }

    private func presence(for id: PeerID, _ entry: Entry) -> Presence? {
        let acceptsRelays = policy.acceptsRelays(id)
        guard policy.isMesh || acceptsRelays || entry.sentPresence != nil else { return nil }
        return Presence(
            isMesh: policy.isMesh, acceptsRelays: acceptsRelays, wantsPaths: policy.wantsPaths,
            nonce: entry.tokens.nonce, advertisement: own.advertisement,
            addresses: policy.isMesh ? own.addresses : [])
    }

    // MARK: Conversations

    /// A conversation with the peer has begun.
    ///
    /// - Parameter nonce: a random number for it.
    package mutating func connected(_ id: PeerID, nonce: UInt64, now: Moment) {
        peers[id] = Entry(tokens: TokenLedger(nonce: nonce))
        left.remove(id)
        rejected.remove(id)
        interrupted.remove(id)
        plan.forget(id)
        flushSoon(id, now: now)
    }

    /// The link of the conversation broke, or there is one again.
    package mutating func noteLink(of id: PeerID, isThere: Bool, now: Moment) {
        guard peers[id] != nil else { return }
        if isThere { interrupted.remove(id) } else { interrupted.insert(id) }
        updatePlan(for: id, now: now)
    }

    /// The conversation runs over another path now.
    package mutating func notePath(of id: PeerID, _ path: ConversationPath, now: Moment) {
        guard let known = peers[id]?.path, known != path else { return }
        peers[id]?.path = path
        for other in peers.keys where peers[other]?.presence?.wantsPaths == true {
            markChanged(id, for: other, now: now)
        }
        // Without a link nothing is known of the next one.
        guard case .over(let scheme, _) = path else { return }
        let isRelayed = scheme == RelayAddress.scheme
        guard relayed.contains(id) != isRelayed else { return }
        if isRelayed { relayed.insert(id) } else { relayed.remove(id) }
        updatePlan(for: id, now: now)
    }

    /// The pairing with the peer may have changed. It decides about relays to, from and through the peer, and whether
    /// the peer may be in the mesh.
    package mutating func reconsider(_ id: PeerID, now: Moment) {
        flushSoon(id, now: now)
        for other in reportedPeers.ids(reportedBy: id) { showRoutes(to: other) }
        updatePlan(for: id, now: now)
        guard peers[id]?.presence != nil else { return }
        markChanged(id, now: now)
        let all = peers.keys
        peers[id]?.pending.formUnion(all)
    }

    /// The side that ended a conversation.
    package enum Departure {
        case thisSide
        case otherSide
        /// It was lost.
        case nobody
    }

    /// The conversation has ended.
    package mutating func disconnected(_ id: PeerID, by departure: Departure, now: Moment) {
        guard peers.removeValue(forKey: id) != nil else { return }
        interrupted.remove(id)
        relayed.remove(id)
        direct[id] = nil
        for other in reportedPeers.ids(reportedBy: id) { removeReport(of: other, by: id, now: now) }
        markChanged(id, now: now)
        for other in peers.keys { peers[other]?.answeredAt[id] = nil }
        if departure != .nobody, reportedPeers.contains(id) {
            left.insert(id)
            if departure == .thisSide { rejected.insert(id) }
        }
        showRoutes(to: id)
        updatePlan(for: id, now: now)
    }

    /// Gives the session the peer's addresses if they have changed: those through carriers, then the direct ones.
    private mutating func showRoutes(to id: PeerID) {
        // Peers that may not carry pipes to this session cannot offer themselves as carriers.
        let carriers = reportedPeers.carriers(of: id).filter(policy.acceptsRelays).prefix(Self.mostCarriers)
        let relays = carriers.map { RelayAddress(carrier: $0, peer: id).transportAddress }
        let addresses = relays + (direct[id] ?? [])
        guard addresses != shown[id] ?? [] else { return }
        shown[id] = addresses.isEmpty ? nil : addresses
        let own = peers[id]?.presence?.advertisement
        guard !addresses.isEmpty, let advertisement = own ?? reportedPeers.advertisement(of: id) else {
            return actions.append(.forget(id))
        }
        introduce(advertisement, at: addresses, isByItself: own != nil)
    }

    private mutating func introduce(
        _ advertisement: Advertisement, at addresses: [TransportAddress], isByItself: Bool
    ) {
        actions.append(
            .introduce(
                IntroducedPeer(
                    id: advertisement.peer, identity: advertisement.identity, name: advertisement.name,
                    info: advertisement.info,
                    addresses: addresses, isByItself: isByItself)))
    }

    private mutating func markChanged(_ id: PeerID, now: Moment) {
        for other in peers.keys { markChanged(id, for: other, now: now) }
    }

    private mutating func markChanged(_ id: PeerID, for other: PeerID, now: Moment) {
        guard other != id, peers[other]?.presence != nil else { return }
        peers[other]?.pending.insert(id)
        flushSoon(other, now: now)
    }

    // MARK: Sending

    /// Returns the state of another peer that a peer has to know; nil if it need not know the other one.
    private func stateToSend(to id: PeerID, about other: PeerID) -> SentState? {
        guard id != other, let mine = peers[id]?.presence, let entry = peers[other],
            let theirs = entry.presence
        else { return nil }
        let isMesh = policy.isMesh && mine.isMesh && theirs.isMesh
        let isCarried = mine.acceptsRelays && theirs.acceptsRelays && policy.carries(id, other)
        guard isMesh || isCarried else { return nil }
        return SentState(
            membership: .init(version: entry.version, isMesh: isMesh, isCarried: isCarried),
            path: mine.wantsPaths ? entry.path : nil)
    }

    private mutating func flushSoon(_ id: PeerID, now: Moment) {
        if peers[id]?.takesRecords == true { flush(id, at: now + Self.gatheringTime) }
    }

    private mutating func flush(_ id: PeerID, at moment: Moment) {
        guard let planned = peers[id]?.flushAt, moment < planned else { return }
        peers[id]?.flushAt = moment
        nextFlush = min(nextFlush, moment)
    }

    /// Returns the peers whose flush is due. The caller has to flush them all.
    package mutating func peersToFlush(now: Moment) -> [PeerID] {
        guard nextFlush <= now else { return [] }
        var due: [PeerID] = []
        nextFlush = .never
        for (id, entry) in peers {
            if entry.flushAt <= now { due.append(id) } else { nextFlush = min(nextFlush, entry.flushAt) }
        }
        return due.sorted()
    }

    /// Sends the peer's records while there is room. The rest waits for a later flush.
    package mutating func flush(_ id: PeerID, now: Moment, _ send: ([UInt8]) -> KindMessageSending) {
        peers[id]?.flushAt = .never
        guard peers[id]?.takesRecords == true else { return }
        while let entry = peers[id] {
            var batch = Batch()
            let presence = presence(for: id, entry)
            if let presence, presence != entry.sentPresence { batch.add(.here(presence)) }
            var taken = 0
            while taken < entry.outgoingRecords.count, batch.hasRoom {
                batch.add(entry.outgoingRecords[taken])
                taken += 1
            }
            var settled: [(PeerID, SentState?)] = []
            if entry.presence != nil {
                for other in entry.pending.sorted() where batch.hasRoom {
                    let due = stateToSend(to: id, about: other)
                    for record in records(of: other, due, after: entry.sent[other]) { batch.add(record) }
                    settled.append((other, due))
                }
            }
            if !batch.bytes.isEmpty {
                switch send(batch.bytes) {
                case .sent: break
                case .full: return flushSoon(id, now: now)
                case .unsupported:
                    peers[id]?.takesRecords = false
                    return
                }
            }
            peers[id]?.sentPresence = presence
            peers[id]?.outgoingRecords.removeFirst(taken)
            for (other, due) in settled {
                peers[id]?.pending.remove(other)
                peers[id]?.sent[other] = due
            }
            guard !batch.hasRoom else { return }
        }
    }

    /// Returns the records that change the state sent before to the one that is due.
    private func records(of id: PeerID, _ due: SentState?, after before: SentState?) -> [IntroductionRecord] {
        guard let due, let advertisement = peers[id]?.presence?.advertisement else {
            return before == nil ? [] : [.gone(id)]
        }
        var records: [IntroductionRecord] = []
        if due.membership != before?.membership {
            let (isMesh, isCarried) = (due.membership.isMesh, due.membership.isCarried)
            records.append(
                .member(MemberReport(isMesh: isMesh, isCarried: isCarried, advertisement: advertisement)))
        }
        if let path = due.path, path != before?.path { records.append(.path(id, path)) }
        return records
    }

    /// Records for one message.
    private struct Batch {
        var bytes: [UInt8] = []
        var hasRoom: Bool { bytes.count < IntroductionTable.batch }
        mutating func add(_ record: IntroductionRecord) { bytes += record.bytes }
    }

    // MARK: Receiving

    /// Takes a record from a peer.
    package mutating func receive(
        _ record: IntroductionRecord, from id: PeerID, now: Moment
    ) throws(WireError) {
        guard let entry = peers[id] else { return }
        switch record {
        case .here(let presence):
            guard presence.advertisement.peer == id,
                presence.advertisement.service == own.advertisement.service
            else { throw .malformed("the presence of another peer") }
            let isFirst = entry.presence == nil
            peers[id]?.presence = presence
            lastVersion += 1
            peers[id]?.version = lastVersion
            // The session may have no other source of its name and info.
            introduce(presence.advertisement, at: shown[id] ?? [], isByItself: true)
            if isFirst || entry.presence?.isMesh != presence.isMesh {
                for other in reportedPeers.ids(reportedBy: id) { updatePlan(for: other, now: now) }
            }
            let all = peers.keys
            peers[id]?.pending.formUnion(all)
            flush(id, at: now)
            markChanged(id, now: now)
        case .member(let report):
            let advertisement = report.advertisement
            guard advertisement.service == own.advertisement.service else {
                throw .malformed("a member of another service")
            }
            guard advertisement.peer != identity.peerID, advertisement.peer != id else { return }
            try reportedPeers.note(report, by: id, limit: Self.mostReported)
            showRoutes(to: advertisement.peer)
            updatePlan(for: advertisement.peer, now: now)
        case .path(let other, let path):
            if policy.wantsPaths { reportedPeers.note(path, to: other, by: id) }
        case .gone(let other): removeReport(of: other, by: id, now: now)
        case .ask(let other): answer(id, about: other, now: now)
        case .introduction(let other, let addresses, let token):
            guard plan.introduced(other, by: id) else { return }
            direct[other] = addresses
            showRoutes(to: other)
            actions.append(.invite(other, introduction: token))
        }
    }

    private mutating func removeReport(of other: PeerID, by id: PeerID, now: Moment) {
        guard reportedPeers.remove(other, by: id) else { return }
        if !reportedPeers.contains(other) {
            left.remove(other)
            rejected.remove(other)
            if peers[other] == nil { direct[other] = nil }
        }
        showRoutes(to: other)
        updatePlan(for: other, now: now)
    }

    /// Introduces a peer to another one, if both are in the mesh.
    private mutating func answer(_ id: PeerID, about other: PeerID, now: Moment) {
        guard let entry = peers[id], stateToSend(to: id, about: other)?.membership.isMesh == true,
            let host = peers[other]?.presence, entry.outgoingRecords.count < Self.mostOutgoingRecords
        else { return }
        if let last = entry.answeredAt[other], now < last + Self.answerInterval { return }
        peers[id]?.answeredAt[other] = now
        guard let token = peers[other]?.tokens.make(by: identity, for: id, to: other, nonce: host.nonce)
        else { return }
        peers[id]?.outgoingRecords.append(.introduction(other, addresses: host.addresses, token: token.bytes))
        flush(id, at: now)
    }

    // MARK: The mesh

    private mutating func updatePlan(for id: PeerID, now: Moment) {
        let isMissing = peers[id] == nil || interrupted.contains(id) || relayed.contains(id)
        guard policy.isMesh, isMissing, !left.contains(id), !introducers(to: id).isEmpty,
            policy.refuses(id, reportedPeers.advertisement(of: id)) == nil
        else {
            return plan.forget(id)
        }
        // The side with the greater PeerID invites, and the other one only if it does not. A link that broke is likely
        // to come back along the routes that are known.
        let isFirst = identity.peerID > id && !interrupted.contains(id)
        // The peer may have invited this session through a carrier, so that this session has not asked for its
        // addresses yet.
        let pause =
            relayed.contains(id) && direct[id] != nil
            ? Self.relayedPause
            : isFirst && !relayed.contains(id) ? Self.firstInviterDelay : Self.secondInviterDelay
        plan.want(id, after: pause, now: now)
    }

    /// Asks for the introductions that are due.
    package mutating func timeArrived(now: Moment) {
        let due = plan.takeDue(now: now) { [self] in introducers(to: $0) }
        for (id, introducer) in due {
            peers[introducer]?.outgoingRecords.append(.ask(id))
            flush(introducer, at: now)
        }
    }

    /// An invitation after an introduction has ended.
    package mutating func invitationEnded(_ id: PeerID, hasFailed: Bool, now: Moment) {
        guard plan.ended(id, hasFailed: hasFailed, now: now) else { return }
        if hasFailed, peers[id] == nil {
            direct[id] = nil
            showRoutes(to: id)
        }
        if !hasFailed { updatePlan(for: id, now: now) }
    }

    /// The answer to an invitation.
    package enum Verdict: Equatable {
        /// The program decides.
        case program
        case accept
        case decline(String)
    }

    /// Decides about the invitation of a peer that shows an introduction.
    package mutating func verdict(on guest: PeerID, introduction: [UInt8]) -> Verdict {
        guard policy.isMesh, !introduction.isEmpty else { return .program }
        guard let token = try? IntroductionToken(reading: introduction), let introducer = token.introducer
        else { return .decline("the introduction cannot be read") }
        guard let entry = peers[introducer], entry.presence?.isMesh == true else {
            return .decline("the peer that has introduced it is not connected here")
        }
        if let reason = entry.tokens.refusal(of: token, for: guest, to: identity.peerID) {
            return .decline(reason)
        }
        guard !rejected.contains(guest) else { return .decline("this session has disconnected it") }
        if let reason = policy.refuses(guest, reportedPeers.advertisement(of: guest)) {
            return .decline(reason)
        }
        peers[introducer]?.tokens.noteUse(of: token)
        left.remove(guest)
        return .accept
    }
}
