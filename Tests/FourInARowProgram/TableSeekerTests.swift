import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct TableSeekerTests {
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

    @Test("A name is looked for until it is seen, whatever its case, and then once")
    func name() throws {
        var seeker = TableSeeker(.name("puma"), .seat)
        #expect(seeker.look(at: try Self.view((3, "Owl", true))) == nil)
        #expect(seeker.description == "puma's table")
        // Only the host knows whether the seat is free, and tells those who ask.
        let seen = try Self.view((2, "Puma", false), (3, "Owl", true))
        #expect(seeker.look(at: seen) == .join(try Self.peer(2)))
        #expect(seeker.look(at: seen) == nil)
        #expect(seeker.description == nil)
    }

    @Test("Of two with one name neither is taken, which is said once; the PeerID tells them apart")
    func twoOfOneName() throws {
        var seeker = TableSeeker(.name("Puma"), .seat)
        let seen = try Self.view((2, "Puma", true), (3, "Puma", true))
        #expect(seeker.look(at: seen) == .ambiguous("Puma", [try Self.peer(2), try Self.peer(3)]))
        #expect(seeker.look(at: seen) == nil)
        #expect(seeker.description != nil)
        var exact = TableSeeker(.name(try Self.peer(3).short), .seat)
        #expect(exact.look(at: seen) == .join(try Self.peer(3)))
    }

    @Test("Without a name it is the first table that suits")
    func anybody() throws {
        let seen = try Self.view((2, "Owl", false), (3, "Puma", true), (4, "Wren", true))
        var seat = TableSeeker(nil, .seat)
        #expect(seat.look(at: try Self.view((2, "Owl", false))) == nil)
        #expect(seat.look(at: seen) == .join(try Self.peer(3)))
        var watch = TableSeeker(nil, .watch)
        #expect(watch.look(at: seen) == .join(try Self.peer(2)))
    }

    @Test("An address needs nobody to be seen, and what was stopped looks for nothing")
    func addressAndStop() throws {
        let address = TransportAddress(scheme: "tcp", value: "127.0.0.1:4000")
        #expect(Errand.Target("tcp://127.0.0.1:4000") == .address(address))
        #expect(Errand.Target("Puma") == .name("Puma"))
        var seeker = TableSeeker(.address(address), .seat)
        #expect(seeker.look(at: try Self.view()) == .joinAddress(address))
        #expect(seeker.look(at: try Self.view()) == nil)
        var stopped = TableSeeker(.name("Puma"), .seat)
        stopped.stop()
        #expect(stopped.look(at: try Self.view((2, "Puma", true))) == nil)
    }
}
