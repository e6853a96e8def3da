import NighCore
import NighTestKit

/// A sequence of events that a session went through, to be replayed with changes.
struct Scenario {
    let name: String
    /// Which of the two identities the session on stage has.
    let own: Int
    var manners: Manners
    var events: [Event]
}

/// What two real sessions did to each other, recorded as the events at one of them.
enum Corpus {
    static func record() throws -> [Scenario] {
        var scenarios: [Scenario] = []
        for own in 0..<2 {
            scenarios += [
                try rehearse("accepts and talks", own) { play in
                    try play.peer(.inviteByAddress)
                    try talk(play)
                    try play.peer(.leave)
                },
                try rehearse("dials and talks", own) { play in
                    try play.own(.sight(true))
                    try play.own(.act(.invite))
                    try talk(play)
                    try play.own(.act(.leave))
                },
                try rehearse("declines", own, Manners(answer: .decline)) { play in
                    try play.peer(.inviteByAddress)
                    try play.pass(1_000)
                },
                try rehearse("does not answer", own, Manners(answer: .none)) { play in
                    try play.peer(.inviteByAddress)
                    try play.pass(25_000)
                },
                try rehearse("both invite", own) { play in
                    try play.own(.sight(true))
                    try play.withoutSettling {
                        try play.own(.act(.invite))
                        try play.peer(.inviteByAddress)
                    }
                    try play.own(.act(.sendSmall))
                    try play.peer(.sendSmall)
                },
                try rehearse("is resumed by the peer", own) { play in
                    try play.peer(.inviteByAddress)
                    try play.peer(.sendSmall)
                    try play.cutAll()
                    try play.own(.act(.sendSmall))
                    try play.peer(.sendBulk)
                    try play.pass(4_000)
                    try play.own(.act(.sendLarge))
                    try play.pass(500)
                },
                try rehearse("resumes", own) { play in
                    try play.own(.sight(true))
                    try play.own(.act(.invite))
                    try play.peer(.sendSmall)
                    try play.withoutSettling {
                        try play.own(.act(.sendBulk))
                        try play.peer(.sendLarge)
                    }
                    try play.cutAll()
                    try play.peer(.sendSmall)
                    try play.pass(4_000)
                },
                try rehearse("reads late", own, Manners(readsInbox: true)) { play in
                    try play.peer(.inviteByAddress)
                    for _ in 0..<4 { try play.peer(.sendBulk) }
                    try play.pass(1_000)
                    try play.own(.act(.read))
                    try play.peer(.sendLarge)
                    try play.own(.act(.read))
                },
                try rehearse("is quiet", own) { play in
                    try play.peer(.inviteByAddress)
                    try play.pass(12_000)
                    try play.peer(.ping)
                    try play.own(.act(.ping))
                },
            ]
        }
        return scenarios
    }

    private static func talk(_ play: Rehearsal) throws {
        for action: Action in [.sendSmall, .ping, .sendLarge, .sendBulk, .sendUnreliable] {
            try play.peer(action)
            try play.own(.act(action))
        }
        try play.pass(200)
    }

    private static func rehearse(
        _ name: String, _ own: Int, _ manners: Manners = Manners(), _ course: (Rehearsal) throws -> Void
    ) throws -> Scenario {
        let loop = VirtualEventLoop()
        var events: [Event] = []
        do {
            let play = try Rehearsal(own: own, manners: manners, loop: loop)
            try course(play)
            events = play.events
            try play.end()
        }
        // Sessions that nobody holds any more have some last work to do.
        try loop.runQueued()
        guard !events.isEmpty else { throw Finding("nothing happened in \"\(name)\"") }
        return Scenario(name: name, own: own, manners: manners, events: events)
    }
}

/// Two sessions on one loop, each on its own stage. The events at the first are recorded.
final class Rehearsal {
    private let first: Stage
    private let second: Stage
    private(set) var events: [Event] = []
    /// The pipes of the first and the second session that are each other's ends, by index.
    private var wires: [(first: Int, second: Int)] = []
    /// The bytes for the first session on each wire that are no complete frame yet.
    private var unframed: [[UInt8]] = []
    private var sawPreface: [Bool] = []
    private var settles = true

    init(own: Int, manners: Manners, loop: VirtualEventLoop) throws {
        first = try Stage(own, manners: manners, loop: loop)
        second = try Stage(1 - own, manners: Manners(), loop: loop)
    }

    func own(_ event: Event) throws {
        try write(event)
        try settle()
    }

    func peer(_ action: Action) throws {
        try second.perform(.act(action))
        try settle()
    }

    func pass(_ milliseconds: Int) throws {
        var left = milliseconds
        while left > 0 {
            let step = min(left, 250)
            try write(.pass(milliseconds: step))
            try settle()
            left -= step
        }
    }

    func withoutSettling(_ body: () throws -> Void) throws {
        settles = false
        try body()
        settles = true
        try settle()
    }

    func cutAll() throws {
        for wire in wires {
            try write(.cut(wire.first))
            try second.perform(.cut(wire.second))
        }
        wires = []
        try settle()
    }

    func end() throws {
        try first.close()
        try second.close()
    }

    private func write(_ event: Event) throws {
        events.append(event)
        try first.perform(event)
    }

    private func settle() throws {
        guard settles else { return }
        for _ in 0..<1_000 {
            var didMove = false
            while second.transport.hasDial {
                try join {
                    try write(.open)
                } and: {
                    try second.perform(.answer)
                }
                didMove = true
            }
            while first.transport.hasDial {
                try join {
                    try write(.answer)
                } and: {
                    try second.perform(.open)
                }
                didMove = true
            }
            for index in wires.indices where try move(index) { didMove = true }
            if !didMove { return }
        }
        throw Finding("two sessions never came to rest")
    }

    private func join(_ open: () throws -> Void, and answer: () throws -> Void) throws {
        try open()
        try answer()
        wires.append((first.pipes.count - 1, second.pipes.count - 1))
        unframed.append([])
        sawPreface.append(false)
    }

    /// Moves what both ends of a wire have written to the other end. The first session gets it frame by frame.
    private func move(_ index: Int) throws -> Bool {
        let wire = wires[index]
        let (own, other) = (first.pipes[wire.first], second.pipes[wire.second])
        let toOther = own.takeWritten()
        if !toOther.isEmpty { try second.perform(.bytes(wire.second, toOther)) }
        let toOwn = other.takeWritten()
        unframed[wire.first] += toOwn
        while let frame = takeFrame(wire.first) { try write(.bytes(wire.first, frame)) }
        var didMove = !toOther.isEmpty || !toOwn.isEmpty
        if other.isClosed, !own.isClosed {
            try write(.cut(wire.first))
            didMove = true
        }
        if own.isClosed, !other.isClosed {
            try second.perform(.cut(wire.second))
            didMove = true
        }
        return didMove
    }

    private func takeFrame(_ wire: Int) -> [UInt8]? {
        let bytes = unframed[wire]
        let count: Int
        if !sawPreface[wire] {
            count = 8
        } else {
            guard bytes.count >= 4 else { return nil }
            count = 4 + (Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2]))
        }
        guard bytes.count >= count else { return nil }
        sawPreface[wire] = true
        unframed[wire] = Array(bytes.dropFirst(count))
        return Array(bytes.prefix(count))
    }
}
