import NighCore
import NighIntroductions

/// A session of a mesh whose peers say about each other whatever they like.
enum IntroductionTarget {
    /// The most invitations that a mesh has open at once, as docs/reference/LIMITS.md says.
    private static let mostInvitations = 8
    /// By PeerID, the greatest first, which asks for the others without waiting for them.
    private static let identities = (1...24).map { Identity.ephemeral(seed: $0) }.sorted {
        $0.peerID > $1.peerID
    }
    /// The session that is tested has conversations with some of the peers. The others are only spoken of.
    private static let own = identities[0]
    private static let peers = identities[1...3].map(\.peerID)
    private static let others = identities[4...].map(\.peerID)
    private static let nonce: UInt64 = 7

    /// What honest peers say to the session, by sender: one message for each occasion.
    private static let messages: [PeerID: [[UInt8]]] = {
        var result: [PeerID: [[UInt8]]] = [:]
        for introducer in identities[1...3] { result[introducer.peerID] = said(by: introducer) }
        return result
    }()
    private static let everything = messages.values.flatMap(\.self)
    /// The messages in which a peer introduces the session to another one, by introducer and that other one.
    private static let answers = messages.mapValues { messages in
        var answers: [PeerID: [UInt8]] = [:]
        for message in messages {
            for case .introduction(let peer, _, _) in records(in: message) { answers[peer] = message }
        }
        return answers
    }

    private static func records(in bytes: [UInt8]) -> [IntroductionRecord] {
        let records = try? bytes.withUnsafeBytes { bytes throws(WireError) in
            try IntroductionRecord.records(in: bytes)
        }
        return records ?? []
    }

    /// Whether an input reached what it is about.
    struct Reach {
        var invitations = 0
        var accepted = 0
        /// Paths of which peers told.
        var paths = 0
    }

    /// Every session asks what the conversations of the others run over.
    private static func table(_ identity: Identity) -> IntroductionTable {
        let advertisement = Advertisement(
            service: "mesh", peer: identity.peerID, name: DisplayName(fitting: identity.peerID.short))
        let policy = IntroductionTable.Policy(
            isMesh: true, acceptsRelays: { _ in true }, carries: { _, _ in true }, wantsPaths: true)
        return IntroductionTable(identity, advertisement, policy, seed: 1)
    }

    /// What a peer says that knows all others, is asked about each of them, and loses them.
    private static func said(by introducer: Identity) -> [[UInt8]] {
        var table = table(introducer)
        var now = Moment(nanoseconds: 0)
        var result: [[UInt8]] = []
        func flush(_ peer: PeerID) -> [[UInt8]] {
            var sent: [[UInt8]] = []
            table.flush(peer, now: now) {
                sent.append($0)
                return .sent
            }
            return sent
        }
        let (known, me) = (identities.filter { $0 != introducer }, introducer.peerID)
        for identity in known {
            table.connected(identity.peerID, nonce: nonce, now: now)
            _ = identity == own ? () : hear(presence(of: identity, to: me), identity.peerID, &table, now)
        }
        result += flush(own.peerID)
        hear(presence(of: own, to: me), own.peerID, &table, now)
        result += flush(own.peerID)
        for (index, peer) in known.map(\.peerID).enumerated() {
            let isCarried = index.isMultiple(of: 3)
            let path = ConversationPath.over(
                scheme: isCarried ? "via" : "memory", carrier: isCarried ? known[index].peerID : nil)
            table.notePath(of: peer, path, now: now)
        }
        now = now + .seconds(1)
        result += flush(own.peerID)
        for peer in known.map(\.peerID) where peer != own.peerID {
            now = now + .seconds(1)
            try? table.receive(.ask(peer), from: own.peerID, now: now)
            result += flush(own.peerID)
        }
        for peer in known.map(\.peerID) where peer != own.peerID {
            table.disconnected(peer, by: .otherSide, now: now)
            result += flush(own.peerID)
        }
        return result
    }

    /// What a session says of itself to a peer.
    private static func presence(of identity: Identity, to peer: PeerID) -> [UInt8] {
        var table = table(identity)
        table.connected(peer, nonce: nonce, now: Moment(nanoseconds: 0))
        var bytes: [UInt8] = []
        table.flush(peer, now: Moment(nanoseconds: 0)) {
            bytes = $0
            return .sent
        }
        return bytes
    }

    private static func hear(
        _ bytes: [UInt8], _ peer: PeerID, _ table: inout IntroductionTable, _ now: Moment
    ) {
        for record in records(in: bytes) { try? table.receive(record, from: peer, now: now) }
    }

    // MARK: An input

    /// A session, the time, and its invitations that are not answered.
    private struct Scene {
        var table = IntroductionTarget.table(own)
        var now = Moment(nanoseconds: 0)
        var invited: Set<PeerID> = []
        /// The questions that the session has asked, and those whom it has asked.
        var questions: [(of: PeerID, about: PeerID)] = []
        var reach = Reach()
        /// Whether peers take nothing, when there is no room for them.
        var isOneWay = false
    }

    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Reach {
        var scene = Scene()
        scene.isOneWay = mutator.oneIn(4)
        for peer in peers {
            scene.table.connected(peer, nonce: nonce, now: scene.now)
            guard mutator.oneIn(2) else { continue }
            // That it is there, and whom it knows.
            for message in (messages[peer] ?? []).prefix(2) { try receive(message, peer, &scene) }
            try work(&scene, hasRoom: true)
        }
        for _ in 0...mutator.number(below: 60) {
            let peer = mutator.pick(peers)
            switch mutator.number(below: 12) {
            case 0: if mutator.oneIn(3) { change(peer, &scene, &mutator) }
            case 1, 2: scene.now = scene.now + .milliseconds(Int64(mutator.pick([1, 30, 500, 4_000])))
            case 3: try endInvitation(&scene, &mutator)
            case 4: try show(&scene, &mutator)
            case 5, 6: try receive(mutator.pick(messages[peer] ?? []), peer, &scene)
            case 7, 8:
                guard let question = scene.questions.popLast(),
                    let answer = answers[question.of]?[question.about]
                else { continue }
                try receive(mutator.perhapsChanged(answer, with: everything), question.of, &scene)
            default:
                let message = mutator.pick(messages[peer] ?? [])
                try receive(mutator.perhapsChanged(message, with: everything), peer, &scene)
            }
            try work(&scene, hasRoom: !mutator.oneIn(5))
            try check(&scene)
        }
        return scene.reach
    }

    private static func change(_ peer: PeerID, _ scene: inout Scene, _ mutator: inout Mutator) {
        if mutator.oneIn(2) {
            scene.table.noteLink(of: peer, isThere: mutator.oneIn(2), now: scene.now)
        } else {
            scene.table.disconnected(
                peer, by: mutator.pick([.thisSide, .otherSide, .nobody]), now: scene.now)
            if mutator.oneIn(2) { scene.table.connected(peer, nonce: nonce, now: scene.now) }
        }
    }

    private static func receive(_ bytes: [UInt8], _ peer: PeerID, _ scene: inout Scene) throws {
        let now = scene.now
        do throws(WireError) {
            let records = try ByteSlice(bytes).withUnsafeBytes { bytes throws(WireError) in
                try IntroductionRecord.records(in: bytes)
            }
            for record in records { try scene.table.receive(record, from: peer, now: now) }
        } catch {
            if error.message.isEmpty { throw Finding("a record is refused without a reason") }
            // It comes back, and begins anew.
            scene.table.disconnected(peer, by: .otherSide, now: now)
            scene.table.connected(peer, nonce: nonce, now: now)
        }
    }

    /// Ends one of the invitations, or one that there is not.
    private static func endInvitation(_ scene: inout Scene, _ mutator: inout Mutator) throws {
        let peer = mutator.oneIn(4) ? mutator.pick(others) : mutator.pick(scene.invited.sorted() + peers)
        let hasFailed = !mutator.oneIn(4)
        if !hasFailed { scene.table.connected(peer, nonce: nonce, now: scene.now) }
        scene.invited.remove(peer)
        scene.table.invitationEnded(peer, hasFailed: hasFailed, now: scene.now)
        // It does not stay, so that it can be spoken of again.
        if !hasFailed {
            scene.table.disconnected(
                peer, by: mutator.pick([.thisSide, .otherSide, .nobody]), now: scene.now)
        }
    }

    /// A peer invites the session with a token, which may be of another guest, another number or changed.
    private static func show(_ scene: inout Scene, _ mutator: inout Mutator) throws {
        let (guest, introducer) = (mutator.pick(others), identities[1 + mutator.number(below: 3)])
        let number = UInt64(mutator.pick([0, 1, 2, 3, 2_000, -1]) & Int.max)
        let genuine = IntroductionToken(
            by: introducer, guest: guest, host: own.peerID, nonce: nonce, number: number
        ).bytes
        let token = mutator.perhapsChanged(genuine, with: [genuine])
        guard scene.table.verdict(on: guest, introduction: token) == .accept else { return }
        scene.reach.accepted += 1
        if token != genuine { throw Finding("a changed token is accepted") }
        if scene.table.verdict(on: guest, introduction: token) == .accept {
            throw Finding("a token is accepted twice")
        }
        if !scene.table.connectedPeers.contains(introducer.peerID) {
            throw Finding("a token of a peer that is not connected is accepted")
        }
    }

    /// Does what is due, until nothing is.
    private static func work(_ scene: inout Scene, hasRoom: Bool) throws {
        var turns = 0
        repeat {
            scene.table.timeArrived(now: scene.now)
            for action in scene.table.takeActions() { try carryOut(action, &scene) }
            for peer in scene.table.peersToFlush(now: scene.now) {
                var sent: [[UInt8]] = []
                scene.table.flush(peer, now: scene.now) {
                    sent.append($0)
                    return hasRoom ? .sent : scene.isOneWay ? .unsupported : .full
                }
                for message in sent {
                    if message.count > 16 << 10 { throw Finding("a message of \(message.count) bytes") }
                    guard hasRoom else { continue }
                    for case .ask(let about) in records(in: message) { scene.questions.append((peer, about)) }
                }
            }
            turns += 1
            if turns > 4 { throw Finding("a deadline that does not pass") }
        } while scene.table.deadline <= scene.now
    }

    private static func carryOut(_ action: IntroductionTable.Action, _ scene: inout Scene) throws {
        let subject: PeerID
        switch action {
        case .introduce(let peer): subject = peer.id
        case .invite(let peer, let introduction):
            subject = peer
            scene.reach.invitations += 1
            if introduction.count > 512 { throw Finding("an introduction of \(introduction.count) bytes") }
            scene.invited.insert(peer)
        case .forget(let peer): subject = peer
        }
        if subject == own.peerID { throw Finding("an action for the session itself: \(action)") }
    }

    private static func check(_ scene: inout Scene) throws {
        if scene.invited.count > mostInvitations {
            throw Finding("\(scene.invited.count) invitations at once")
        }
        let connected = scene.table.connectedPeers
        for peer in peers + others where scene.table.acquaintances(of: peer).count > 0 {
            if !connected.contains(peer) { throw Finding("listings of a peer that is not connected") }
            let acquaintances = scene.table.acquaintances(of: peer)
            if acquaintances.count > IntroductionTable.mostListed {
                throw Finding("more listings than are allowed")
            }
            scene.reach.paths += acquaintances.count { $0.path != nil }
            for case .over(let scheme, _)? in acquaintances.map(\.path) where !(1...15).contains(scheme.count)
            {
                throw Finding("a path over \"\(scheme)\"")
            }
        }
    }
}
