import NighCore
@testable import NighIntroductions
import Testing

/// A table whose peers are played by a test.
///
/// The file is long because every rule of the table is tested on this one scene.
struct Scene {
    var table: IntroductionTable
    var now = Moment(nanoseconds: 0)
    /// The records that the table has sent, by receiver.
    var sent: [PeerID: [IntroductionRecord]] = [:]

    /// The greatest of all PeerIDs in the scene, so that it asks at once.
    static let identities = (0..<40).map { Identity.ephemeral(seed: UInt64($0)) }.sorted {
        $0.peerID > $1.peerID
    }
    static let own = identities[0]

    init(_ policy: IntroductionTable.Policy = .init(isMesh: true)) {
        table = IntroductionTable(Self.own, Self.advertisement(Self.own.peerID), policy, seed: 1)
    }

    static func peer(_ index: Int) -> PeerID { identities[index].peerID }

    static func advertisement(_ peer: PeerID) -> Advertisement {
        Advertisement(service: "mesh", peer: peer, name: DisplayName(fitting: peer.short))
    }

    static func member(_ peer: PeerID, isMesh: Bool = true, isCarried: Bool = false) -> IntroductionRecord {
        .member(MemberReport(isMesh: isMesh, isCarried: isCarried, advertisement: advertisement(peer)))
    }

    mutating func connect(_ peer: PeerID, nonce: UInt64 = 5) {
        table.connected(peer, nonce: nonce, now: now)
    }

    /// Connects a peer, which says of itself who it is.
    mutating func meet(
        _ peer: PeerID, isMesh: Bool = true, acceptsRelays: Bool = false, wantsPaths: Bool = false,
        nonce: UInt64 = 9, addresses: [String] = ["memory://there"]
    ) throws {
        connect(peer)
        let presence = Presence(
            isMesh: isMesh, acceptsRelays: acceptsRelays, wantsPaths: wantsPaths, nonce: nonce,
            advertisement: Self.advertisement(peer), addresses: addresses.map { TransportAddress($0)! })
        try receive(.here(presence), from: peer)
    }

    /// Answers everything that the table asks, with an introduction.
    mutating func answerAsks(by introducer: PeerID) throws {
        for ask in takeAsks() { try receiveIntroduction(of: ask.about, from: introducer) }
    }

    /// Lets a peer introduce another one, with a token of one byte.
    mutating func receiveIntroduction(
        of peer: PeerID, at address: String = "tcp://192.0.2.1:80", from introducer: PeerID
    ) throws {
        try receive(
            .introduction(peer, addresses: [TransportAddress(address)!], token: [1]), from: introducer)
    }

    /// The action that shows a peer at these addresses.
    static func introduce(_ peer: PeerID, at addresses: [String]) -> IntroductionTable.Action {
        .introduce(
            IntroducedPeer(
                id: peer, name: advertisement(peer).name, info: .none,
                addresses: addresses.map { TransportAddress($0)! }))
    }

    mutating func receive(_ record: IntroductionRecord, from peer: PeerID) throws {
        try table.receive(record, from: peer, now: now)
    }

    /// Lets time pass, and sends what is due. Returns what else is to be done.
    mutating func run(_ span: Moment.Span = .milliseconds(250)) -> [IntroductionTable.Action] {
        let end = now + span
        var actions = table.takeActions()
        while true {
            table.timeArrived(now: now)
            actions += table.takeActions()
            for peer in table.peersToFlush(now: now) {
                var records: [IntroductionRecord] = []
                table.flush(peer, now: now) { bytes in
                    records += bytes.withUnsafeBytes { (try? IntroductionRecord.records(in: $0)) ?? [] }
                    return .sent
                }
                if !records.isEmpty { sent[peer, default: []] += records }
            }
            guard table.deadline <= end else { break }
            now = max(table.deadline, now + .milliseconds(1))
        }
        now = end
        return actions
    }

    /// The peers for which somebody was asked, and forgets what was sent.
    mutating func takeAsks() -> [(of: PeerID, about: PeerID)] {
        defer { sent = [:] }
        return sent.flatMap { receiver, records in
            records.compactMap { if case .ask(let peer) = $0 { (receiver, peer) } else { nil } }
        }
    }
}

@Suite("A table of introductions") struct IntroductionTableTests {
    @Test func `tells each member of a mesh of the others, once, and of those who left`() throws {
        var scene = Scene()
        let (first, second) = (Scene.peer(1), Scene.peer(2))
        for peer in [first, second] { try scene.meet(peer) }
        _ = scene.run()
        #expect(scene.sent[first]?.contains(Scene.member(second)) == true)
        #expect(scene.sent[second]?.filter { $0 == Scene.member(first) }.count == 1)
        scene.sent = [:]
        _ = scene.run(.seconds(60))
        #expect(scene.sent.isEmpty)
        scene.table.disconnected(second, by: .otherSide, now: scene.now)
        _ = scene.run()
        #expect(scene.sent == [first: [.gone(second)]])
    }

    @Test func `tells nothing to peers that are not of the mesh, and of none`() throws {
        var scene = Scene()
        let (member, other, silent) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        try scene.meet(member)
        try scene.meet(other, isMesh: false)
        scene.connect(silent)
        _ = scene.run()
        for peer in [member, other, silent] {
            #expect(scene.sent[peer]?.contains(where: \.isMember) != true)
        }
    }

    @Test func `introduces two members with a token that only these can use, and nobody else`() throws {
        var scene = Scene()
        let (guest, host, other) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [guest, host] { try scene.meet(peer, nonce: 77, addresses: ["memory://host"]) }
        try scene.meet(other, isMesh: false)
        for wanted in [host, host, other, Scene.peer(9)] { try scene.receive(.ask(wanted), from: guest) }
        try scene.receive(.ask(host), from: other)
        _ = scene.run()
        let answers = scene.sent.flatMap { peer, records in
            records.compactMap {
                record -> (to: PeerID, about: PeerID, at: [TransportAddress], token: [UInt8])? in
                guard case .introduction(let about, let addresses, let token) = record else { return nil }
                return (peer, about, addresses, token)
            }
        }
        let answer = try #require(answers.first)
        #expect(answers.count == 1 && answer.to == guest && answer.about == host)
        #expect(answer.at == [TransportAddress("memory://host")!])
        let token = try IntroductionToken(reading: answer.token)
        #expect(token.introducer == Scene.own.peerID && token.nonce == 77)
        #expect(token.introduces(guest, to: host))
    }

    @Test func `accepts a token once, of a connected introducer, for its number and its bearer only`() throws
    {
        var scene = Scene()
        let introducer = Scene.identities[1]
        let (guest, own) = (Scene.peer(2), Scene.own.peerID)
        try scene.meet(introducer.peerID)
        func token(_ number: UInt64, nonce: UInt64 = 5, host: PeerID? = nil, by identity: Identity? = nil)
            -> [UInt8]
        {
            IntroductionToken(
                by: identity ?? introducer, guest: guest, host: host ?? own, nonce: nonce, number: number
            ).bytes
        }
        func verdict(_ token: [UInt8], on peer: PeerID? = nil) -> IntroductionTable.Verdict {
            scene.table.verdict(on: peer ?? guest, introduction: token)
        }
        #expect(verdict([]) == .program)
        for wrong in [
            [1, 2], token(1, nonce: 6), token(1, host: guest), token(1, by: Scene.identities[4]),
        ] {
            #expect(verdict(wrong) != .accept)
        }
        #expect(verdict(token(1), on: Scene.peer(3)) != .accept)
        #expect(verdict(token(1)) == .accept)
        #expect(verdict(token(1)) == .decline("the introduction was used before"))
        #expect(verdict(token(2)) == .accept)
        scene.table.disconnected(introducer.peerID, by: .nobody, now: scene.now)
        #expect(verdict(token(3)) == .decline("the peer that has introduced it is not connected here"))
    }

    @Test func `asks for a member that it lacks, invites it, and tries another introducer if it fails`()
        throws
    {
        var scene = Scene()
        let (first, second, wanted) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [first, second] {
            try scene.meet(peer)
            try scene.receive(Scene.member(wanted), from: peer)
        }
        _ = scene.run()
        let asks = scene.takeAsks()
        #expect(asks.map(\.about) == [wanted])
        let introducer = try #require(asks.first?.of)
        try scene.receiveIntroduction(of: wanted, at: "memory://w", from: introducer)
        let shown = Scene.introduce(wanted, at: ["memory://w"])
        #expect(scene.run() == [shown, .invite(wanted, introduction: [1])])
        scene.table.invitationEnded(wanted, hasFailed: true, now: scene.now)
        #expect(scene.run(.seconds(2)) == [.forget(wanted)])
        let again = scene.takeAsks()
        #expect(again.map(\.about) == [wanted])
        #expect(again.first?.of != introducer)
    }

    @Test func `does nothing about an introduction that it has not asked for`() throws {
        var scene = Scene()
        let liar = Scene.peer(1)
        try scene.meet(liar)
        _ = scene.run()
        for index in 2..<30 {
            try scene.receiveIntroduction(of: Scene.peer(index), from: liar)
        }
        #expect(scene.run(.seconds(10)).isEmpty)
    }

    @Test func `invites few of ten thousand peers whom a hostile member names`() throws {
        var scene = Scene()
        let liar = Scene.peer(1)
        try scene.meet(liar)
        var named = 0
        #expect(throws: WireError.self) {
            for index in 0..<10_000 {
                let peer = Identity.ephemeral(seed: UInt64(100_000 + index)).peerID
                try scene.receive(Scene.member(peer), from: liar)
                named += 1
            }
        }
        #expect(named == IntroductionTable.mostReported)
        // It answers whatever it is asked, with a victim's address, and nobody is ever there.
        var invited = 0
        let end = scene.now + .seconds(600)
        while scene.now < end {
            for action in scene.run(.milliseconds(100)) {
                guard case .invite(let peer, _) = action else { continue }
                invited += 1
                scene.table.invitationEnded(peer, hasFailed: true, now: scene.now)
            }
            try scene.answerAsks(by: liar)
        }
        // Sixteen, then rests of 60 s, 120 s, 240 s and so on.
        #expect(invited > 0)
        #expect(invited <= 16 * 5, "\(invited) in ten minutes")
    }

    @Test(arguments: [true, false])
    func `follows hostile members no further if they leave and come again, under whatever PeerIDs`(
        isSamePeer: Bool
    ) throws {
        var scene = Scene()
        var (invited, fakes, lives): (UInt64, UInt64, UInt64) = (0, 0, 0)
        let end = scene.now + .seconds(40)
        while scene.now < end {
            lives += 1
            let liar = isSamePeer ? Scene.peer(1) : Identity.ephemeral(seed: 50_000 + lives).peerID
            try scene.meet(liar)
            for _ in 0..<20 {
                fakes += 1
                let fake = Identity.ephemeral(seed: 100_000 + fakes).peerID
                try scene.receive(Scene.member(fake), from: liar)
            }
            var failed = 0
            while failed < 8, scene.now < end {
                for case .invite(let peer, _) in scene.run(.milliseconds(100)) {
                    (invited, failed) = (invited + 1, failed + 1)
                    scene.table.invitationEnded(peer, hasFailed: true, now: scene.now)
                }
                try scene.answerAsks(by: liar)
            }
            scene.table.disconnected(liar, by: .nobody, now: scene.now)
        }
        // Sixteen, and one more every 5 s.
        #expect(invited >= 16)
        #expect(invited <= 16 + 8, "\(invited) in 40 s")
    }

    @Test func `follows introductions that lead somewhere without a pause, however many there are`() throws {
        var scene = Scene()
        let introducer = Scene.peer(1)
        try scene.meet(introducer)
        let wanted = (2..<40).map(Scene.peer)
        for peer in wanted { try scene.receive(Scene.member(peer), from: introducer) }
        var invited: Set<PeerID> = []
        let end = scene.now + .seconds(5)
        while scene.now < end {
            for case .invite(let peer, _) in scene.run(.milliseconds(100)) {
                invited.insert(peer)
                scene.connect(peer)
                scene.table.invitationEnded(peer, hasFailed: false, now: scene.now)
            }
            try scene.answerAsks(by: introducer)
        }
        #expect(invited == Set(wanted))
    }

    @Test
    func `tells of a pipe through a peer only to those who accept one, and tells when it ends`() throws {
        var carries = true
        let policy = IntroductionTable.Policy(
            isMesh: false, acceptsRelays: { _ in true }, carries: { _, _ in carries })
        var scene = Scene(policy)
        let (first, second, third) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [first, second] { try scene.meet(peer, isMesh: false, acceptsRelays: true) }
        try scene.meet(third, isMesh: false)
        _ = scene.run()
        #expect(scene.sent[first]?.contains(Scene.member(second, isMesh: false, isCarried: true)) == true)
        #expect(scene.sent[third]?.contains(where: \.isMember) != true)
        scene.sent = [:]
        carries = false
        scene.table.reconsider(second, now: scene.now)
        _ = scene.run()
        #expect(scene.sent == [first: [.gone(second)], second: [.gone(first)]])
        // A peer that others carry.
        scene.sent = [:]
        let far = Scene.peer(9)
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: first)
        func introduction(_ carriers: PeerID...) -> IntroductionTable.Action {
            Scene.introduce(far, at: carriers.sorted().map { "via://\($0)/\(far)" })
        }
        #expect(scene.run() == [introduction(first)])
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: second)
        #expect(scene.run() == [introduction(first, second)])
        scene.table.disconnected(first, by: .nobody, now: scene.now)
        #expect(scene.run() == [introduction(second)])
        try scene.receive(Scene.member(far, isMesh: false, isCarried: false), from: second)
        #expect(scene.run() == [.forget(far)])
    }

    @Test func `shows no route through a peer that may carry no pipes for it, until it may`() throws {
        var accepts = false
        var scene = Scene(.init(isMesh: false, acceptsRelays: { _ in accepts }))
        let (stranger, far) = (Scene.peer(1), Scene.peer(9))
        scene.connect(stranger)
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: stranger)
        #expect(scene.run() == [])
        accepts = true
        scene.table.reconsider(stranger, now: scene.now)
        #expect(scene.run() == [Scene.introduce(far, at: ["via://\(stranger)/\(far)"])])
        accepts = false
        scene.table.reconsider(stranger, now: scene.now)
        #expect(scene.run() == [.forget(far)])
    }

    @Test func `says that it accepts pipes as soon as it does, as after two peers have paired`() {
        var accepts = false
        var scene = Scene(.init(isMesh: false, acceptsRelays: { _ in accepts }))
        let peer = Scene.peer(1)
        scene.connect(peer)
        _ = scene.run()
        #expect(scene.sent.isEmpty)
        accepts = true
        scene.table.reconsider(peer, now: scene.now)
        _ = scene.run()
        accepts = false
        scene.table.reconsider(peer, now: scene.now)
        _ = scene.run()
        let announced: [Bool?]? = scene.sent[peer]?.map {
            if case .here(let presence) = $0 { presence.acceptsRelays } else { nil }
        }
        #expect(announced == [true, false])
    }

    @Test func `asks again for the addresses of a peer that is connected through another one only`() throws {
        var scene = Scene()
        let (first, second) = (Scene.peer(1), Scene.peer(2))
        try scene.meet(first)
        try scene.receive(Scene.member(second, isCarried: true), from: first)
        scene.connect(second)
        scene.table.notePath(of: second, .over(scheme: "via", carrier: nil), now: scene.now)
        // The peer may have invited this session, so that its addresses are not known yet.
        _ = scene.run(.seconds(4))
        #expect(scene.takeAsks().map(\.about).contains(second))
        try scene.receiveIntroduction(of: second, from: first)
        _ = scene.run()
        scene.table.invitationEnded(second, hasFailed: false, now: scene.now)
        _ = scene.run(.seconds(10))
        #expect(scene.takeAsks().isEmpty)
        _ = scene.run(.seconds(60))
        #expect(scene.takeAsks().map(\.about).contains(second))
        scene.table.notePath(of: second, .over(scheme: "tcp", carrier: nil), now: scene.now)
        _ = scene.run(.seconds(300))
        #expect(scene.takeAsks().isEmpty)
    }

    @Test func `tells what its conversations run over to those that ask, at once and after changes`() throws {
        var scene = Scene()
        let (curious, first, second) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [curious, first, second] { try scene.meet(peer, wantsPaths: peer == curious) }
        scene.table.notePath(of: first, .over(scheme: "tcp", carrier: nil), now: scene.now)
        _ = scene.run()
        #expect(
            scene.sent[curious]?.filter(\.isAboutOthers)
                == [
                    Scene.member(second), .path(second, .interrupted), Scene.member(first),
                    .path(first, .over(scheme: "tcp", carrier: nil)),
                ].sorted { $0.subject < $1.subject })
        for peer in [first, second] { #expect(scene.sent[peer]?.contains(where: \.isPath) == false) }
        scene.sent = [:]
        scene.table.notePath(of: second, .over(scheme: "via", carrier: first), now: scene.now)
        _ = scene.run()
        #expect(scene.sent == [curious: [.path(second, .over(scheme: "via", carrier: first))]])
        scene.sent = [:]
        scene.table.notePath(of: second, .interrupted, now: scene.now)
        scene.table.disconnected(first, by: .otherSide, now: scene.now)
        _ = scene.run()
        #expect(
            scene.sent[curious]
                == [.gone(first), .path(second, .interrupted)].sorted { $0.subject < $1.subject })
    }

    @Test(arguments: [true, false])
    func `keeps what a peer's conversations run over, if it has asked for that`(wantsPaths: Bool) throws {
        var scene = Scene(.init(isMesh: true, wantsPaths: wantsPaths))
        let (reporter, other) = (Scene.peer(1), Scene.peer(2))
        try scene.meet(reporter)
        _ = scene.run()
        let path = ConversationPath.over(scheme: "bluetooth", carrier: nil)
        try scene.receive(.path(other, path), from: reporter)
        #expect(scene.table.peers(reportedBy: reporter).isEmpty)
        try scene.receive(Scene.member(other), from: reporter)
        #expect(scene.table.peers(reportedBy: reporter).map(\.path) == [nil])
        try scene.receive(.path(other, path), from: reporter)
        #expect(scene.table.peers(reportedBy: reporter).map(\.path) == [wantsPaths ? path : nil])
        // A new name says nothing about the path.
        try scene.receive(Scene.member(other, isCarried: true), from: reporter)
        #expect(scene.table.peers(reportedBy: reporter).map(\.path) == [wantsPaths ? path : nil])
        try scene.receive(.gone(other), from: reporter)
        #expect(scene.table.peers(reportedBy: reporter).isEmpty)
        let here = scene.sent[reporter]?.compactMap {
            if case .here(let presence) = $0 { presence } else { nil }
        }
        #expect(here?.map(\.wantsPaths) == [wantsPaths])
    }

    @Test func `asks for no member that its program does not want, and declines its invitation`() throws {
        let (introducer, unwanted, wanted) = (Scene.identities[1], Scene.peer(2), Scene.peer(3))
        var scene = Scene(
            .init(isMesh: true, refuses: { peer, _ in peer == unwanted ? "not that one" : nil }))
        try scene.meet(introducer.peerID)
        for peer in [unwanted, wanted] { try scene.receive(Scene.member(peer), from: introducer.peerID) }
        _ = scene.run(.seconds(30))
        #expect(Set(scene.takeAsks().map(\.about)) == [wanted])
        let token = IntroductionToken(
            by: introducer, guest: unwanted, host: Scene.own.peerID, nonce: 5, number: 1)
        #expect(scene.table.verdict(on: unwanted, introduction: token.bytes) == .decline("not that one"))
    }
}

extension IntroductionRecord {
    /// The peer that the record is about.
    fileprivate var subject: PeerID {
        switch self {
        case .here(let presence): presence.advertisement.peer
        case .member(let report): report.advertisement.peer
        case .gone(let peer), .ask(let peer), .introduction(let peer, _, _), .path(let peer, _): peer
        }
    }

    fileprivate var isMember: Bool { if case .member = self { true } else { false } }
    fileprivate var isPath: Bool { if case .path = self { true } else { false } }
    fileprivate var isAboutOthers: Bool { if case .here = self { false } else { true } }
}
