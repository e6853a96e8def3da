import FourInARow
import NighCore

/// Games of Four in a Row at one table, with a host, a guest and watchers. On some of the routes between them, messages
/// are changed, swapped, repeated, dropped and invented.
///
/// What each of them may believe is computed here independently, from the bytes and the protocol's page.
enum TableTarget {
    /// What an input reached, so that a test can see that inputs get anywhere.
    struct Coverage {
        /// Games that ended with a line.
        var lines = 0
        /// Games that were broken off.
        var breaches = 0
        /// Games after the first.
        var rematches = 0
        /// Whether no message was tampered with.
        var isCalm = false
    }

    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Coverage {
        var simulation = TableSimulation(
            tampersToHost: mutator.oneIn(3), tampersToVisitors: mutator.oneIn(3),
            // With few columns, a game soon has a line or a full board.
            columns: mutator.pick([2, 3, 7]))
        try simulation.addVisitor(mutator.oneIn(8) ? .watch : .seat)
        for _ in 0..<(24 + mutator.number(below: 120)) { try step(&simulation, &mutator) }
        try simulation.deliverAllAndCheck()
        if mutator.oneIn(64) { try flood(&simulation, &mutator) }
        simulation.coverage.isCalm = !simulation.tampersToHost && !simulation.tampersToVisitors
        return simulation.coverage
    }

    private static func step(_ simulation: inout TableSimulation, _ mutator: inout Mutator) throws {
        switch mutator.number(below: 40) {
        case 32...:
            // Without this, hardly any game would end.
            try simulation.deliverAll()
            try simulation.actAsHost(action(simulation, .red, &mutator))
            try simulation.deliverAll()
            try simulation.actAsGuest(action(simulation, .yellow, &mutator))
        case 0...4: try simulation.actAsHost(action(simulation, .red, &mutator))
        case 5...9: try simulation.actAsGuest(action(simulation, .yellow, &mutator))
        case 10...17:
            guard let index = randomVisitor(simulation, &mutator) else { return }
            if simulation.tampersToHost, mutator.oneIn(8) {
                tamper(&simulation, index, toHost: true, &mutator)
            }
            try simulation.deliverToHost(from: index)
        case 18...27:
            guard let index = randomVisitor(simulation, &mutator) else { return }
            if simulation.tampersToVisitors, mutator.oneIn(12) {
                tamper(&simulation, index, toHost: false, &mutator)
            }
            try simulation.deliverToVisitor(index)
        case 28: try simulation.addVisitor(.seat)
        case 29: if mutator.oneIn(2) { try simulation.addVisitor(.watch) }
        case 30:
            guard mutator.oneIn(4), let index = randomVisitor(simulation, &mutator) else { return }
            try simulation.leave(index)
        default:
            try TableMessageCheck.check(
                mutator.perhapsChanged(simulation.recentMessage(&mutator), with: simulation.recentMessages))
        }
    }

    private static func randomVisitor(_ simulation: TableSimulation, _ mutator: inout Mutator) -> Int? {
        guard !simulation.visitors.isEmpty else { return nil }
        // The guest has the most to send.
        if mutator.oneIn(2), let guest = simulation.guestIndex { return guest }
        return mutator.number(below: simulation.visitors.count)
    }

    private static func action(_ simulation: TableSimulation, _ disc: Disc, _ mutator: inout Mutator)
        -> FourInARow.Action
    {
        switch mutator.number(below: 48) {
        case 0: return .resign
        case 1...6: return .rematch
        case 7...10: return .say(words[mutator.number(below: words.count)])
        // A player that keeps to one column soon has a line or a full column.
        case 11...30: return .move(Column.allCases[disc == .red ? 0 : 1])
        default: return .move(Column.allCases[mutator.number(below: simulation.columns)])
        }
    }

    private static let words: [Words] = ["hello", "well played", "ça va?", "👩‍👩‍👧‍👦"].compactMap { Words($0) }

    // MARK: Tampering

    private static func tamper(
        _ simulation: inout TableSimulation, _ index: Int, toHost: Bool, _ mutator: inout Mutator
    ) {
        var messages = toHost ? simulation.visitors[index].toHost : simulation.visitors[index].fromHost
        let before = messages
        let place = mutator.number(below: messages.count)
        switch mutator.number(below: 9) {
        case 0: if !messages.isEmpty { messages.remove(at: place) }
        case 1: if !messages.isEmpty { messages.insert(messages[place], at: 0) }
        case 2: if !messages.isEmpty { messages.swapAt(0, place) }
        case 3:
            if !messages.isEmpty {
                messages[0] = mutator.perhapsChanged(messages[0], with: simulation.recentMessages)
            }
        case 4:
            messages.insert(
                mutator.perhapsChanged(simulation.recentMessage(&mutator), with: simulation.recentMessages),
                at: 0)
        case 5:
            // A message for another receiver.
            let other = simulation.visitors[mutator.number(below: simulation.visitors.count)]
            if let bytes = (mutator.oneIn(2) ? other.toHost : other.fromHost).first {
                messages.insert(bytes, at: 0)
            }
        default:
            messages.insert(
                toHost ? request(simulation, &mutator) : happening(simulation, index, &mutator), at: 0)
        }
        guard messages != before else { return }
        simulation.visitors[index].isClean = false
        if toHost {
            simulation.visitors[index].toHost = messages
        } else {
            simulation.visitors[index].fromHost = messages
        }
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// Returns a number near `value`, mostly `value` itself.
    private static func near(_ value: UInt32, _ mutator: inout Mutator) -> [UInt8] {
        switch mutator.number(below: 12) {
        case 0: number(value &- 1)
        case 1: number(value &+ 1)
        case 2: number(value &- UInt32(mutator.number(below: 9)))
        case 3: number(UInt32(truncatingIfNeeded: mutator.pick(Mutator.edges)))
        default: number(value)
        }
    }

    private static func phrase(_ mutator: inout Mutator) -> [UInt8] {
        let text = Array(mutator.pick(words).description.utf8)
        return [UInt8(text.count)] + text
    }

    /// Returns a request that a guest could have sent.
    private static func request(_ simulation: TableSimulation, _ mutator: inout Mutator) -> [UInt8] {
        let head =
            near(simulation.host.table.happeningCount, &mutator)
            + near(simulation.host.table.game?.number ?? 0, &mutator)
        let column = UInt8(mutator.number(below: simulation.columns))
        switch mutator.number(below: 8) {
        case 0: return [1, 16] + head + [2]
        case 1: return [1, 16] + head + [3]
        case 2: return [1, 16] + head + [4] + phrase(&mutator)
        case 3: return [1, 17, UInt8(mutator.number(below: 8))]
        case 4: return [1, 16] + head + [1, column, UInt8(mutator.number(below: 4))]
        default: return [1, 16] + head + [1, column, 0]
        }
    }

    /// Returns a message that a host could have sent next.
    private static func happening(_ simulation: TableSimulation, _ index: Int, _ mutator: inout Mutator)
        -> [UInt8]
    {
        let count = simulation.visitors[index].table.table?.happeningCount ?? 0
        let head: [UInt8] = [1, 2] + near(count &+ 1, &mutator)
        let disc = UInt8(mutator.number(below: 2))
        switch mutator.number(below: 12) {
        case 0: return head + [2, disc]
        case 1: return head + [3, disc]
        case 2: return head + [4, disc] + phrase(&mutator)
        case 3: return head + [5] + phrase(&mutator)
        case 4: return head + [6]
        case 5: return head + [7, disc, UInt8(mutator.number(below: 8))]
        case 6: return head + [8, 0, UInt8(mutator.number(below: 70))]
        case 7:
            let moves = (0..<mutator.number(below: 9)).map { _ in
                UInt8(mutator.number(below: simulation.columns))
            }
            let game = [1] + near(1, &mutator) + [disc, 0, UInt8(moves.count)] + moves
            return [1, 1] + near(count, &mutator) + [UInt8(mutator.number(below: 2)), 0, 1]
                + phrase(&mutator) + game
        default:
            let column = UInt8(mutator.number(below: simulation.columns))
            return head + [1, disc, column, mutator.oneIn(8) ? UInt8(mutator.number(below: 4)) : 0]
        }
    }

    // MARK: Many messages

    /// Checks that no side keeps more, however many messages there are.
    private static func flood(_ simulation: inout TableSimulation, _ mutator: inout Mutator) throws {
        for _ in 0..<300 {
            guard let index = randomVisitor(simulation, &mutator) else { return }
            simulation.visitors[index].isClean = false
            let visitor = simulation.visitors[index]
            try simulation.receiveAtHost(request(simulation, &mutator), from: visitor.id)
            var table = visitor.table
            for _ in 0..<4 {
                _ = table.received(happening(simulation, index, &mutator))
                // The guest talks all the time, and nobody answers.
                let remark = FourInARow.Action.say(mutator.pick(words))
                if table.breach(of: remark) == nil { _ = try? table.act(remark) }
            }
            simulation.visitors[index].table = table
            simulation.visitors[index].reset()
        }
        let held =
            ValueCount.of(simulation.host)
            + simulation.visitors.reduce(0) { max($0, ValueCount.of($1.table)) }
        if held > valueLimit { throw Finding("tables hold \(held) values after many messages") }
    }

    /// Enough for a whole game, its watchers and a hundred waiting remarks, with room to spare.
    private static let valueLimit = 3_000
}

/// Counts the plain values that a value consists of, including all that it holds.
enum ValueCount {
    static func of(_ value: Any) -> Int {
        if let text = value as? String { return 1 + text.utf8.count / 8 }
        return Mirror(reflecting: value).children.reduce(1) { $0 + of($1.value) }
    }
}

/// Checks that a message that can be read is written as it was, and read again as the same message.
enum TableMessageCheck {
    static func check(_ bytes: [UInt8]) throws {
        guard let message = try? TableMessage(bytes) else { return }
        let written = message.bytes
        if written != bytes { throw Finding("\(bytes) is read as \(message), which is written \(written)") }
        guard let again = try? TableMessage(written), again == message else {
            throw Finding("\(written) is not read as it was written")
        }
    }
}
