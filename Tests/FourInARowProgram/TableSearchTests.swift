import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct TableSearchTests {
    private static func view(_ tables: TableListing...) -> LobbyView {
        LobbyView(name: "Lynx", id: Scene.peer(1), tables: tables)
    }

    private static let owl = Scene.table(3, "Owl")

    @Test func `A table is joined once, as soon as its name appears, in upper or lower case`() {
        var search = TableSearch(.name("puma"), .seat)
        #expect(search.next(for: Self.view(Self.owl)) == nil)
        #expect(search.description == "puma's table")
        // Only the host knows whether the seat is free, and tells those who ask.
        let seen = Self.view(Scene.table(2, "Puma", hasFreeSeat: false), Self.owl)
        #expect(search.next(for: seen) == .join(Scene.peer(2)))
        #expect(search.next(for: seen) == nil)
        #expect(search.description == nil)
    }

    @Test func `If two tables have one name, neither is joined, which is reported once; a PeerID is unique`()
    {
        let (one, other) = (Scene.table(2, "Puma"), Scene.table(3, "Puma"))
        var search = TableSearch(.name("Puma"), .seat)
        #expect(search.next(for: Self.view(one, other)) == .ambiguous("Puma", [one.id, other.id]))
        #expect(search.next(for: Self.view(one, other)) == nil)
        #expect(search.description != nil)
        var exact = TableSearch(.name(other.id.short), .seat)
        #expect(exact.next(for: Self.view(one, other)) == .join(other.id))
        // A stranger cannot hide a table by taking the host's whole PeerID as its name.
        var disguised = TableSearch(.name(other.id.description), .seat)
        let stranger = Scene.table(2, other.id.description)
        #expect(disguised.next(for: Self.view(stranger, other)) == .join(other.id))
    }

    @Test func `Without a name, the first suitable table is joined`() {
        let taken = Scene.table(2, "Puma", hasFreeSeat: false)
        var seat = TableSearch(nil, .seat)
        #expect(seat.next(for: Self.view(taken)) == nil)
        #expect(seat.next(for: Self.view(taken, Self.owl, Scene.table(4, "Wren"))) == .join(Self.owl.id))
        var watch = TableSearch(nil, .watch)
        #expect(watch.next(for: Self.view(taken, Self.owl)) == .join(taken.id))
    }

    @Test func `An address is joined without discovery, and a search that was stopped finds nothing`() throws
    {
        let address = TransportAddress(scheme: "tcp", value: "127.0.0.1:4000")
        #expect(try GameCommand.Target("tcp://127.0.0.1:4000") == .address(address))
        #expect(try GameCommand.Target("127.0.0.1:4000") == .address(address))
        #expect(try GameCommand.Target("Puma") == .name("Puma"))
        var search = TableSearch(.address(address), .seat)
        #expect(search.next(for: Self.view()) == .joinAddress(address))
        #expect(search.next(for: Self.view()) == nil)
        var stopped = TableSearch(.name("Owl"), .seat)
        stopped.stop()
        #expect(stopped.next(for: Self.view(Self.owl)) == nil)
    }
}
