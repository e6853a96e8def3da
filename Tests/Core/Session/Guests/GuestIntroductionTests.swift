import NighRelays
import NighTestKit
import Testing

@testable import NighCore
@testable import NighIntroductions

/// Peers and guests learn nothing of each other in a mesh.
@Suite("A mesh with a guest at one of its sessions") struct GuestIntroductionTests {
    /// The guests and peers that have said something of themselves.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Presented: @unchecked Sendable {
        var ids: [PeerID] = []
        var violations = 0
    }

    private static func mesh(
        _ seed: UInt64, _ configuration: inout SessionConfiguration, _ presented: Presented? = nil,
        isHost: Bool = false
    ) {
        let layer = Introductions(
            .ephemeral(seed: seed), of: configuration, isMesh: true, relaying: .everyone, seed: seed)
        if let presented {
            layer.report(
                to: Introductions.Observer(
                    violated: { _ in presented.violations += 1 }, presented: { presented.ids.append($0) }))
        }
        configuration.layers.append(layer)
    }

    private static func known(to probe: SessionProbe) -> Set<PeerID> {
        Set(probe.session.inspection.peers.map(\.id))
    }

    @Test func `tells its members nothing of the guest, and the guest nothing of its members`() throws {
        let presented = Presented()
        let house = try GuestHouse { Self.mesh(1, &$0, presented) }
        let members = try [2, 3].map { seed in
            try house.welcome("M\(seed)") { Self.mesh(UInt64(seed), &$0) }
        }
        try house.run(.seconds(5))
        for member in members { #expect(presented.ids.contains(member.id)) }
        #expect(Self.known(to: members[0]) == [house.host.id, members[1].id])
        let guest = house.visit { Self.mesh(500, &$0) }
        try house.enter(guest)
        try house.run(.seconds(60))
        #expect(house.host.state(of: guest.id) == .connected)
        #expect(Self.known(to: guest) == [house.host.id])
        for member in members { #expect(!Self.known(to: member).contains(guest.id)) }
        let after = try house.welcome("M5") { Self.mesh(5, &$0) }
        try house.run(.seconds(9))
        #expect(presented.ids.contains(after.id))
        #expect(Self.known(to: after) == [house.host.id, members[0].id, members[1].id])
        #expect(Self.known(to: guest) == [house.host.id])
        #expect(!presented.ids.contains(guest.id))
    }

    @Test func `takes nothing that the guest says about anybody`() throws {
        let presented = Presented()
        let house = try GuestHouse { Self.mesh(1, &$0, presented) }
        let member = try house.welcome("Member") { Self.mesh(2, &$0) }
        try house.run(.seconds(4))
        let guest = house.visit()
        try house.enter(guest)
        let before = Self.known(to: house.host)
        let stranger = Identity.ephemeral(seed: 90).peerID
        func advertisement(_ peer: PeerID) -> Advertisement {
            Advertisement(service: "test", peer: peer, name: DisplayName(fitting: "Somebody"))
        }
        let records: [IntroductionRecord] = [
            .here(
                Presence(
                    isMesh: true, acceptsRelays: true, nonce: 1, advertisement: advertisement(guest.id),
                    addresses: [])),
            .member(MemberReport(isMesh: true, isCarried: true, advertisement: advertisement(stranger))),
            .ask(member.id), .gone(member.id),
            .introduction(
                stranger, addresses: [TransportAddress(scheme: "memory", value: "Member")], token: [1, 2]),
        ]
        // And bytes that are no record.
        for bytes in records.map(\.bytes) + [[255, 255], [UInt8](repeating: 7, count: 40)] {
            let sent = guest.session.sendIfPossible(
                ByteSlice(bytes), of: IntroductionRecord.kind, to: house.host.id)
            #expect(sent == .sent)
        }
        try house.run(.seconds(30))
        #expect(Self.known(to: house.host) == before.union([guest.id]))
        #expect(Self.known(to: guest) == [house.host.id])
        #expect(Set(presented.ids) == [member.id] && presented.violations == 0)
        #expect(house.host.state(of: guest.id) == .connected && guest.messages.isEmpty)
    }

    @Test func `asks its program about the guest, whatever token that brings`() throws {
        let house = try GuestHouse { Self.mesh(1, &$0) }
        try house.welcome("Member") { Self.mesh(2, &$0) }
        try house.run(.seconds(4))
        let guest = house.visit()
        try house.run(.seconds(1))
        let token = IntroductionToken(
            by: .ephemeral(seed: 2), guest: guest.id, host: house.host.id, nonce: 1, number: 1)
        let before = house.host.invitations.count
        guest.session.invite(house.host.id, introduction: token.bytes, timeout: .seconds(10)) { _ in }
        try house.run(.seconds(1))
        #expect(house.host.invitations.count == before + 1)
        #expect(house.host.invitations.last?.introduction == [])
    }
}
