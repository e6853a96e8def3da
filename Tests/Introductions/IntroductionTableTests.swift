import NighCore
@testable import NighIntroductions
import Testing

/// A table whose peers are played by a test.
private struct Scene {
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

    static func here(
        _ peer: PeerID, isMesh: Bool = true, acceptsRelays: Bool = false, wantsPaths: Bool = false,
        nonce: UInt64 = 9, addresses: [String] = ["memory://there"]
    ) -> IntroductionRecord {
        .here(
            Presence(
                isMesh: isMesh, acceptsRelays: acceptsRelays, wantsPaths: wantsPaths, nonce: nonce,
                advertisement: advertisement(peer), addresses: addresses.map { TransportAddress($0)! }))
    }

    static func member(_ peer: PeerID, isMesh: Bool = true, isCarried: Bool = false) -> IntroductionRecord {
        .member(Listing(isMesh: isMesh, isCarried: isCarried, advertisement: advertisement(peer)))
    }

    mutating func connect(_ peer: PeerID, nonce: UInt64 = 5) {
        table.connected(peer, nonce: nonce, now: now)
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
    @Test("tells each member of a mesh of the others, once, and of those who left")
    func telling() throws {
        var scene = Scene()
        let (first, second) = (Scene.peer(1), Scene.peer(2))
        for peer in [first, second] {
            scene.connect(peer)
            try scene.receive(Scene.here(peer), from: peer)
        }
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

    @Test("tells nothing to peers that are not of the mesh, and of none")
    func strangers() throws {
        var scene = Scene()
        let (member, other, silent) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [member, other, silent] { scene.connect(peer) }
        try scene.receive(Scene.here(member), from: member)
        try scene.receive(Scene.here(other, isMesh: false), from: other)
        _ = scene.run()
        for peer in [member, other, silent] {
            let names = scene.sent[peer]?.contains { if case .member = $0 { true } else { false } }
            #expect(names != true)
        }
    }

    @Test("introduces two members with a token that only these can use, and nobody else")
    func introducing() throws {
        var scene = Scene()
        let (guest, host, other) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [guest, host] {
            scene.connect(peer)
            try scene.receive(Scene.here(peer, nonce: 77, addresses: ["memory://host"]), from: peer)
        }
        scene.connect(other)
        try scene.receive(Scene.here(other, isMesh: false), from: other)
        try scene.receive(.ask(host), from: guest)
        try scene.receive(.ask(host), from: guest)
        try scene.receive(.ask(other), from: guest)
        try scene.receive(.ask(Scene.peer(9)), from: guest)
        try scene.receive(.ask(host), from: other)
        _ = scene.run()
        let answers = scene.sent.flatMap { peer, records in
            records.compactMap { record -> (PeerID, PeerID, [TransportAddress], [UInt8])? in
                guard case .introduction(let about, let addresses, let token) = record else { return nil }
                return (peer, about, addresses, token)
            }
        }
        #expect(answers.count == 1)
        let answer = try #require(answers.first)
        #expect(answer.0 == guest)
        #expect(answer.1 == host)
        #expect(answer.2 == [TransportAddress("memory://host")!])
        let token = try IntroductionToken(reading: answer.3)
        #expect(token.introducer == Scene.own.peerID)
        #expect(token.introduces(guest, to: host))
        #expect(token.nonce == 77)
    }

    @Test("accepts a token once, of a connected introducer, for its own number and its bearer only")
    func verdicts() throws {
        var scene = Scene()
        let introducer = Scene.identities[1]
        let (guest, own) = (Scene.peer(2), Scene.own.peerID)
        scene.connect(introducer.peerID, nonce: 5)
        try scene.receive(Scene.here(introducer.peerID), from: introducer.peerID)
        func token(_ number: UInt64, nonce: UInt64 = 5, host: PeerID? = nil, by identity: Identity? = nil)
            -> [UInt8]
        {
            IntroductionToken(
                by: identity ?? introducer, guest: guest, host: host ?? own, nonce: nonce, number: number
            ).bytes
        }
        #expect(scene.table.verdict(on: guest, introduction: []) == .program)
        #expect(scene.table.verdict(on: guest, introduction: [1, 2]) != .accept)
        #expect(scene.table.verdict(on: guest, introduction: token(1, nonce: 6)) != .accept)
        #expect(scene.table.verdict(on: guest, introduction: token(1, host: guest)) != .accept)
        #expect(scene.table.verdict(on: Scene.peer(3), introduction: token(1)) != .accept)
        #expect(scene.table.verdict(on: guest, introduction: token(1, by: Scene.identities[4])) != .accept)
        #expect(scene.table.verdict(on: guest, introduction: token(1)) == .accept)
        #expect(
            scene.table.verdict(on: guest, introduction: token(1))
                == .decline("the introduction was used before"))
        #expect(scene.table.verdict(on: guest, introduction: token(2)) == .accept)
        scene.table.disconnected(introducer.peerID, by: .nobody, now: scene.now)
        #expect(
            scene.table.verdict(on: guest, introduction: token(3))
                == .decline("the peer that has introduced it is not connected here"))
    }

    @Test(
        "asks for a member that it lacks, invites it once it is introduced, and tries another introducer after a failure"
    )
    func asking() throws {
        var scene = Scene()
        let (first, second, wanted) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [first, second] {
            scene.connect(peer)
            try scene.receive(Scene.here(peer), from: peer)
            try scene.receive(Scene.member(wanted), from: peer)
        }
        _ = scene.run()
        let asks = scene.takeAsks()
        #expect(asks.count == 1)
        #expect(asks.first?.about == wanted)
        let introducer = try #require(asks.first?.of)
        try scene.receive(
            .introduction(wanted, addresses: [TransportAddress("memory://w")!], token: [1]), from: introducer)
        #expect(
            scene.run() == [
                .introduce(
                    IntroducedPeer(
                        id: wanted, name: Scene.advertisement(wanted).name, info: .none,
                        addresses: [TransportAddress("memory://w")!])),
                .invite(wanted, introduction: [1]),
            ])
        scene.table.invitationEnded(wanted, hasFailed: true, now: scene.now)
        #expect(scene.run(.seconds(2)) == [.forget(wanted)])
        let again = scene.takeAsks()
        #expect(again.map(\.about) == [wanted])
        #expect(again.first?.of != introducer)
    }

    @Test("does nothing about an introduction that it has not asked for")
    func unasked() throws {
        var scene = Scene()
        let liar = Scene.peer(1)
        scene.connect(liar)
        try scene.receive(Scene.here(liar), from: liar)
        _ = scene.run()
        for index in 2..<30 {
            try scene.receive(
                .introduction(
                    Scene.peer(index), addresses: [TransportAddress("tcp://10.0.0.1:22")!], token: []),
                from: liar)
        }
        #expect(scene.run(.seconds(10)).isEmpty)
    }

    @Test(
        "invites few of ten thousand peers whom a hostile member names, and none of those it names without end"
    )
    func flood() throws {
        var scene = Scene()
        let liar = Scene.peer(1)
        scene.connect(liar)
        try scene.receive(Scene.here(liar), from: liar)
        var named = 0
        #expect(throws: WireError.self) {
            for index in 0..<10_000 {
                let peer = Identity.ephemeral(seed: UInt64(100_000 + index)).peerID
                try scene.receive(Scene.member(peer), from: liar)
                named += 1
            }
        }
        #expect(named == IntroductionTable.mostListed)
        // It answers whatever it is asked, with a victim's address, and nobody is ever there.
        var invited = 0
        let end = scene.now + .seconds(600)
        while scene.now < end {
            for action in scene.run(.milliseconds(100)) {
                guard case .invite(let peer, _) = action else { continue }
                invited += 1
                scene.table.invitationEnded(peer, hasFailed: true, now: scene.now)
            }
            for ask in scene.takeAsks() {
                try scene.receive(
                    .introduction(
                        ask.about, addresses: [TransportAddress("tcp://192.0.2.1:80")!], token: [1]),
                    from: liar)
            }
        }
        // Sixteen, then rests of 60 s, 120 s, 240 s and so on.
        #expect(invited > 0)
        #expect(invited <= 16 * 5, "\(invited) in ten minutes")
    }

    @Test(
        "follows hostile members no further if they leave before their rest and come again, under whatever PeerIDs",
        arguments: [true, false])
    func returning(isSamePeer: Bool) throws {
        var scene = Scene()
        var (invited, fakes, lives): (UInt64, UInt64, UInt64) = (0, 0, 0)
        let end = scene.now + .seconds(40)
        while scene.now < end {
            lives += 1
            let liar = isSamePeer ? Scene.peer(1) : Identity.ephemeral(seed: 50_000 + lives).peerID
            scene.connect(liar)
            try scene.receive(Scene.here(liar), from: liar)
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
                for ask in scene.takeAsks() {
                    let victim = TransportAddress("tcp://192.0.2.1:80")!
                    try scene.receive(.introduction(ask.about, addresses: [victim], token: [1]), from: liar)
                }
            }
            scene.table.disconnected(liar, by: .nobody, now: scene.now)
        }
        // Sixteen, and one more every 5 s.
        #expect(invited >= 16)
        #expect(invited <= 16 + 8, "\(invited) in 40 s")
    }

    @Test("follows introductions that lead somewhere without a pause, however many there are")
    func growing() throws {
        var scene = Scene()
        let introducer = Scene.peer(1)
        scene.connect(introducer)
        try scene.receive(Scene.here(introducer), from: introducer)
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
            for ask in scene.takeAsks() {
                let place = TransportAddress("memory://there")!
                try scene.receive(.introduction(ask.about, addresses: [place], token: [1]), from: introducer)
            }
        }
        #expect(invited == Set(wanted))
    }

    @Test("tells of a pipe through a peer only to those who accept one, and tells when it ends")
    func relays() throws {
        var carries = true
        let policy = IntroductionTable.Policy(
            isMesh: false, acceptsRelays: { _ in true }, carries: { _, _ in carries })
        var scene = Scene(policy)
        let (first, second, third) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [first, second, third] { scene.connect(peer) }
        try scene.receive(Scene.here(first, isMesh: false, acceptsRelays: true), from: first)
        try scene.receive(Scene.here(second, isMesh: false, acceptsRelays: true), from: second)
        try scene.receive(Scene.here(third, isMesh: false), from: third)
        _ = scene.run()
        #expect(scene.sent[first]?.contains(Scene.member(second, isMesh: false, isCarried: true)) == true)
        #expect(scene.sent[third]?.contains { if case .member = $0 { true } else { false } } != true)
        scene.sent = [:]
        carries = false
        scene.table.reconsider(second, now: scene.now)
        _ = scene.run()
        #expect(scene.sent == [first: [.gone(second)], second: [.gone(first)]])
        // What another one carries.
        scene.sent = [:]
        let far = Scene.peer(9)
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: first)
        func introduction(_ carriers: PeerID...) -> IntroductionTable.Action {
            .introduce(
                IntroducedPeer(
                    id: far, name: Scene.advertisement(far).name, info: .none,
                    addresses: carriers.sorted().map { TransportAddress("via://\($0)/\(far)")! }))
        }
        #expect(scene.run() == [introduction(first)])
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: second)
        #expect(scene.run() == [introduction(first, second)])
        scene.table.disconnected(first, by: .nobody, now: scene.now)
        #expect(scene.run() == [introduction(second)])
        try scene.receive(Scene.member(far, isMesh: false, isCarried: false), from: second)
        #expect(scene.run() == [.forget(far)])
    }

    @Test("shows no route through a peer that may carry no pipes for it, and shows it as soon as that may")
    func strangersAsCarriers() throws {
        var accepts = false
        var scene = Scene(.init(isMesh: false, acceptsRelays: { _ in accepts }))
        let (stranger, far) = (Scene.peer(1), Scene.peer(9))
        scene.connect(stranger)
        try scene.receive(Scene.member(far, isMesh: false, isCarried: true), from: stranger)
        #expect(scene.run() == [])
        accepts = true
        scene.table.reconsider(stranger, now: scene.now)
        let route = TransportAddress("via://\(stranger)/\(far)")!
        #expect(
            scene.run() == [
                .introduce(
                    IntroducedPeer(
                        id: far, name: Scene.advertisement(far).name, info: .none, addresses: [route]))
            ])
        accepts = false
        scene.table.reconsider(stranger, now: scene.now)
        #expect(scene.run() == [.forget(far)])
    }

    @Test("says that it accepts pipes as soon as it does, as after two peers have paired")
    func acceptsRelaysLater() {
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
        let told: [Bool?]? = scene.sent[peer]?.map {
            if case .here(let presence) = $0 { presence.acceptsRelays } else { nil }
        }
        #expect(told == [true, false])
    }

    @Test("asks again for the addresses of a peer that is connected through another one only")
    func relayedPeers() throws {
        var scene = Scene()
        let (first, second) = (Scene.peer(1), Scene.peer(2))
        scene.connect(first)
        try scene.receive(Scene.here(first), from: first)
        try scene.receive(Scene.member(second, isCarried: true), from: first)
        scene.connect(second)
        scene.table.notePath(of: second, .over(scheme: "via", carrier: nil), now: scene.now)
        // The peer may have invited this session, so that its addresses are not known yet.
        _ = scene.run(.seconds(4))
        #expect(scene.takeAsks().map(\.about).contains(second))
        try scene.receive(
            .introduction(second, addresses: [TransportAddress("memory://s")!], token: [1]), from: first)
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

    @Test(
        "tells what its conversations run over to those that ask, at once and after each change, and to nobody else"
    )
    func paths() throws {
        var scene = Scene()
        let (curious, first, second) = (Scene.peer(1), Scene.peer(2), Scene.peer(3))
        for peer in [curious, first, second] {
            scene.connect(peer)
            try scene.receive(Scene.here(peer, wantsPaths: peer == curious), from: peer)
        }
        scene.table.notePath(of: first, .over(scheme: "tcp", carrier: nil), now: scene.now)
        _ = scene.run()
        #expect(
            scene.sent[curious]?.filter(isAboutOthers)
                == [
                    Scene.member(second), .path(second, .interrupted), Scene.member(first),
                    .path(first, .over(scheme: "tcp", carrier: nil)),
                ].sorted { $0.subject < $1.subject })
        for peer in [first, second] { #expect(scene.sent[peer]?.contains(where: isPath) == false) }
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

    private func isPath(_ record: IntroductionRecord) -> Bool {
        if case .path = record { true } else { false }
    }
    private func isAboutOthers(_ record: IntroductionRecord) -> Bool {
        if case .here = record { false } else { true }
    }

    @Test(
        "keeps what a peer's conversations run over, if it has asked for that and the peer has named the others"
    )
    func heardPaths() throws {
        for wantsPaths in [true, false] {
            var scene = Scene(.init(isMesh: true, wantsPaths: wantsPaths))
            let (teller, other) = (Scene.peer(1), Scene.peer(2))
            scene.connect(teller)
            try scene.receive(Scene.here(teller), from: teller)
            _ = scene.run()
            let path = ConversationPath.over(scheme: "bluetooth", carrier: nil)
            try scene.receive(.path(other, path), from: teller)
            #expect(scene.table.acquaintances(of: teller).isEmpty)
            try scene.receive(Scene.member(other), from: teller)
            #expect(scene.table.acquaintances(of: teller).map(\.path) == [nil])
            try scene.receive(.path(other, path), from: teller)
            #expect(scene.table.acquaintances(of: teller).map(\.path) == [wantsPaths ? path : nil])
            // A new name says nothing about the path.
            try scene.receive(Scene.member(other, isCarried: true), from: teller)
            #expect(scene.table.acquaintances(of: teller).map(\.path) == [wantsPaths ? path : nil])
            try scene.receive(.gone(other), from: teller)
            #expect(scene.table.acquaintances(of: teller).isEmpty)
            let here = scene.sent[teller]?.compactMap {
                if case .here(let presence) = $0 { presence } else { nil }
            }
            #expect(here?.map(\.wantsPaths) == [wantsPaths])
        }
    }

    @Test("asks for no member that its program does not want, and declines the invitation of such a one")
    func unwanted() throws {
        let (introducer, unwanted, wanted) = (Scene.identities[1], Scene.peer(2), Scene.peer(3))
        var scene = Scene(
            .init(isMesh: true, refuses: { peer, _ in peer == unwanted ? "not that one" : nil }))
        scene.connect(introducer.peerID, nonce: 5)
        try scene.receive(Scene.here(introducer.peerID), from: introducer.peerID)
        for peer in [unwanted, wanted] { try scene.receive(Scene.member(peer), from: introducer.peerID) }
        _ = scene.run(.seconds(30))
        #expect(Set(scene.takeAsks().map(\.about)) == [wanted])
        let token = IntroductionToken(
            by: introducer, guest: unwanted, host: Scene.own.peerID, nonce: 5, number: 1)
        #expect(
            scene.table.verdict(on: unwanted, introduction: token.bytes) == .decline("not that one"))
    }
}

extension IntroductionRecord {
    /// The peer that the record is about.
    fileprivate var subject: PeerID {
        switch self {
        case .here(let presence): presence.advertisement.peer
        case .member(let listing): listing.advertisement.peer
        case .gone(let peer), .ask(let peer), .introduction(let peer, _, _), .path(let peer, _): peer
        }
    }
}
