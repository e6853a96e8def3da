import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

/// Tests guests without a key at a table.
struct GuestLobbyTests {
    private let group = PlayerGroup()
    private let puma: PlayerGroup.Player
    private let lynx: PlayerGroup.Player
    /// A guest, who comes on a way that leads only to Puma.
    private let anna: PlayerGroup.Player

    /// Puma hosts a table of which Anna and Lynx know.
    init() throws {
        let identity = Identity.ephemeral()
        let memory = MemoryTransport(hub: group.network.hub(of: 2))
        let door = RelabelledTransport(memory, scheme: "web", priority: 900) {
            PipeOfGuest($0, guest: identity.peerID)
        }
        puma = group.player("Puma", others: [door])
        lynx = group.player("Lynx")
        anna = group.player("Anna", identity: identity, security: .none, on: [2])
        try group.open(puma, seenBy: anna, lynx)
    }

    private final class PipeOfGuest: GuestPipe, ForwardingPipe {
        let guest: PeerID
        let inner: any Pipe

        init(_ inner: any Pipe, guest: PeerID) {
            self.inner = inner
            self.guest = guest
        }
    }

    @Test func `A guest gets the seat without a question, and is marked, unlike a peer`() throws {
        anna.lobby.join(puma.id, as: .seat)
        try group.wait { anna.isPlaying }
        #expect(puma.other?.trust == .guest && puma.other?.name == "Anna" && puma.requestCount == 0)
        anna.lobby.leave()
        try group.wait { puma.table?.guest == nil }
        try group.ask(puma, by: lynx)
        #expect(puma.table?.guest == nil)
        puma.lobby.answer(lynx.id, accept: true)
        try group.wait { lynx.isPlaying }
        #expect(puma.other?.trust != .guest)
    }

    @Test func `A guest who comes while a peer is asked about takes the seat`() throws {
        try group.ask(puma, by: lynx)
        anna.lobby.join(puma.id, as: .seat)
        try group.wait { anna.isPlaying && lynx.view.place == .lobby }
        #expect(puma.view.seatRequests.isEmpty)
    }

    @Test func `A guest at a table that is taken gets the reason, and may watch`() throws {
        try group.ask(puma, by: lynx)
        puma.lobby.answer(lynx.id, accept: true)
        try group.wait { lynx.isPlaying }
        anna.lobby.join(puma.id, as: .seat)
        try group.wait { !anna.failures.isEmpty && anna.view.place == .lobby }
        try group.watch(puma, by: [anna])
        #expect(anna.tableView?.ownDisc == nil && puma.table?.watcherCount == 1)
        try group.play("abab", puma, lynx)
        try group.wait { anna.board == puma.board }
    }

    @Test func `A table closes when its host leaves a guest, whom nobody else can reach`() throws {
        anna.lobby.join(puma.id, as: .seat)
        try group.watch(puma, by: [lynx])
        try group.wait { anna.isPlaying }
        puma.lobby.leave()
        try group.wait { anna.view.place == .lobby && lynx.view.place == .lobby }
    }
}
