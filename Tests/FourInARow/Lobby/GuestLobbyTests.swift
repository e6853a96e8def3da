import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

@Suite("Guests without a key at a table")
struct GuestLobbyTests {
    /// The way for guests to one host. Everybody who comes over it is a guest.
    private final class Door {
        let hub = MemoryHub()
        let identity = Identity.ephemeral()
        let transport: RelabelledTransport

        init() {
            let guest = identity.peerID
            transport = RelabelledTransport(MemoryTransport(hub: hub), scheme: "web", priority: 900) {
                PipeOfGuest($0, guest: guest)
            }
        }

        /// Returns the one player who comes this way.
        func guest(_ name: String, in group: PlayerGroup) -> PlayerGroup.Player {
            group.player(name, identity: identity, security: .none, hub: hub)
        }
    }

    private final class PipeOfGuest: GuestPipe {
        let guest: PeerID
        private let inner: any Pipe

        init(_ inner: any Pipe, guest: PeerID) {
            self.inner = inner
            self.guest = guest
        }

        var localAddress: TransportAddress? { inner.localAddress }
        var remoteAddress: TransportAddress? { inner.remoteAddress }
        var writableBytes: Int { inner.writableBytes }
        var counters: PipeCounters { inner.counters }
        func start(handler: any PipeHandler) { inner.start(handler: Relay(self, to: handler)) }
        func write(_ queue: inout ByteQueue) { inner.write(&queue) }
        func pauseReading() { inner.pauseReading() }
        func resumeReading() { inner.resumeReading() }
        func close(_ mode: PipeCloseMode) { inner.close(mode) }

        /// Reports in the name of the outer pipe.
        private final class Relay: PipeHandler {
            private let pipe: PipeOfGuest
            private let handler: any PipeHandler

            init(_ pipe: PipeOfGuest, to handler: any PipeHandler) {
                self.pipe = pipe
                self.handler = handler
            }

            func pipe(_ inner: any Pipe, received bytes: ByteSlice) { handler.pipe(pipe, received: bytes) }
            func pipeBecameWritable(_ inner: any Pipe) { handler.pipeBecameWritable(pipe) }
            func pipeEnded(_ inner: any Pipe) { handler.pipeEnded(pipe) }
            func pipeDrained(_ inner: any Pipe) { handler.pipeDrained(pipe) }
            func pipeClosed(_ inner: any Pipe, error: NighError?) { handler.pipeClosed(pipe, error: error) }
        }
    }

    /// Puma hosts a table of which Anna, a guest, knows.
    private func hosted() throws -> (PlayerGroup, PlayerGroup.Player, PlayerGroup.Player) {
        let (group, door) = (PlayerGroup(), Door())
        let puma = group.player("Puma", others: [door.transport])
        let anna = door.guest("Anna", in: group)
        puma.lobby.host()
        try #require(try group.wait(until: { !anna.view.tables.isEmpty }))
        return (group, puma, anna)
    }

    @Test("A guest gets the seat without a question, and is marked; a peer is asked about as before")
    func seatedWithoutQuestion() throws {
        let (group, puma, anna) = try hosted()
        anna.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { anna.table?.game != nil }))
        #expect(puma.tableView?.other?.trust == .guest && puma.tableView?.other?.name == "Anna")
        #expect(!puma.news.contains { if case .seatRequested = $0 { true } else { false } })
        anna.lobby.leave()
        try #require(try group.wait(until: { puma.table?.guest == nil }))
        let lynx = group.player("Lynx")
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        #expect(puma.table?.guest == nil)
        puma.lobby.answer(lynx.id, accept: true)
        #expect(try group.wait(until: { lynx.table?.game != nil }))
        #expect(puma.tableView?.other?.trust != .guest)
    }

    @Test("A guest who comes while a peer is asked about takes the seat, and the peer gets the reason")
    func guestBeforeAnswer() throws {
        let (group, puma, anna) = try hosted()
        let lynx = group.player("Lynx")
        try #require(try group.wait(until: { !lynx.view.tables.isEmpty }))
        lynx.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { !puma.view.seatRequests.isEmpty }))
        anna.lobby.join(puma.id, as: .seat)
        #expect(try group.wait(until: { anna.table?.game != nil && lynx.view.place == .lobby }))
        #expect(puma.view.seatRequests.isEmpty)
    }

    @Test("A guest at a table that is taken gets the reason, and may watch")
    func watching() throws {
        let (group, puma, anna) = try hosted()
        let lynx = group.player("Lynx")
        #expect(try group.seated(puma, lynx))
        anna.lobby.join(puma.id, as: .seat)
        try #require(try group.wait(until: { anna.view.place == .lobby }))
        anna.lobby.join(puma.id, as: .watch)
        try #require(try group.wait(until: { anna.table?.game != nil }))
        #expect(anna.tableView?.ownDisc == nil && puma.table?.watcherCount == 1)
        #expect(try group.play("abab", puma, lynx))
        #expect(try group.wait(until: { anna.board == puma.board }))
    }

    @Test("A game with a guest goes on after a cut, and the seat is free when the guest leaves")
    func cut() throws {
        let (group, puma, anna) = try hosted()
        anna.lobby.join(puma.id, as: .seat)
        #expect(try group.play("ab", puma, anna))
        anna.cut()
        try #require(try group.wait(until: { puma.tableView?.other?.linkLostAt != nil }))
        anna.air.control.unblock()
        try #require(try group.wait(until: { puma.tableView?.other?.linkLostAt == nil }))
        #expect(try group.play("ababa", puma, anna))
        #expect(puma.standing == .iWin && anna.standing == .youWin)
        anna.lobby.act(.rematch)
        #expect(try group.wait(until: { anna.standing == .myTurn }))
        anna.lobby.leave()
        #expect(try group.wait(until: { puma.table?.guest == nil }))
    }

    @Test("A table closes when its host leaves a guest, whom nobody else can reach")
    func hostLeaves() throws {
        let (group, puma, anna) = try hosted()
        anna.lobby.join(puma.id, as: .seat)
        let owl = group.player("Owl")
        try #require(try group.wait(until: { anna.table?.game != nil && !owl.view.tables.isEmpty }))
        owl.lobby.join(puma.id, as: .watch)
        try #require(try group.wait(until: { owl.table?.game != nil }))
        puma.lobby.leave()
        #expect(try group.wait(until: { anna.view.place == .lobby && owl.view.place == .lobby }))
    }
}
