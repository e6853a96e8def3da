import NighCore
import NighRelays

/// What a session tells its peers of each other, and what they have told it.
///
/// What has to be told follows from the table, so nothing queues while a peer has no room for it. Whom a session of a
/// mesh has to be connected to follows from what was heard; `MeshPlan` decides when. A value without I/O or clock:
/// `flush` sends what a peer has to be told, and `takeActions` returns what else is to be done.
package struct IntroductionTable {
    /// What is to be done.
    package enum Action: Equatable {
        /// Make the peer known to the session, at these addresses and no others.
        case introduce(IntroducedPeer)
        /// Invite the peer, and show it the introduction.
        case invite(PeerID, introduction: [UInt8])
        /// Forget the addresses at which others have said that the peer can be reached.
        case forget(PeerID)
    }

    /// What this session has told a peer about another one.
    private struct Told: Equatable {
        struct Membership: Equatable {
            var version: UInt64
            var isMesh: Bool
            var isCarried: Bool
        }

        var membership: Membership
        /// What the conversation with the other one runs over; nil if the peer does not ask for that.
        var path: ConversationPath?
    }

    /// A peer with which there is a conversation.
    private struct Entry {
        var tokens: TokenLedger
        /// What the conversation runs over.
        var path = ConversationPath.interrupted
        var toldPresence: Presence?
        /// What the peer has said of itself.
        var presence: Presence?
        /// Counts what all peers have said of themselves: the number of the last time that this one has.
        var version: UInt64 = 0
        var told: [PeerID: Told] = [:]
        /// Those of whom the peer may have to be told something.
        var pending: Set<PeerID> = []
        /// What it is sent besides: questions and answers.
        var letters: [IntroductionRecord] = []
        var flushAt = Moment.never
        /// When the peer was last introduced to another one.
        var answeredAt: [PeerID: Moment] = [:]
        var takesRecords = true
    }

    /// The most peers that one peer can name.
    package static let mostListed = 1_024
    /// The most questions and answers that wait for one peer.
    private static let mostLetters = 256
    /// The bytes of records that are sent in one message.
    private static let batch = 8 << 10
    /// The time for which news wait for more of them.
    package static let gatheringTime = Moment.Span.milliseconds(50)
    /// The least time between two introductions of the same two peers.
    private static let answerInterval = Moment.Span.milliseconds(500)
    /// How long the peer with the smaller PeerID waits for the other one's invitation.
    package static let courtesy = Moment.Span.seconds(2)
    /// The pause before a peer is asked again for the addresses of one that is connected through another peer only.
    package static let relayedPause = Moment.Span.seconds(30)
    /// The most carriers through which one peer is dialled.
    private static let mostCarriers = 2
    /// How long it takes a healthy pair to find each other before both are asked for.
    private static let haste = Moment.Span.milliseconds(20)

    private let identity: Identity
    private let policy: Policy
    private var own: (advertisement: Advertisement, addresses: [TransportAddress])
    private var peers: [PeerID: Entry] = [:]
    private var hearsay = Hearsay()
    /// The peers of which somebody tells that have ended their conversation with this session, or with which it has.
    /// They are not asked for.
    private var left: Set<PeerID> = []
    /// Those of them that this session has left. They are not accepted either.
    private var turnedAway: Set<PeerID> = []
    private var lastVersion: UInt64 = 0
    /// The peers to which no link leads now, although there is a conversation.
    private var interrupted: Set<PeerID> = []
    /// The peers that are connected through another peer only.
    private var relayed: Set<PeerID> = []
    /// Where peers can be reached directly, as introducers have said.
    private var direct: [PeerID: [TransportAddress]] = [:]
    /// The addresses at which the session knows peers because of this table.
    private var shown: [PeerID: [TransportAddress]] = [:]
    /// No peer has to be told something before this moment.
    private var nextFlush = Moment.never
    private var plan: MeshPlan
    private var actions: [Action] = []

    /// - Parameter seed: decides about the pauses.
    package init(
        _ identity: Identity, _ advertisement: Advertisement, _ policy: Policy, seed: UInt64
    ) {
        self.identity = identity
        self.policy = policy
        own = (advertisement, [])
        plan = MeshPlan(seed: seed)
    }

    // MARK: What is known

    /// The peers with which there is a conversation, by PeerID.
    package var connectedPeers: [PeerID] { peers.keys.sorted() }

    /// Whether the session has a conversation with this peer in which there may be introductions.
    package func isConnected(to id: PeerID) -> Bool { peers[id] != nil }

    /// Whether both this session and a connected peer are in the mesh.
    package func isInMesh(with id: PeerID) -> Bool { policy.isMesh && peers[id]?.presence?.isMesh == true }

    /// Whom a peer has a conversation with, as it says, by PeerID.
    package func acquaintances(of id: PeerID) -> [Acquaintance] { hearsay.acquaintances(of: id) }

    /// The peers that could introduce this session to this one, by PeerID.
    package func introducers(to id: PeerID) -> [PeerID] {
        hearsay.members(thatKnow: id).filter { introducer in
            guard let entry = peers[introducer] else { return false }
            return entry.takesRecords && entry.presence?.isMesh == true
        }
    }

    /// Returns what is to be done, in this order.
    package mutating func takeActions() -> [Action] {
        defer { actions.removeAll() }
        return actions
    }

    /// When `timeArrived` must be called next. It may turn out to be early, but never late.
    package var deadline: Moment { min(plan.deadline, nextFlush) }

    // MARK: This session

    /// Takes what this session advertises and where it can be reached from now on.
    package mutating func setOwn(
        _ advertisement: Advertisement, at addresses: [TransportAddress], now: Moment
    ) {
        own = (advertisement, Self.usable(addresses))
        for id in peers.keys { flushSoon(id, now: now) }
    }

    /// Returns addresses that mean something on other machines too, of each scheme in turn.
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
        guard policy.isMesh || acceptsRelays || entry.toldPresence != nil else { return nil }
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
        turnedAway.remove(id)
        interrupted.remove(id)
        plan.forget(id)
        flushSoon(id, now: now)
    }

    /// The link of the conversation broke, or there is one again.
    package mutating func noteLink(of id: PeerID, isThere: Bool, now: Moment) {
        guard peers[id] != nil else { return }
        if isThere { interrupted.remove(id) } else { interrupted.insert(id) }
        considerWanting(id, now: now)
    }

    /// The conversation runs over this now.
    package mutating func notePath(of id: PeerID, _ path: ConversationPath, now: Moment) {
        guard let known = peers[id]?.path, known != path else { return }
        peers[id]?.path = path
        for other in peers.keys where peers[other]?.presence?.wantsPaths == true {
            noteNews(of: id, for: other, now: now)
        }
        // Without a link nothing is known of the next one.
        guard case .over(let scheme, _) = path else { return }
        let isRelayed = scheme == RelayAddress.scheme
        guard relayed.contains(id) != isRelayed else { return }
        if isRelayed { relayed.insert(id) } else { relayed.remove(id) }
        considerWanting(id, now: now)
    }

    /// Whether this session is paired with the peer may have changed, and with it what it carries to or from the peer,
    /// whether it reaches others through the peer, and whether the peer may be in its mesh.
    package mutating func reconsider(_ id: PeerID, now: Moment) {
        flushSoon(id, now: now)
        for other in hearsay.subjects(of: id) { showRoutes(to: other) }
        considerWanting(id, now: now)
        guard peers[id]?.presence != nil else { return }
        noteNews(of: id, now: now)
        let all = peers.keys
        peers[id]?.pending.formUnion(all)
    }

    /// Who wanted a conversation to end.
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
        for other in hearsay.subjects(of: id) { unlist(other, by: id, now: now) }
        noteNews(of: id, now: now)
        for other in peers.keys { peers[other]?.answeredAt[id] = nil }
        if departure != .nobody, hearsay.tells(of: id) {
            left.insert(id)
            if departure == .thisSide { turnedAway.insert(id) }
        }
        showRoutes(to: id)
        considerWanting(id, now: now)
    }

    /// Tells the session where the peer can be reached, if that has changed: through others, and directly.
    private mutating func showRoutes(to id: PeerID) {
        // A peer that this session does not let carry pipes may say what it likes.
        let carriers = hearsay.carriers(of: id).filter(policy.acceptsRelays).prefix(Self.mostCarriers)
        let relays = carriers.map { RelayAddress(carrier: $0, peer: id).transportAddress }
        let addresses = relays + (direct[id] ?? [])
        guard addresses != shown[id] ?? [] else { return }
        shown[id] = addresses.isEmpty ? nil : addresses
        let own = peers[id]?.presence?.advertisement
        guard !addresses.isEmpty, let advertisement = own ?? hearsay.advertisement(of: id) else {
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

    private mutating func noteNews(of id: PeerID, now: Moment) {
        for other in peers.keys { noteNews(of: id, for: other, now: now) }
    }

    private mutating func noteNews(of id: PeerID, for other: PeerID, now: Moment) {
        guard other != id, peers[other]?.presence != nil else { return }
        peers[other]?.pending.insert(id)
        flushSoon(other, now: now)
    }

    // MARK: Telling

    /// Returns what a peer has to be told of another one; nil if it need not know of it.
    private func telling(_ id: PeerID, of other: PeerID) -> Told? {
        guard id != other, let mine = peers[id]?.presence, let entry = peers[other],
            let theirs = entry.presence
        else { return nil }
        let isMesh = policy.isMesh && mine.isMesh && theirs.isMesh
        let isCarried = mine.acceptsRelays && theirs.acceptsRelays && policy.carries(id, other)
        guard isMesh || isCarried else { return nil }
        return Told(
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

    /// The peers that have to be told something now. Flush them all.
    package mutating func peersToFlush(now: Moment) -> [PeerID] {
        guard nextFlush <= now else { return [] }
        var due: [PeerID] = []
        nextFlush = .never
        for (id, entry) in peers {
            if entry.flushAt <= now { due.append(id) } else { nextFlush = min(nextFlush, entry.flushAt) }
        }
        return due.sorted()
    }

    /// Sends what the peer has to be told, for as long as there is room. What is left waits a little.
    package mutating func flush(_ id: PeerID, now: Moment, _ send: ([UInt8]) -> KindMessageSending) {
        peers[id]?.flushAt = .never
        guard peers[id]?.takesRecords == true else { return }
        while let entry = peers[id] {
            var batch = Batch()
            let presence = presence(for: id, entry)
            if let presence, presence != entry.toldPresence { batch.add(.here(presence)) }
            var letters = 0
            while letters < entry.letters.count, batch.hasRoom {
                batch.add(entry.letters[letters])
                letters += 1
            }
            var settled: [(PeerID, Told?)] = []
            if entry.presence != nil {
                for other in entry.pending.sorted() where batch.hasRoom {
                    let due = telling(id, of: other)
                    for record in records(of: other, due, after: entry.told[other]) { batch.add(record) }
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
            peers[id]?.toldPresence = presence
            peers[id]?.letters.removeFirst(letters)
            for (other, due) in settled {
                peers[id]?.pending.remove(other)
                peers[id]?.told[other] = due
            }
            guard !batch.hasRoom else { return }
        }
    }

    /// What has to be told about a peer, after what was told before.
    private func records(of id: PeerID, _ due: Told?, after before: Told?) -> [IntroductionRecord] {
        guard let due, let advertisement = peers[id]?.presence?.advertisement else {
            return before == nil ? [] : [.gone(id)]
        }
        var records: [IntroductionRecord] = []
        if due.membership != before?.membership {
            let (isMesh, isCarried) = (due.membership.isMesh, due.membership.isCarried)
            records.append(
                .member(Listing(isMesh: isMesh, isCarried: isCarried, advertisement: advertisement)))
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

    // MARK: Hearing

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
            // The session may have nobody else to learn its name and info from.
            introduce(presence.advertisement, at: shown[id] ?? [], isByItself: true)
            if isFirst || entry.presence?.isMesh != presence.isMesh {
                for other in hearsay.subjects(of: id) { considerWanting(other, now: now) }
            }
            let all = peers.keys
            peers[id]?.pending.formUnion(all)
            flush(id, at: now)
            noteNews(of: id, now: now)
        case .member(let listing):
            let advertisement = listing.advertisement
            guard advertisement.service == own.advertisement.service else {
                throw .malformed("a member of another service")
            }
            guard advertisement.peer != identity.peerID, advertisement.peer != id else { return }
            try hearsay.note(listing, by: id, limit: Self.mostListed)
            showRoutes(to: advertisement.peer)
            considerWanting(advertisement.peer, now: now)
        case .path(let other, let path):
            if policy.wantsPaths { hearsay.note(path, to: other, by: id) }
        case .gone(let other): unlist(other, by: id, now: now)
        case .ask(let other): answer(id, about: other, now: now)
        case .introduction(let other, let addresses, let token):
            guard plan.introduced(other, by: id) else { return }
            direct[other] = addresses
            showRoutes(to: other)
            actions.append(.invite(other, introduction: token))
        }
    }

    private mutating func unlist(_ other: PeerID, by id: PeerID, now: Moment) {
        guard hearsay.remove(other, by: id) else { return }
        if !hearsay.tells(of: other) {
            left.remove(other)
            turnedAway.remove(other)
            if peers[other] == nil { direct[other] = nil }
        }
        showRoutes(to: other)
        considerWanting(other, now: now)
    }

    /// Introduces a peer to another one, if both are in the mesh.
    private mutating func answer(_ id: PeerID, about other: PeerID, now: Moment) {
        guard let entry = peers[id], telling(id, of: other)?.membership.isMesh == true,
            let host = peers[other]?.presence, entry.letters.count < Self.mostLetters
        else { return }
        if let last = entry.answeredAt[other], now < last + Self.answerInterval { return }
        peers[id]?.answeredAt[other] = now
        guard let token = peers[other]?.tokens.make(by: identity, for: id, to: other, nonce: host.nonce)
        else { return }
        peers[id]?.letters.append(.introduction(other, addresses: host.addresses, token: token.bytes))
        flush(id, at: now)
    }

    // MARK: The mesh

    private mutating func considerWanting(_ id: PeerID, now: Moment) {
        let isMissing = peers[id] == nil || interrupted.contains(id) || relayed.contains(id)
        guard policy.isMesh, isMissing, !left.contains(id), !introducers(to: id).isEmpty,
            policy.refuses(id, hearsay.advertisement(of: id)) == nil
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
            ? Self.relayedPause : isFirst && !relayed.contains(id) ? Self.haste : Self.courtesy
        plan.want(id, after: pause, now: now)
    }

    /// Asks for what is due.
    package mutating func timeArrived(now: Moment) {
        let due = plan.takeDue(now: now) { [self] in introducers(to: $0) }
        for (id, introducer) in due {
            peers[introducer]?.letters.append(.ask(id))
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
        if !hasFailed { considerWanting(id, now: now) }
    }

    /// What is to be done with an invitation.
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
        guard !turnedAway.contains(guest) else { return .decline("this session has disconnected it") }
        if let reason = policy.refuses(guest, hearsay.advertisement(of: guest)) { return .decline(reason) }
        peers[introducer]?.tokens.noteUse(of: token)
        left.remove(guest)
        return .accept
    }
}
