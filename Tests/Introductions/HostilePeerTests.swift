import NighCore
import Testing

@testable import NighIntroductions

/// Tests peers that break the protocol, or keep only to its letter.
@Suite("A table of introductions whose peers are hostile") struct HostilePeerTests {
    private var scene = Scene()
    private let peer = Scene.peer(1)

    /// Says hello to the only peer, and takes its own presence.
    private mutating func meet(_ sending: KindMessageSending) throws {
        scene.connect(peer)
        scene.now = scene.now + .seconds(1)
        scene.table.flush(peer, now: scene.now) { _ in sending }
        let presence = Presence(
            isMesh: true, acceptsRelays: false, nonce: 9, advertisement: Scene.advertisement(peer),
            addresses: [])
        try scene.receive(.here(presence), from: peer)
    }

    /// Does what is due now.
    private mutating func work() -> [IntroductionTable.Action] {
        scene.table.timeArrived(now: scene.now)
        for id in scene.table.peersToFlush(now: scene.now) {
            scene.table.flush(id, now: scene.now) { _ in .sent }
        }
        return scene.table.takeActions()
    }

    @Test mutating func `comes to rest, also if a peer sends records and takes none`() throws {
        try meet(.unsupported)
        for _ in 0..<3 { _ = work() }
        #expect(scene.table.deadline > scene.now)
    }

    @Test mutating func `invites eight at once, also if the introducer takes back those it introduced`()
        throws
    {
        try meet(.sent)
        var invited: Set<PeerID> = []
        for other in (2..<40).map(Scene.peer) {
            try scene.receive(Scene.member(other), from: peer)
            scene.now = scene.now + .milliseconds(100)
            _ = work()
            try scene.receive(.introduction(other, addresses: [], token: [1]), from: peer)
            for case .invite(let id, _) in work() { invited.insert(id) }
            try scene.receive(.gone(other), from: peer)
        }
        // None of these invitations has ended: a dial goes on although its route is gone.
        #expect(invited.count <= 8)
    }
}
