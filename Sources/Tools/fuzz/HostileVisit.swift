import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Synchronization

/// A program with actors, and a peer that plays foul, over memory in virtual time.
///
/// `@unchecked Sendable`: everything happens on one virtual loop.
final class HostileVisit: @unchecked Sendable {
    private let pair: VirtualPair<Calls>
    private let material: ActorTarget.Material
    private let actors: NighActors.ActorSystem
    private let peer: HostilePeer
    private let tally = Tally()
    /// The actors that are not published.
    private let hidden: [any DistributedActor]
    /// The streams of the peer for calls, and the names that have numbers in each.
    private var calls: [String: (stream: ByteStream, lastNumber: UInt64, names: [String])] = [:]
    /// Its other streams: of values, and for nothing.
    private var streams: [ByteStream] = []
    /// The numbers of actors that it was given.
    private var known: [String] = []
    private var tasks: [Task<Void, Never>] = []
    private var reach = ActorTarget.Reach()

    init(_ mutator: Mutator, _ material: ActorTarget.Material, on loop: VirtualEventLoop) throws {
        self.material = material
        pair = try VirtualPair(on: loop, configure: { $0.security = .none }) { Calls() }
        actors = try ActorSystem(pair.puma.session, timeout: .seconds(10))
        let clock = pair.puma.session.clock
        peer = HostilePeer(mutator, material, clock: clock)
        hidden = [Clerk.Helper(actors, tally), Porter.Trainee(actors, tally)]
        try pair.lynx.layer.add(peer)
        try actors.publish(Clerk(actors, tally, as: .desk, clock: clock), as: "desk", through: $Desk.self)
        try actors.publish(
            Clerk(actors, tally, as: .none, clock: clock), as: "closed", through: $Desk.self, for: .paired)
        try actors.publish(Porter(actors, tally), as: "porter")
        start { visit in
            for await list in visit.actors.listing(of: $Guest.self) { visit.reach.listed += list.count }
        }
        try pair.run(.milliseconds(10))
    }

    private func start(_ work: @escaping @Sendable (HostileVisit) async -> Void) {
        tasks.append(Task(executorPreference: pair.loop) { [unowned self] in await work(self) })
    }

    func step(_ mutator: inout Mutator) throws {
        switch mutator.number(below: 16) {
        case 0...6: for _ in 0...mutator.number(below: 4) { call(&mutator) }
        case 7: sendRecord(&mutator)
        case 8: open(anyStreamName(&mutator), &mutator)
        case 9: list(&mutator)
        case 10: sendValues(&mutator)
        case 11: peer.useStream(&mutator)
        case 12: callPeer()
        case 13:
            if mutator.oneIn(4) { streams = [] } else { streams.popLast()?.finish() }
        case 14: try pair.run(.milliseconds(mutator.pick([100, 1_000, 11_000, 31_000])))
        default: if mutator.oneIn(4) { pair.lynx.faults.cut() }
        }
        try pair.run(.milliseconds(mutator.pick([0, 0, 5])))
    }

    // MARK: The peer calls

    private func call(_ mutator: inout Mutator) {
        let index = mutator.number(below: material.methods.count)
        let method = method(index, &mutator)
        var actor = actorStreamName(&mutator)
        if mutator.oneIn(2) {
            // Where there is such a method.
            actor = method.hasPrefix("Porter") ? "@porter" : "@desk"
            if method.hasPrefix("Guest"), let number = known.last { actor = number }
        }
        guard var line = line(to: actor) else { return }
        let timeout: UInt32 = mutator.pick([0, 0, 1, 5_000, .max])
        let bytes = mutator.oneIn(4) ? mutator.pick(material.arguments) : material.arguments[index]
        let arguments = ByteSlice(mutator.perhapsChanged(bytes, with: material.arguments))
        line.lastNumber += 1
        if method.utf8.count > CallRecord.longestName || mutator.oneIn(2), line.names.count < 256 {
            let index = line.names.firstIndex(of: method) ?? line.names.count
            if index == line.names.count {
                line.names.append(method)
                send(.name(method), over: line.stream)
            }
            send(
                .numbered(
                    number: line.lastNumber, timeout: timeout, name: UInt16(index), content: arguments),
                over: line.stream)
        } else {
            send(
                .request(number: line.lastNumber, timeout: timeout, name: method, content: arguments),
                over: line.stream)
        }
        calls[actor] = line
    }

    /// The stream for the calls to an actor. If the last one has ended, another one is opened.
    private func line(to actor: String) -> (stream: ByteStream, lastNumber: UInt64, names: [String])? {
        if let line = calls[actor] {
            read(line.stream)
            if case .nothing = line.stream.poll() { return line }
        }
        guard let stream = open(actor) else { return nil }
        calls[actor] = (stream, 0, [])
        return calls[actor]
    }

    /// Reads the answers. Keeps the number of an actor, and counts refusals.
    private func read(_ stream: ByteStream) {
        while case .bytes(let bytes) = stream.poll() {
            var parser = StreamMessageParser()
            parser.append(bytes)
            // A read mostly has whole records.
            while let message = try? parser.next(limit: 1 << 20),
                let record = try? CallRecord(reading: message)
            {
                switch record {
                case .answer(_, .refused): reach.refusals += 1
                case .answer(_, .answer(let content)):
                    var reader = try? CBORSequenceReader(content)
                    let id = try? reader?.next(NighActors.ActorSystem.ActorID.self)
                    if let id, let number = id.description.split(separator: " ").first {
                        known.append("\(number)")
                    }
                default: break
                }
            }
        }
    }

    private func open(_ name: String) -> ByteStream? {
        try? pair.lynx.session.reference.openStream(named: name, to: pair.puma.session.id, for: .actors)
    }

    private func send(_ record: CallRecord, over stream: ByteStream) {
        _ = try? stream.tryWrite(record.frame)
    }

    private func actorStreamName(_ mutator: inout Mutator) -> String {
        let names = ["@desk", "@desk", "@desk", "@porter", "@porter", "@closed", "@nobody"]
        guard mutator.oneIn(6) else { return mutator.pick(names + known) }
        var name = mutator.pick(names + ["#1", "#ffffffffffffffff", "#-1", "#+1", "#zz", "#", "@"])
        if mutator.oneIn(2) { mutator.change(&name, with: names) }
        return name.hasPrefix("@") || name.hasPrefix("#") ? name : "@\(name)"
    }

    /// The name of a method, or what is like one.
    private func method(_ index: Int, _ mutator: inout Mutator) -> String {
        var method = material.methods[index]
        switch mutator.number(below: 8) {
        case 0...3: break
        case 4:
            // The method of another type.
            let parts = mutator.pick(material.methods).split(separator: " ")
            method = "\(mutator.pick(["Desk", "Guest", "Clerk", "Porter"])).x \(parts.last ?? "")"
        case 5:
            // The method of a type inside.
            let signature = method.split(separator: " ").last ?? ""
            let inner = mutator.pick(["6HelperC", "7TraineeC"])
            method = "\(mutator.pick(["Desk", "Clerk", "Porter"])).x \(inner)\(signature)"
        case 6:
            method = "\(mutator.pick(["Desk", "Porter"])).x \(mutator.pick(material.pieces))"
        default:
            for _ in 0...mutator.number(below: 3) { mutator.change(&method, with: material.pieces) }
        }
        return method
    }

    /// Sends a record that does not follow from the others, or no record.
    private func sendRecord(_ mutator: inout Mutator) {
        guard let line = line(to: actorStreamName(&mutator)) else { return }
        let number = line.lastNumber
        let records: [CallRecord] = [
            .cancel(number: number), .cancel(number: number &+ 1), .answer(number: 1, .unknownName),
            .credit(1 << 20),
            .numbered(number: number + 2, timeout: 0, name: 255, content: ByteSlice([])), .name("x"),
            .request(number: number, timeout: 0, name: "x", content: ByteSlice([])),
        ]
        var bytes = mutator.pick(records).frame.bytes
        if mutator.oneIn(2) { mutator.change(&bytes, with: [bytes]) }
        _ = try? line.stream.tryWrite(ByteSlice(bytes))
    }

    // MARK: The peer streams and lists

    private func anyStreamName(_ mutator: inout Mutator) -> String {
        mutator.pick(["", "@", "#", ">", ">-1", ">x", "?", ">18446744073709551616", "@é", "\u{202E}"])
    }

    private func open(_ name: String, _ mutator: inout Mutator) {
        guard let stream = open(name) else { return }
        streams.append(stream)
        _ = try? stream.tryWrite(ByteSlice(mutator.bytes(mutator.pick([0, 1, 9, 300]))))
    }

    private func list(_ mutator: inout Mutator) {
        let isNew = mutator.oneIn(2)
        let open = isNew ? open(ActorStream.listing) : streams.last { $0.name == ActorStream.listing }
        guard let open else { return }
        if isNew { streams.append(open) }
        var bytes: [UInt8] = []
        for number in 0..<mutator.pick([1, 3, 300]) {
            let many = ListingRecord.published(name: "\(number)", contract: "Guest", version: 1).frame.bytes
            bytes +=
                mutator.oneIn(10)
                ? mutator.perhapsChanged(mutator.pick(material.records), with: material.records) : many
        }
        _ = try? open.tryWrite(ByteSlice(bytes))
    }

    /// Opens a stream of values, which a call may have named or may name later.
    private func sendValues(_ mutator: inout Mutator) {
        let count = mutator.oneIn(10) ? 300 : 1
        for _ in 0..<count {
            let number = mutator.oneIn(8) ? mutator.pick(Mutator.edges) : UInt64(mutator.number(below: 30))
            guard let stream = open(">\(number)") else { return }
            streams.append(stream)
            for value in 0..<mutator.number(below: 4) {
                let content = mutator.perhapsChanged([0, UInt8(value)], with: material.arguments)
                _ = try? stream.tryWrite(ByteSlice(StreamMessageParser.header(of: content.count) + content))
            }
            if mutator.oneIn(2) { stream.finish() }
        }
        if streams.count > 300 { streams.removeFirst(100) }
    }

    // MARK: The program calls

    private func callPeer() {
        start { visit in
            guard
                let guest = try? visit.actors.actor(
                    $Guest.self, named: "guest", on: visit.pair.asPumaSeesLynx),
                (try? await guest.name()) != nil
            else { return }
            visit.reach.answers += 1
        }
    }

    // MARK: Checks

    func check() throws {
        guard tally.forbidden == 0 else { throw Finding("a method has run that the peer may not call") }
        let counts = actors.counts
        guard counts.listed <= 256, counts.streams <= 512, counts.methods <= 60 else {
            throw Finding("tables hold \(counts)")
        }
        let running = pair.puma.layer.counts
        guard running.running <= Calls.mostRunningOfPeer else { throw Finding("calls: \(running)") }
    }

    /// Makes a call of which nothing is wrong.
    private func checkThatItAnswers() throws {
        let outcome = Mutex<CallOutcome?>(nil)
        start { visit in
            let answered = try? await visit.pair.lynx.layer.call(
                visit.material.methods[0], ByteSlice(visit.material.arguments[0]),
                at: visit.pair.asLynxSeesPuma, actor: "@desk", timeout: .seconds(10))
            outcome.withLock { $0 = answered }
        }
        try pair.run(.seconds(11))
        let words = outcome.withLock { "\(String(describing: $0))" }
        guard case .answer = outcome.withLock(\.self) else { throw Finding("a right call gets \(words)") }
    }

    /// Closes both sessions, after which nothing may be left.
    func end() throws -> ActorTarget.Reach {
        for line in calls.values { read(line.stream) }
        (calls, streams) = ([:], [])
        try pair.run(.seconds(70))
        try check()
        try checkThatItAnswers()
        try pair.close()
        try pair.run(.seconds(70))
        for task in tasks { task.cancel() }
        try pair.run(.seconds(1))
        try check()
        guard pair.puma.layer.counts == (0, 0, 0), actors.counts.listed + actors.counts.streams == 0 else {
            throw Finding("left at the end: \(pair.puma.layer.counts), \(actors.counts)")
        }
        let pending = pair.loop.pending
        guard pending.work == 0, pending.timers < 10 else { throw Finding("\(pending) are left") }
        reach.calls = tally.allowed
        reach.values = peer.values
        return reach
    }
}
