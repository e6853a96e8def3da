import Distributed
import Nigh
import NighActors
import NighCalls
import NighCore
import NighTestKit
import Synchronization

/// A program with actors, and a peer that calls, lists, streams and answers what it likes, over memory in virtual time.
///
/// The numbers of actors are random. So a run of an input that uses one differs a little from the next run.
///
/// `@unchecked Sendable`: everything happens on one virtual loop.
final class ActorsTarget: @unchecked Sendable {
    /// The words of an honest peer. A hostile peer changes them.
    struct Material {
        /// The methods as they are named to peers, of all actors of the program.
        var methods: [String] = []
        /// The arguments of those methods.
        var arguments: [[UInt8]] = []
    }

    private static let material = Result { try recordMaterial() }

    private let pair: VirtualPair<Calls>
    private let material: Material
    private let actors: NighActors.ActorSystem
    private let peer: HostilePeer
    private let forbidden = ForbiddenCalls()
    /// The actors that are not published.
    private let hidden: Clerk.Helper
    private var input: Input
    /// The streams of the peer for calls, and the last number of each.
    private var lines: [String: (stream: ByteStream, lastNumber: UInt64)] = [:]
    /// Its other streams: of values, and for nothing.
    private var streams: [ByteStream] = []
    private var tasks: [Task<Void, Never>] = []

    static func run(_ input: inout Input) throws {
        let material = try material.get()
        let loop = VirtualEventLoop()
        do {
            let target = try ActorsTarget(input, material, on: loop)
            while !target.input.isAtEnd { try target.step() }
            try target.end()
        }
        // Sessions that nobody holds any more have some last work to do.
        try loop.runQueued()
    }

    private init(_ input: Input, _ material: Material, on loop: VirtualEventLoop) throws {
        self.input = input
        self.material = material
        pair = try VirtualPair(on: loop, configure: { $0.security = .none }) { Calls() }
        actors = try ActorSystem(pair.puma.session, timeout: .seconds(10))
        let clock = pair.puma.session.clock
        peer = HostilePeer(Input(input.reversed(300)), material, clock: clock)
        hidden = Clerk.Helper(actors, forbidden)
        try pair.lynx.layer.add(peer)
        let closed = Clerk(actors, forbidden, as: .none, clock: clock)
        try actors.publish(Clerk(actors, forbidden, as: .desk, clock: clock), as: "desk", through: $Desk.self)
        try actors.publish(closed, as: "closed", through: $Desk.self, for: .paired)
        try actors.publish(Porter(actors), as: "porter")
        start { target in for await _ in target.actors.listing(of: $Guest.self) {} }
        try pair.run(.milliseconds(10))
    }

    private func start(_ work: @escaping @Sendable (ActorsTarget) async -> Void) {
        tasks.append(Task(executorPreference: pair.loop) { [unowned self] in await work(self) })
    }

    // MARK: Material

    /// Records the messages of a program that calls all methods.
    private static func recordMaterial() throws -> Material {
        let pair = try VirtualPair(configure: { $0.security = .none }) { Calls() }
        let recorder = CallRecorder()
        try pair.lynx.layer.add(recorder)
        let actors = try ActorSystem(pair.puma.session)
        let (peer, clock) = (pair.asPumaSeesLynx, pair.puma.session.clock)
        Task(executorPreference: pair.loop) { try await callEverything(actors, at: peer, clock) }
        try pair.run()
        try expect(recorder.material.methods.count == 12, "recorded \(recorder.material.methods)")
        return recorder.material
    }

    private static func callEverything(
        _ actors: NighActors.ActorSystem, at peer: NighCore.Peer, _ clock: any Clock<Duration>
    ) async throws {
        let desk = try actors.actor($Desk.self, named: "desk", on: peer)
        let clerk = try actors.actor(Clerk.self, named: "desk", on: peer)
        let porter = try actors.actor(Porter.self, named: "porter", on: peer)
        let own = Clerk(actors, ForbiddenCalls(), as: .guest, clock: clock)
        let guest = try actors.share(own, through: $Guest.self)
        let letter = Letter(kind: .parcel(weight: 2.5), words: ["a": [1, nil, -128]], sender: clerk.id)
        _ = try? await desk.add(1, to: "text")
        _ = try? await desk.file(letter)
        _ = try? await desk.greet(guest)
        _ = try? await desk.own()
        _ = try? await desk.sum(RemoteStream(AsyncStream<Int> { $0.finish() }))
        _ = try? await desk.count(to: 7)
        _ = try? await actors.actor($Guest.self, named: "guest", on: peer).name()
        _ = try? await actors.actor($Vault.self, named: "desk", on: peer).unlock(7)
        _ = try? await clerk.secret()
        _ = try? await clerk.add(1, to: 2)
        _ = try? await porter.ring(3)
        _ = try? await porter.carry([letter, letter])
    }

    // MARK: The peer

    private func step() throws {
        switch input.number(below: 12) {
        case 0...4: for _ in 0...input.number(below: 4) { call() }
        case 5: sendRecord()
        case 6:
            open(
                stream: input.pick(["", "@", "#", ">", ">-1", ">x", "?", "@é", "\u{202E}"]), input.content())
        case 7: list()
        case 8: sendValues()
        case 9: peer.useStream()
        case 10: callPeer()
        default:
            if input.isUsual() {
                try pair.run(.milliseconds(input.pick([100, 1_000, 11_000, 31_000])))
            } else {
                pair.lynx.faults.cut()
            }
        }
        try pair.run(.milliseconds(input.pick([0, 0, 5])))
        try check()
    }

    private func call() {
        let index = input.number(below: material.methods.count)
        let method = method(index)
        let actor = input.pick([
            "@desk", "@desk", "@porter", "@closed", "@nobody", "#1", "#ffffffffffffffff", "#-1",
        ])
        guard var line = line(to: actor) else { return }
        let timeout: UInt32 = input.pick([0, 0, 1, 5_000, .max])
        let arguments = ByteSlice(input.edited(material.arguments[index]))
        line.lastNumber += 1
        send(
            .request(number: line.lastNumber, timeout: timeout, name: method, content: arguments),
            over: line.stream)
        lines[actor] = line
    }

    /// The name of a method, or of a method of another type, or text that is similar to one.
    private func method(_ index: Int) -> String {
        let method = material.methods[index]
        let signature = method.split(separator: " ").last ?? ""
        switch input.number(below: 5) {
        case 1: return "\(input.pick(["Desk", "Guest", "Clerk", "Porter"])).x \(signature)"
        case 2: return "\(input.pick(["Desk", "Clerk", "Porter"])).x 6HelperC\(signature)"
        case 3: return String(decoding: input.edited(Array(method.utf8)), as: UTF8.self)
        case 4: return "Desk.x \(Self.methodOfNestedType(levels: input.number(below: 41)))"
        default: return method
        }
    }

    /// The signature of a method of a type whose full name has 2 to the power of `levels` words.
    private static func methodOfNestedType(levels: Int) -> String {
        let ends = (4..<4 + levels).map { number in
            switch number {
            case 0..<26: "A\(Character(Unicode.Scalar(65 + UInt8(number))))G"
            case 26: "A_G"
            default: "A\(number - 27)_G"
            }
        }
        return "3addyy" + String(repeating: "SDy", count: levels + 1) + "S2SG" + ends.joined() + "YaKFTE"
    }

    /// The stream for the calls to an actor. If the last one has ended, another one is opened.
    private func line(to actor: String) -> (stream: ByteStream, lastNumber: UInt64)? {
        if let line = lines[actor] {
            while case .bytes = line.stream.poll() {}
            if case .nothing = line.stream.poll() { return line }
        }
        lines[actor] = open(actor).map { ($0, 0) }
        return lines[actor]
    }

    private func open(_ name: String) -> ByteStream? {
        try? pair.lynx.session.reference.openStream(named: name, to: pair.puma.session.id, for: .actors)
    }

    private func open(stream name: String, _ bytes: [UInt8]) {
        guard let stream = open(name) else { return }
        streams.append(stream)
        _ = try? stream.tryWrite(ByteSlice(bytes))
        if streams.count > 300 { streams.removeFirst(100) }
    }

    private func send(_ record: CallRecord, over stream: ByteStream) {
        _ = try? stream.tryWrite(record.frame)
    }

    /// Sends a record out of turn, or bytes that are no record.
    private func sendRecord() {
        guard let line = line(to: input.pick(["@desk", "@porter"])) else { return }
        let number = line.lastNumber
        let empty = ByteSlice([])
        let records: [CallRecord] = [
            .cancel(number: number), .cancel(number: number &+ 1), .answer(number: 1, .unknownName),
            .credit(1 << 20), .name("x"), .name(material.methods[0]),
            .numbered(number: number + 2, timeout: 0, name: input.pick([0, 1, 255]), content: empty),
            .request(number: number, timeout: 0, name: "x", content: empty),
        ]
        _ = try? line.stream.tryWrite(ByteSlice(input.edited(input.pick(records).frame.bytes)))
    }

    private func list() {
        var bytes: [UInt8] = []
        for number in 0..<input.pick([1, 3, 300]) {
            bytes += ListingRecord.published(name: "\(number)", contract: "Guest", version: 1).frame.bytes
        }
        bytes += input.edited(ListingRecord.unpublished(name: "0").frame.bytes)
        open(stream: ActorStream.listing, input.edited(bytes))
    }

    /// Opens streams of values, which calls may have named or may name later.
    private func sendValues() {
        for _ in 0..<input.pick([1, 1, 1, 300]) {
            let content = input.isUsual() ? [0, 1] : input.content()
            let number = input.isUsual() ? UInt64(input.number(below: 30)) : input.number(UInt64.self)
            open(stream: ">\(number)", StreamMessageParser.header(of: content.count) + content)
            if input.isUsual() { streams.last?.finish() }
        }
    }

    private func callPeer() {
        start { target in
            let guest = try? target.actors.actor($Guest.self, named: "guest", on: target.pair.asPumaSeesLynx)
            _ = try? await guest?.name()
        }
    }

    // MARK: Checks

    private func check() throws {
        try expect(forbidden.count == 0, "a method has run that the peer may not call")
        let counts = actors.counts
        let areBounded = counts.listed <= 256 && counts.streams <= 512 && counts.methods <= 60
        try expect(areBounded, "tables hold \(counts)")
        let running = pair.puma.layer.counts.running
        try expect(running <= Calls.mostRunningOfPeer, "\(running) calls run")
    }

    /// Makes a valid call, which must be answered.
    private func checkThatItAnswers() throws {
        let outcome = Mutex<CallOutcome?>(nil)
        start { target in
            let answered = try? await target.pair.lynx.layer.call(
                target.material.methods[0], ByteSlice(target.material.arguments[0]),
                at: target.pair.asLynxSeesPuma, actor: "@desk", timeout: .seconds(10))
            outcome.withLock { $0 = answered }
        }
        try pair.run(.seconds(11))
        guard case .answer = outcome.withLock(\.self) else {
            throw Finding(description: "a right call gets \(outcome.withLock { String(describing: $0) })")
        }
    }

    /// Closes both sessions. Nothing may be left afterwards.
    private func end() throws {
        (lines, streams) = ([:], [])
        try pair.run(.seconds(70))
        try check()
        try checkThatItAnswers()
        try pair.close()
        try pair.run(.seconds(70))
        for task in tasks { task.cancel() }
        try pair.run(.seconds(1))
        try check()
        let (calls, counts) = (pair.puma.layer.counts, actors.counts)
        let isEmpty = calls == (0, 0, 0) && counts.listed + counts.streams == 0
        try expect(isEmpty, "left at the end: \(calls), \(counts)")
        let pending = pair.loop.pending
        try expect(pending.work == 0 && pending.timers < 10, "\(pending) are left")
    }
}

/// Notes the calls of a program, and answers none.
///
/// `@unchecked Sendable`: used on one virtual loop.
private final class CallRecorder: ActorHost, @unchecked Sendable {
    private(set) var material = ActorsTarget.Material()

    func answer(_ call: ActorCall) async -> CallOutcome {
        material.methods.append(call.method)
        material.arguments.append(call.arguments.bytes)
        return .unknownName
    }

    func receive(_ stream: ByteStream) {}
    func handle(_ event: SessionEvent) {}
    func sessionDidClose() {}
}

/// A hostile peer: it answers calls as the input says, and takes the streams that are opened to it.
///
/// `@unchecked Sendable`: used on one virtual loop.
private final class HostilePeer: ActorHost, @unchecked Sendable {
    private var input: Input
    private let material: ActorsTarget.Material
    private let clock: any Clock<Duration>
    private var streams: [ByteStream] = []

    init(_ input: Input, _ material: ActorsTarget.Material, clock: any Clock<Duration>) {
        self.input = input
        self.material = material
        self.clock = clock
    }

    func answer(_ call: ActorCall) async -> CallOutcome {
        let right = Array("\u{64}name".utf8)
        let content = ByteSlice(input.edited(input.isUsual() ? right : input.pick(material.arguments)))
        switch input.number(below: 5) {
        case 0: return .answer(content)
        case 1: return .error(content)
        case 2: return .refused(input.pick(CallRefusal.allCases), "é\u{202E}")
        case 3: return .unknownName
        default:
            // It may be cancelled.
            try? await clock.sleep(for: .seconds(20))
            return .answer(content)
        }
    }

    func receive(_ stream: ByteStream) { streams = streams.suffix(19) + [stream] }

    /// Reads from a stream that was opened to it, writes to it, or ends it.
    func useStream() {
        guard !streams.isEmpty else { return }
        let stream = input.pick(streams)
        switch input.number(below: 4) {
        case 0: stream.cancel(because: "\u{1B}[2J")
        case 1: stream.finish()
        case 2: _ = try? stream.tryWrite(ByteSlice(input.content()))
        default: while case .bytes = stream.poll() {}
        }
    }

    func handle(_ event: SessionEvent) {}
    func sessionDidClose() { streams = [] }
}
