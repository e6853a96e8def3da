import NighCore
import NighWeb

/// The first message of a guest, and the beginning of its link: without encryption, and with one PeerID that it may
/// have.
enum GuestEntryTarget {
    private static let tokens = (0..<3).map { [UInt8](repeating: UInt8($0), count: 16) }
    private static let keys = (0..<3).map { [UInt8](repeating: 40 + UInt8($0), count: 32) }
    private static let valid: [[UInt8]] = keys.flatMap { key in ([[]] + tokens).map { [1] + key + $0 } }

    /// Returns whether the link was opened.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        try enter(&mutator)
        return try begin(&mutator)
    }

    /// Guests that try to enter with changed keys and tokens, of which two are invitations.
    private static func enter(_ mutator: inout Mutator) throws {
        var book = GuestBook()
        var now = Moment(nanoseconds: 0)
        for token in tokens.dropFirst() { book.invite(token, at: now) }
        var guestsByToken: [[UInt8]: Set<PeerID>] = [:]
        var guests: Set<PeerID> = []
        for _ in 0...mutator.number(below: 8) {
            let bytes = mutator.perhapsChanged(mutator.pick(valid), with: valid)
            guard let entry = GuestEntry(bytes) else {
                if valid.contains(bytes) { throw Finding("a proper entry is not understood") }
                continue
            }
            if [1] + entry.key + (entry.token ?? []) != bytes {
                throw Finding("\(bytes) is read differently")
            }
            now = now + .seconds(Int64(mutator.number(below: 90)))
            guard case .success(let peer) = book.enter(entry, from: "\(mutator.number(below: 3))", at: now)
            else {
                continue
            }
            if peer != entry.peer { throw Finding("a guest gets the PeerID of another key") }
            guard guests.insert(peer).inserted else { continue }
            guard let token = entry.token, tokens.dropFirst().contains(token) else {
                throw Finding("a guest comes in without an invitation")
            }
            guestsByToken[token, default: []].insert(peer)
        }
        if guestsByToken.values.contains(where: { $0.count > 1 }) {
            throw Finding("two guests came in with one token")
        }
        if Set(book.guests(at: now).map(\.id)) != guests {
            throw Finding("other guests are listed than came in")
        }
    }

    /// The link of a guest. It opens only if its hello names the expected PeerID.
    private static func begin(_ mutator: inout Mutator) throws -> Bool {
        var now = Moment(nanoseconds: 0)
        let peer = mutator.pick([
            SessionHarness.identities[1].peerID, SessionHarness.identities[1].peerID, Target.hellos[0].peer,
        ])
        let link = LinkMachine(
            side: .accepting, hello: Target.hellos[0], timings: Target.timings, expected: peer, now: now)
        var watch = LinkWatch(link)
        for frame in mutator.stream() {
            for slice in mutator.cut(frame) {
                link.receive(slice, now: now)
                try watch.step(now: now, fed: slice.count)
            }
            if mutator.oneIn(4) { watch.write() }
        }
        if watch.isOpen, link.peerHello?.peer != peer { throw Finding("a link opens for another guest") }
        for _ in 0..<3 {
            now = now + .seconds(20)
            try watch.pass(to: now)
        }
        if link.phase != .closed { throw Finding("the link is \(link.phase) after a minute of silence") }
        return watch.isOpen
    }
}
