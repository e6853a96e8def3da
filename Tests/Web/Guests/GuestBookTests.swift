import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

/// A book of guests and the time on its clock.
private final class Desk {
    var book = GuestBook()
    var now = Moment(nanoseconds: 1_000)

    static func token(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: 14) + [UInt8(number >> 8), UInt8(number & 0xFF)]
    }

    static func key(_ number: Int) -> [UInt8] {
        [UInt8(number >> 8), UInt8(number & 0xFF)] + [UInt8](repeating: 1, count: 30)
    }

    static func peer(_ number: Int) -> PeerID { entry(number).peer }

    static func entry(_ key: Int, _ token: [UInt8]? = nil) -> GuestEntry {
        guard let entry = GuestEntry([1] + Self.key(key) + (token ?? [])) else { preconditionFailure() }
        return entry
    }

    func invite(_ token: Int) { book.invite(Self.token(token), at: now) }

    /// Lets the guest with this key try to enter. Returns why it is refused; nil if it is let in.
    func enter(_ key: Int, token: Int? = nil, from source: String = "10.0.0.1") -> GuestRefusal? {
        switch book.enter(Self.entry(key, token.map(Self.token)), from: source, at: now) {
        case .success(let peer):
            #expect(peer == Self.peer(key))
            return nil
        case .failure(let refused): return refused.reason
        }
    }

    func leave(_ key: Int) { book.left(Self.peer(key), at: now) }
    func revoke(_ key: Int) -> Bool { book.revoke(Self.peer(key)) }

    /// Invites, and lets the guest with this key enter.
    func admit(_ key: Int) -> GuestRefusal? {
        invite(key)
        return enter(key, token: key)
    }

    /// Tries wrong tokens.
    func guess(_ count: Int, from source: String = "10.0.0.1") {
        for number in 0..<count { #expect(enter(9, token: 100 + number, from: source) == .unknown) }
    }

    func pass(_ time: Moment.Span) { now = now + time }

    var guests: [Guest] { book.guests(at: now) }
}

@Suite("A book of guests") struct GuestBookTests {
    private let desk = Desk()

    // MARK: Tokens

    @Test func `A token lets one guest in, who may repeat it, and no second one`() {
        desk.invite(1)
        #expect(desk.enter(1, token: 1) == nil)
        #expect(desk.enter(1, token: 1) == nil)
        #expect(desk.enter(2, token: 1) == .used)
        desk.leave(1)
        desk.leave(1)
        #expect(desk.enter(2, token: 1) == .used)
        #expect(desk.enter(1, token: 1) == nil)
        #expect(desk.guests.map(\.id) == [Desk.peer(1)])
    }

    @Test func `A key that is known needs no token, and is not asked for a right one`() {
        #expect(desk.enter(1) == .forgotten)
        #expect(desk.admit(1) == nil)
        for token in [nil, 99] {
            desk.leave(1)
            #expect(desk.enter(1, token: token) == nil)
        }
    }

    @Test func `A token counts for 5 minutes, and an old one is no attempt to guess one`() {
        desk.invite(1)
        desk.invite(2)
        desk.pass(.seconds(299))
        #expect(desk.enter(1, token: 1) == nil)
        desk.pass(.seconds(1))
        for _ in 0..<10 { #expect(desk.enter(2, token: 2) == .old) }
        #expect(desk.admit(3) == nil)
    }

    @Test func `A guest may come back for 12 hours after it was there last, however long it stays`() {
        #expect(desk.admit(1) == nil)
        desk.pass(.seconds(24 * 3_600))
        // A second page of the same browser.
        #expect(desk.enter(1) == nil)
        desk.leave(1)
        desk.leave(1)
        desk.pass(.seconds(12 * 3_600 - 1))
        #expect(desk.guests.map(\.isHere) == [false])
        #expect(desk.enter(1) == nil)
        desk.leave(1)
        desk.pass(.seconds(12 * 3_600))
        #expect(desk.guests.isEmpty)
        #expect(desk.enter(1) == .forgotten)
        #expect(desk.admit(1) == nil)
    }

    // MARK: Guessing

    @Test func `After five wrong tokens none counts from there for a minute, not even a right one`() {
        desk.invite(1)
        desk.guess(5)
        #expect(desk.enter(1, token: 1) == .tooMany(seconds: 61))
        desk.pass(.milliseconds(30_500))
        #expect(desk.enter(1, token: 1) == .tooMany(seconds: 30))
        #expect(desk.enter(1, token: 1, from: "10.0.0.2") == nil)
        desk.pass(.milliseconds(29_500))
        desk.invite(2)
        #expect(desk.enter(2, token: 2) == nil)
    }

    @Test func `Attempts during the pause do not make it longer`() {
        desk.guess(5)
        for _ in 0..<59 {
            desk.pass(.seconds(1))
            guard case .tooMany = desk.enter(9, token: 100) else {
                return _ = Issue.record("let through at \(desk.now)")
            }
        }
        desk.pass(.seconds(2))
        #expect(desk.enter(9, token: 100) == .unknown)
    }

    @Test func `A guest that is known comes back while its address has to wait`() {
        #expect(desk.admit(1) == nil)
        desk.leave(1)
        desk.guess(5)
        #expect(desk.enter(1) == nil)
    }

    @Test func `Wrong tokens of 256 addresses are counted, and the oldest address is forgotten`() {
        desk.guess(5, from: "first")
        for number in 0..<255 {
            desk.pass(.milliseconds(1))
            desk.guess(1, from: "source \(number)")
        }
        #expect(desk.enter(9, token: 100, from: "first") == .tooMany(seconds: 60))
        desk.guess(1, from: "another")
        #expect(desk.enter(9, token: 100, from: "first") == .unknown)
    }

    // MARK: Room

    @Test func `There are at most 16 guests, and the one that has been away longest makes room`() {
        for number in 1...16 {
            #expect(desk.admit(number) == nil)
            desk.pass(.seconds(1))
        }
        #expect(desk.admit(17) == .full)
        desk.leave(5)
        desk.pass(.seconds(1))
        desk.leave(3)
        // The token with which it did not come in still counts.
        #expect(desk.enter(17, token: 17) == nil)
        #expect(desk.enter(5) == .forgotten)
        #expect(desk.enter(3) == nil)
        #expect(desk.admit(18) == .full)
        #expect(desk.guests.count == 16)
    }

    @Test func `There are at most 32 invitations, and the oldest makes room`() {
        for number in 1...33 {
            desk.invite(number)
            desk.pass(.milliseconds(1))
        }
        #expect(desk.enter(1, token: 1) == .unknown)
        for number in 2...9 { #expect(desk.enter(number, token: number) == nil) }
    }

    // MARK: Revoking

    @Test func `A revoked guest hears so, and comes back with a new token only`() {
        #expect(desk.admit(1) == nil)
        #expect(desk.revoke(1))
        #expect(!desk.revoke(1) && !desk.revoke(2))
        for token in [nil, 1] { #expect(desk.enter(1, token: token) == .revoked) }
        #expect(desk.guests.isEmpty)
        desk.invite(2)
        #expect(desk.enter(1, token: 2) == nil)
        desk.leave(1)
        #expect(desk.enter(1) == nil)
    }

    @Test func `256 revoked guests are remembered`() {
        for number in 1...257 {
            #expect(desk.admit(number) == nil)
            #expect(desk.revoke(number))
            desk.pass(.seconds(10))
        }
        #expect(desk.enter(1) == .forgotten)
        #expect(desk.enter(2) == .revoked && desk.enter(257) == .revoked)
    }

    // MARK: The list

    @Test func `A guest is listed with its address, its age and whether it is here`() {
        desk.invite(1)
        #expect(desk.enter(1, token: 1, from: "10.0.0.7") == nil)
        desk.pass(.seconds(30))
        #expect(
            desk.guests == [Guest(id: Desk.peer(1), address: "10.0.0.7", age: .seconds(30), isHere: true)])
        #expect(desk.enter(1, from: "10.0.0.8") == nil)
        desk.leave(1)
        #expect(desk.guests.first?.isHere == true && desk.guests.first?.address == "10.0.0.8")
        desk.leave(1)
        #expect(desk.guests.first?.isHere == false)
    }

    @Test func `Bytes are counted while a guest is known`() {
        #expect(desk.admit(1) == nil)
        #expect(desk.book.count(10, of: Desk.peer(1)) == 10)
        desk.leave(1)
        #expect(desk.enter(1) == nil)
        #expect(desk.book.count(5, of: Desk.peer(1)) == 15)
        #expect(desk.book.count(5, of: Desk.peer(2)) == 0)
    }

    @Test(arguments: 0..<100)
    func `In any order, a token lets in one guest, at most 16 are known, and those here stay`(seed: UInt64) {
        let desk = Desk()
        var random = SeededGenerator(seed: seed)
        var usedBy: [Int: Int] = [:]
        var visits: [Int: Int] = [:]
        var invited = 0
        for _ in 0..<400 {
            let key = Int.random(in: 1...24, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                invited += 1
                desk.invite(invited)
            case 1...3:
                let token = Int.random(in: max(0, invited - 8)...invited, using: &random)
                let isKnown = desk.guests.contains { $0.id == Desk.peer(key) }
                guard desk.enter(key, token: token, from: "s\(key)") == nil else { continue }
                visits[key, default: 0] += 1
                if !isKnown {
                    #expect(usedBy[token] ?? key == key && token > 0, "two guests with token \(token)")
                    usedBy[token] = key
                }
            case 4: if desk.enter(key) == nil { visits[key, default: 0] += 1 }
            case 5:
                guard visits[key, default: 0] > 0 else { continue }
                visits[key, default: 0] -= 1
                desk.leave(key)
            case 6: if desk.revoke(key) { visits[key] = nil }
            default: desk.pass(.seconds(Int64.random(in: 0...200, using: &random)))
            }
            let guests = desk.guests
            #expect(guests.count <= GuestBook.mostGuests)
            let here = Set(guests.filter(\.isHere).map(\.id))
            #expect(here == Set(visits.filter { $0.value > 0 }.map { Desk.peer($0.key) }))
        }
    }
}
