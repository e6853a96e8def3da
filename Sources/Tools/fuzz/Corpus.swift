import NighCore
import NighTestKit

/// A sequence of events that a session went through, to be replayed with changes.
struct Scenario {
    let name: String
    /// Which of the two identities the session in the harness has.
    let own: Int
    var behavior: ProgramBehavior
    var events: [Event]
}

/// What two real sessions did to each other, recorded as the events at one of them.
enum Corpus {
    static func record() throws -> [Scenario] {
        var scenarios: [Scenario] = []
        for own in 0..<2 {
            scenarios += [
                try recordScenario("accepts and talks", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try exchange(recorder)
                    try recorder.peer(.leave)
                },
                try recordScenario("dials and talks", own) { recorder in
                    try recorder.own(.sight(true))
                    try recorder.own(.act(.invite))
                    try exchange(recorder)
                    try recorder.own(.act(.leave))
                },
                try recordScenario("declines", own, ProgramBehavior(answer: .decline)) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.pass(1_000)
                },
                try recordScenario("does not answer", own, ProgramBehavior(answer: .none)) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.pass(25_000)
                },
                try recordScenario("both invite", own) { recorder in
                    try recorder.own(.sight(true))
                    try recorder.withoutDelivery {
                        try recorder.own(.act(.invite))
                        try recorder.peer(.inviteByAddress)
                    }
                    try recorder.own(.act(.sendSmall))
                    try recorder.peer(.sendSmall)
                },
                try recordScenario("is resumed by the peer", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.peer(.sendSmall)
                    try recorder.cutAll()
                    try recorder.own(.act(.sendSmall))
                    try recorder.peer(.sendBulk)
                    try recorder.pass(4_000)
                    try recorder.own(.act(.sendLarge))
                    try recorder.pass(500)
                },
                try recordScenario("resumes", own) { recorder in
                    try recorder.own(.sight(true))
                    try recorder.own(.act(.invite))
                    try recorder.peer(.sendSmall)
                    try recorder.withoutDelivery {
                        try recorder.own(.act(.sendBulk))
                        try recorder.peer(.sendLarge)
                    }
                    try recorder.cutAll()
                    try recorder.peer(.sendSmall)
                    try recorder.pass(4_000)
                },
                try recordScenario("reads late", own, ProgramBehavior(readsInbox: true)) { recorder in
                    try recorder.peer(.inviteByAddress)
                    for _ in 0..<4 { try recorder.peer(.sendBulk) }
                    try recorder.pass(1_000)
                    try recorder.own(.act(.read))
                    try recorder.peer(.sendLarge)
                    try recorder.own(.act(.read))
                },
                try recordScenario("resumes with streams", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.peer(.sendSmall)
                    try recorder.own(.act(.openStream))
                    try recorder.peer(.openStream)
                    try recorder.peer(.openFileStream)
                    try recorder.own(.act(.openFileStream))
                    for action: Action in [.writeStreams, .readStreams, .writeStreams, .finishStream] {
                        try recorder.peer(action)
                        try recorder.own(.act(action))
                    }
                    try recorder.withoutDelivery {
                        try recorder.own(.act(.writeStreams))
                        try recorder.peer(.writeStreams)
                    }
                    try recorder.cutAll()
                    try recorder.pass(4_000)
                    for action: Action in [.readStreams, .cancelStream, .cancelStream] {
                        try recorder.own(.act(action))
                        try recorder.peer(action)
                    }
                    try recorder.pass(200)
                },
                try recordScenario("resumes with channels and calls", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.peer(.sendSmall)
                    try recorder.own(.act(.toggleChannel))
                    for action: Action in [.openChannelStream, .writeLayerStreams, .ask, .readChannel] {
                        try recorder.peer(action)
                        try recorder.own(.act(action))
                    }
                    try recorder.withoutDelivery {
                        try recorder.own(.act(.ask))
                        try recorder.peer(.ask)
                        try recorder.peer(.writeLayerStreams)
                    }
                    try recorder.cutAll()
                    try recorder.pass(4_000)
                    for action: Action in [.openCallStream, .writeLayerStreams, .sendInChannel, .readChannel]
                    {
                        try recorder.own(.act(action))
                        try recorder.peer(action)
                    }
                    for action: Action in [.dropLayerStreams, .toggleChannel, .ask, .cancelTasks] {
                        try recorder.peer(action)
                        try recorder.own(.act(action))
                    }
                    try recorder.pass(200)
                },
                try recordScenario("sends packets", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.peer(.sendSmall)
                    try recorder.peer(.sendUnreliable)
                    try recorder.own(.act(.sendUnreliable))
                    try recorder.pass(300)
                    for action: Action in [.sendUnreliable, .sendNewest, .pingByPackets, .sendNewest] {
                        try recorder.peer(action)
                        try recorder.own(.act(action))
                    }
                    try recorder.pass(500)
                    try recorder.withoutDelivery {
                        try recorder.own(.act(.sendUnreliable))
                        try recorder.peer(.sendUnreliable)
                        try recorder.pass(1_500)
                    }
                    try recorder.own(.act(.sendUnreliable))
                    try recorder.peer(.sendUnreliable)
                    try recorder.pass(2_500)
                },
                try recordScenario("is quiet", own) { recorder in
                    try recorder.peer(.inviteByAddress)
                    try recorder.pass(12_000)
                    try recorder.peer(.ping)
                    try recorder.own(.act(.ping))
                },
            ]
        }
        return scenarios
    }

    private static func exchange(_ recorder: ScenarioRecorder) throws {
        let actions: [Action] = [
            .sendSmall, .ping, .sendLarge, .sendSmallKind, .sendBulk, .sendLargeKind, .sendUnreliable,
        ]
        for action in actions {
            try recorder.peer(action)
            try recorder.own(.act(action))
        }
        try recorder.pass(200)
    }

    private static func recordScenario(
        _ name: String, _ own: Int, _ behavior: ProgramBehavior = ProgramBehavior(),
        _ body: (ScenarioRecorder) throws -> Void
    ) throws -> Scenario {
        let loop = VirtualEventLoop()
        var events: [Event] = []
        do {
            let recorder = try ScenarioRecorder(own: own, behavior: behavior, loop: loop)
            try body(recorder)
            events = recorder.events
            try recorder.end()
        }
        // Sessions that nobody holds any more have some last work to do.
        try loop.runQueued()
        guard !events.isEmpty else { throw Finding("nothing happened in \"\(name)\"") }
        return Scenario(name: name, own: own, behavior: behavior, events: events)
    }
}

/// Two sessions on one loop, each in its own harness. The events at the first are recorded.
final class ScenarioRecorder {
    private let first: SessionHarness
    private let second: SessionHarness
    private(set) var events: [Event] = []
    /// The pipes of the first and the second session that are each other's ends, by index.
    private var wires: [(first: Int, second: Int)] = []
    /// The bytes for the first session on each wire that are no complete frame yet.
    private var unframed: [[UInt8]] = []
    private var sawPreface: [Bool] = []
    private var deliversAtOnce = true

    init(own: Int, behavior: ProgramBehavior, loop: VirtualEventLoop) throws {
        first = try SessionHarness(own, behavior: behavior, loop: loop)
        second = try SessionHarness(1 - own, behavior: ProgramBehavior(), loop: loop)
    }

    func own(_ event: Event) throws {
        try write(event)
        try deliverAll()
    }

    func peer(_ action: Action) throws {
        try second.perform(.act(action))
        try deliverAll()
    }

    func pass(_ milliseconds: Int) throws {
        var left = milliseconds
        while left > 0 {
            let step = min(left, 250)
            try write(.pass(milliseconds: step))
            try deliverAll()
            left -= step
        }
    }

    func withoutDelivery(_ body: () throws -> Void) throws {
        deliversAtOnce = false
        try body()
        deliversAtOnce = true
        try deliverAll()
    }

    func cutAll() throws {
        for wire in wires {
            try write(.cut(wire.first))
            try second.perform(.cut(wire.second))
        }
        wires = []
        try deliverAll()
    }

    func end() throws {
        try first.close()
        try second.close()
    }

    private func write(_ event: Event) throws {
        events.append(event)
        try first.perform(event)
    }

    private func deliverAll() throws {
        guard deliversAtOnce else { return }
        for _ in 0..<1_000 {
            var didMove = false
            while second.transport.hasDial {
                try openWire {
                    try write(.open)
                } and: {
                    try second.perform(.answer)
                }
                didMove = true
            }
            while first.transport.hasDial {
                try openWire {
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

    private func openWire(_ open: () throws -> Void, and answer: () throws -> Void) throws {
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
        for packet in own.port?.takeSent() ?? [] {
            try second.perform(.packet(wire.second, packet, HarnessPort.peer))
            didMove = true
        }
        for packet in other.port?.takeSent() ?? [] {
            try write(.packet(wire.first, packet, HarnessPort.peer))
            didMove = true
        }
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
