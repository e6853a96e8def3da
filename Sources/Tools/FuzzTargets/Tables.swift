import NighCore
import NighGroups
import NighIntroductions

/// Records that peers send about groups.
enum GroupsTarget {
    static func run(_ input: inout Input) throws {
        let names = ["red", "blue", "Küche"].map { GroupName($0).unsafelyUnwrapped }
        let peers = Decoders.identities.map(\.peerID)
        let records = [
            GroupRecord.join(number: 1, name: names[0], context: []).bytes,
            GroupRecord.join(number: 2, name: names[1], context: [1, 2, 3]).bytes,
            GroupRecord.join(number: 3, name: names[2], context: []).bytes,
            GroupRecord.leave(number: 1).bytes, GroupRecord.refuse(number: 1, reason: "full").bytes,
            GroupRecord.message(number: 1).bytes + [7],
        ]
        var table = GroupTable()
        for peer in peers { table.connected(peer) }
        while !input.isAtEnd {
            let name = input.pick(names), peer = input.pick(peers)
            switch input.number(below: 8) {
            case 0:
                let isRefused = !input.isUsual(oneIn: 3)
                // It may have joined already.
                try? table.join(name, context: []) { _, _ in isRefused ? "no" : nil }
            case 1: table.leave(name)
            case 2: table.disconnected(peer)
            case 3: table.connected(peer)
            case 4:
                let hasRoom = input.isUsual(oneIn: 4)
                _ = table.flush(peer) { _ in hasRoom ? .sent : .full }
            default:
                let bytes = input.isUsual() ? input.edited(input.pick(records)) : input.content()
                let isAccepted: Void? = try accepted(bytes) { bytes throws(WireError) in
                    guard let record = try GroupRecord(reading: bytes) else { return }
                    _ = try table.receive(record, from: peer)
                }
                // It comes back, and begins anew.
                if isAccepted == nil { table.connected(peer) }
            }
            let events = table.takeEvents()
            let connected = Set(table.connectedPeers)
            for name in table.groups {
                try expect(connected.isSuperset(of: table.members(of: name)), "a member is not connected")
            }
            for case .memberLeft(let peer, let name) in events.suffix(1) {
                try expect(!table.members(of: name).contains(peer), "a member that has left is there")
            }
        }
    }
}

/// A session of a mesh. Its peers may claim anything about each other.
struct IntroductionsTarget {
    /// The most invitations that a mesh has open at once, as docs/reference/LIMITS.md says.
    private static let mostInvitations = 8
    private static let nonce: UInt64 = 7
    /// Sorted by PeerID, the greatest first. The greatest one asks for the others and does not wait for them.
    private static let identities = (1...14).map { Identity.ephemeral(seed: $0) }.sorted {
        $0.peerID > $1.peerID
    }
    /// The session under test has conversations with some of the peers. It only gets reports of the others.
    private static let own = identities[0]
    private static let peers = identities[1...3].map(\.peerID)
    private static let others = identities[4...].map(\.peerID)
    /// The messages of honest peers to the session, by sender: one for each occasion.
    private static let messages = Dictionary(
        uniqueKeysWithValues: identities[1...3].map { ($0.peerID, messages(by: $0)) })

    private static func records(in bytes: [UInt8]) throws(WireError) -> [IntroductionRecord] {
        try ByteSlice(bytes).withUnsafeBytes { bytes throws(WireError) in
            try IntroductionRecord.records(in: bytes)
        }
    }

    /// Every session asks what the conversations of the others run over.
    private static func table(_ identity: Identity) -> IntroductionTable {
        let advertisement = Advertisement(
            service: "mesh", peer: identity.peerID, name: DisplayName(fitting: identity.peerID.short))
        let policy = IntroductionTable.Policy(
            isMesh: true, acceptsRelays: { _ in true }, carries: { _, _ in true }, wantsPaths: true)
        return IntroductionTable(identity, advertisement, policy, seed: 1)
    }

    private static func flush(_ table: inout IntroductionTable, _ peer: PeerID, _ now: Moment) -> [[UInt8]] {
        var sent: [[UInt8]] = []
        table.flush(peer, now: now) {
            sent.append($0)
            return .sent
        }
        return sent
    }

    /// The messages of a peer that knows all others, is asked about each of them, and loses them.
    private static func messages(by introducer: Identity) -> [[UInt8]] {
        var table = table(introducer)
        var now = Moment(nanoseconds: 0)
        func hear(_ identity: Identity) {
            var other = Self.table(identity)
            other.connected(introducer.peerID, nonce: nonce, now: now)
            for record in flush(&other, introducer.peerID, now).flatMap({ (try? records(in: $0)) ?? [] }) {
                try? table.receive(record, from: identity.peerID, now: now)
            }
        }
        let known = identities.filter { $0 != introducer }
        for identity in known {
            table.connected(identity.peerID, nonce: nonce, now: now)
            if identity != own { hear(identity) }
        }
        var result = flush(&table, own.peerID, now)
        hear(own)
        result += flush(&table, own.peerID, now)
        for (index, peer) in known.map(\.peerID).enumerated() {
            let isCarried = index.isMultiple(of: 3)
            let path = ConversationPath.over(
                scheme: isCarried ? "via" : "memory", carrier: isCarried ? known[index].peerID : nil)
            table.notePath(of: peer, path, now: now)
        }
        for peer in known.map(\.peerID) where peer != own.peerID {
            now = now + .seconds(1)
            try? table.receive(.ask(peer), from: own.peerID, now: now)
            result += flush(&table, own.peerID, now)
        }
        for peer in known.map(\.peerID) where peer != own.peerID {
            table.disconnected(peer, by: .otherSide, now: now)
            result += flush(&table, own.peerID, now)
        }
        return result
    }

    private var table = Self.table(own)
    private var now = Moment(nanoseconds: 0)
    /// The invitations that are not answered.
    private var invited: Set<PeerID> = []
    /// The questions that the session has asked, and the peers that it has asked.
    private var questions: [(of: PeerID, about: PeerID)] = []
    /// Whether peers take nothing, when there is no room for them.
    private var isOneWay = false

    static func run(_ input: inout Input) throws {
        var target = IntroductionsTarget()
        target.isOneWay = !input.isUsual()
        for peer in peers {
            target.table.connected(peer, nonce: nonce, now: target.now)
            guard input.isUsual() else { continue }
            // The peer reports itself, and the peers that it knows.
            for message in (messages[peer] ?? []).prefix(2) { try target.receive(message, peer) }
            try target.work(hasRoom: true)
        }
        while !input.isAtEnd {
            try target.step(&input)
            try target.work(hasRoom: input.isUsual(oneIn: 5))
            try target.check()
        }
    }

    private mutating func step(_ input: inout Input) throws {
        let peer = input.pick(Self.peers)
        let messages = Self.messages[peer] ?? []
        switch input.number(below: 12) {
        case 0: table.noteLink(of: peer, isThere: input.isUsual(), now: now)
        case 1: leaveAndReturn(peer, by: &input, returns: input.isUsual())
        case 2, 3: now = now + .milliseconds(input.pick([1, 30, 500, 4_000]))
        case 4: endInvitation(&input)
        case 5: try show(&input)
        case 6: try receive(input.content(), peer)
        case 7, 8:
            guard let question = questions.popLast() else { return }
            let answer = Self.messages[question.of]?.first { message in
                let records = (try? Self.records(in: message)) ?? []
                return records.contains {
                    if case .introduction(question.about, _, _) = $0 { true } else { false }
                }
            }
            if let answer { try receive(input.edited(answer), question.of) }
        default: try receive(input.edited(input.pick(messages)), peer)
        }
    }

    private mutating func leaveAndReturn(_ peer: PeerID, by input: inout Input, returns: Bool) {
        table.disconnected(peer, by: input.pick([.thisSide, .otherSide, .nobody]), now: now)
        if returns { table.connected(peer, nonce: Self.nonce, now: now) }
    }

    private mutating func receive(_ bytes: [UInt8], _ peer: PeerID) throws {
        let now = now
        let isAccepted: Void? = try accepted { () throws(WireError) in
            for record in try Self.records(in: bytes) { try table.receive(record, from: peer, now: now) }
        }
        guard isAccepted == nil else { return }
        // It comes back, and begins anew.
        table.disconnected(peer, by: .otherSide, now: now)
        table.connected(peer, nonce: Self.nonce, now: now)
    }

    /// Ends one of the invitations, or one that does not exist.
    private mutating func endInvitation(_ input: inout Input) {
        let peer =
            input.isUsual(oneIn: 4) ? input.pick(invited.sorted() + Self.peers) : input.pick(Self.others)
        let hasFailed = input.isUsual()
        if !hasFailed { table.connected(peer, nonce: Self.nonce, now: now) }
        invited.remove(peer)
        table.invitationEnded(peer, hasFailed: hasFailed, now: now)
        // It does not stay, so that it can be spoken of again.
        if !hasFailed { leaveAndReturn(peer, by: &input, returns: false) }
    }

    /// A peer invites the session with a token, which may be of another guest, another number or changed.
    private mutating func show(_ input: inout Input) throws {
        let (guest, introducer) = (input.pick(Self.others), Self.identities[1 + input.number(below: 3)])
        let number = input.isUsual() ? UInt64(input.number(below: 4)) : input.number(UInt64.self) >> 1
        let genuine = IntroductionToken(
            by: introducer, guest: guest, host: Self.own.peerID, nonce: Self.nonce, number: number
        ).bytes
        let token = input.edited(genuine)
        guard table.verdict(on: guest, introduction: token) == .accept else { return }
        try expect(token == genuine, "a changed token is accepted")
        try expect(table.verdict(on: guest, introduction: token) != .accept, "a token is accepted twice")
        try expect(table.connectedPeers.contains(introducer.peerID), "a token of a stranger is accepted")
    }

    /// Carries out the work that is due, until there is none.
    private mutating func work(hasRoom: Bool) throws {
        var turns = 0
        repeat {
            table.timeArrived(now: now)
            for action in table.takeActions() { try carryOut(action) }
            for peer in table.peersToFlush(now: now) {
                var sent: [[UInt8]] = []
                table.flush(peer, now: now) {
                    sent.append($0)
                    return hasRoom ? .sent : isOneWay ? .unsupported : .full
                }
                for message in sent {
                    try expect(message.count <= 16 << 10, "a message of \(message.count) bytes")
                    guard hasRoom else { continue }
                    for case .ask(let about) in try Self.records(in: message) {
                        questions.append((peer, about))
                    }
                }
            }
            turns += 1
            try expect(turns <= 4, "a deadline that does not pass")
        } while table.deadline <= now
    }

    private mutating func carryOut(_ action: IntroductionTable.Action) throws {
        let subject: PeerID
        switch action {
        case .introduce(let peer): subject = peer.id
        case .invite(let peer, let introduction):
            subject = peer
            try expect(introduction.count <= 512, "an introduction of \(introduction.count) bytes")
            invited.insert(peer)
        case .forget(let peer): subject = peer
        }
        try expect(subject != Self.own.peerID, "an action for the session itself: \(action)")
    }

    private func check() throws {
        try expect(invited.count <= Self.mostInvitations, "\(invited.count) invitations at once")
        let connected = table.connectedPeers
        for peer in Self.peers + Self.others {
            let reported = table.peers(reportedBy: peer)
            try expect(
                reported.isEmpty || connected.contains(peer), "listings of a peer that is not there")
            try expect(reported.count <= IntroductionTable.mostReported, "more listings than are allowed")
            for case .over(let scheme, _)? in reported.map(\.path) {
                try expect((1...15).contains(scheme.count), "a path over \"\(scheme)\"")
            }
        }
    }
}
