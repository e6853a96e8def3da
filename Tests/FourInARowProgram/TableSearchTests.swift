import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct TableSearchTests {
    private static func peer(_ number: UInt8) throws -> PeerID {
        try #require(PeerID(bytes: [UInt8](repeating: number, count: PeerID.byteCount)))
    }

    private static func view(_ tables: (UInt8, String, Bool)...) throws -> LobbyView {
        var view = LobbyView(name: "Lynx", id: try peer(1))
        for (number, name, isFree) in tables {
            view.tables.append(
                TableListing(
                    id: try peer(number), name: name, hasFreeSeat: isFree, transports: ["tcp"], quality: nil))
        }
        return view
    }

    @Test("A table is joined once, as soon as its name appears, in upper or lower case")
    func name() throws {
        var search = TableSearch(.name("puma"), .seat)
        #expect(search.next(for: try Self.view((3, "Owl", true))) == nil)
        #expect(search.description == "puma's table")
        // Only the host knows whether the seat is free, and tells those who ask.
        let seen = try Self.view((2, "Puma", false), (3, "Owl", true))
        #expect(search.next(for: seen) == .join(try Self.peer(2)))
        #expect(search.next(for: seen) == nil)
        #expect(search.description == nil)
    }

    @Test("If two tables have one name, neither is joined, which is reported once; the PeerID is unique")
    func twoOfOneName() throws {
        var search = TableSearch(.name("Puma"), .seat)
        let seen = try Self.view((2, "Puma", true), (3, "Puma", true))
        #expect(search.next(for: seen) == .ambiguous("Puma", [try Self.peer(2), try Self.peer(3)]))
        #expect(search.next(for: seen) == nil)
        #expect(search.description != nil)
        var exact = TableSearch(.name(try Self.peer(3).short), .seat)
        #expect(exact.next(for: seen) == .join(try Self.peer(3)))
        // A stranger cannot hide a table by taking the host's whole PeerID as its name.
        let whole = try Self.peer(3).description
        var disguised = TableSearch(.name(whole), .seat)
        let both = try Self.view((2, whole, true), (3, "Puma", true))
        #expect(disguised.next(for: both) == .join(try Self.peer(3)))
    }

    @Test("Without a name, the first suitable table is joined")
    func anybody() throws {
        let seen = try Self.view((2, "Owl", false), (3, "Puma", true), (4, "Wren", true))
        var seat = TableSearch(nil, .seat)
        #expect(seat.next(for: try Self.view((2, "Owl", false))) == nil)
        #expect(seat.next(for: seen) == .join(try Self.peer(3)))
        var watch = TableSearch(nil, .watch)
        #expect(watch.next(for: seen) == .join(try Self.peer(2)))
    }

    @Test("An address is joined without discovery, and a search that was stopped finds nothing")
    func addressAndStop() throws {
        let address = TransportAddress(scheme: "tcp", value: "127.0.0.1:4000")
        #expect(try GameCommand.Target("tcp://127.0.0.1:4000") == .address(address))
        #expect(try GameCommand.Target("127.0.0.1:4000") == .address(address))
        #expect(try GameCommand.Target("Puma") == .name("Puma"))
        var search = TableSearch(.address(address), .seat)
        #expect(search.next(for: try Self.view()) == .joinAddress(address))
        #expect(search.next(for: try Self.view()) == nil)
        var stopped = TableSearch(.name("Puma"), .seat)
        stopped.stop()
        #expect(stopped.next(for: try Self.view((2, "Puma", true))) == nil)
    }
}
