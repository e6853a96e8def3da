import NighCore
import Testing

@testable import NighIntroductions

/// What peers do that do not keep to the protocol, or only to its letter.
@Suite("A table of introductions whose peers are hostile") struct HostilePeerTests {
    private static let identities = (0..<40).map { Identity.ephemeral(seed: UInt64($0)) }.sorted {
        $0.peerID > $1.peerID
    }
    private static let peer = identities[1].peerID

    private static func advertisement(_ peer: PeerID) -> Advertisement {
        Advertisement(service: "mesh", peer: peer, name: DisplayName(fitting: peer.short))
    }

    private var table = IntroductionTable(
        identities[0], advertisement(identities[0].peerID), .init(isMesh: true), seed: 1)
    private var now = Moment(nanoseconds: 0)

    /// Says hello to the only peer, and takes its own presence.
    private mutating func meet(_ sending: KindMessageSending) throws {
        table.connected(Self.peer, nonce: 5, now: now)
        now = now + .seconds(1)
        table.flush(Self.peer, now: now) { _ in sending }
        let presence = Presence(
            isMesh: true, acceptsRelays: false, nonce: 9, advertisement: Self.advertisement(Self.peer),
            addresses: [])
        try table.receive(.here(presence), from: Self.peer, now: now)
    }

    /// Does what is due now.
    private mutating func work() -> [IntroductionTable.Action] {
        table.timeArrived(now: now)
        for id in table.peersToFlush(now: now) { table.flush(id, now: now) { _ in .sent } }
        return table.takeActions()
    }

    @Test("comes to rest, also if a peer sends records and takes none")
    mutating func oneWay() throws {
        try meet(.unsupported)
        for _ in 0..<3 { _ = work() }
        #expect(table.deadline > now)
    }

    @Test("invites eight at once, also if the introducer takes back whom it has introduced")
    mutating func takenBack() throws {
        try meet(.sent)
        var invited: Set<PeerID> = []
        for other in Self.identities[2...].map(\.peerID) {
            let listing = Listing(isMesh: true, isCarried: false, advertisement: Self.advertisement(other))
            try table.receive(.member(listing), from: Self.peer, now: now)
            now = now + .milliseconds(100)
            _ = work()
            try table.receive(.introduction(other, addresses: [], token: [1]), from: Self.peer, now: now)
            for case .invite(let id, _) in work() { invited.insert(id) }
            try table.receive(.gone(other), from: Self.peer, now: now)
        }
        // None of these invitations has ended: a dial goes on although its route is gone.
        #expect(invited.count <= 8)
    }
}
