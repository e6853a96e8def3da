import NighCalls
import NighTestKit
import Testing

@testable import NighCore
@testable import Worlds

/// Plants faults in worlds on purpose, and tests that the worlds report them.
struct PlantedFaultTests {
    /// Runs worlds with a fault until three have reported it, each by one of these rules.
    ///
    /// - Parameters:
    ///   - enough: a world that was damaged this often must report it.
    ///   - plant: plants the fault in a world, and calls what it gets with each damage.
    private func expectFindings(
        _ rules: [Violation.Rule], afterDamages enough: Int = .max,
        plant: (_ world: World, _ note: @escaping () -> Void) -> Void
    ) {
        var caught = 0
        for seed in 1...60 as ClosedRange<UInt64> where caught < 3 {
            nonisolated(unsafe) var damaged = 0
            // A world that keeps no log runs again if something is found.
            let report = World.run(seed: seed, keepingLog: true) { world in plant(world) { damaged += 1 } }
            guard damaged >= enough || report.finding != nil else { continue }
            #expect(
                report.finding.map { rules.contains($0.rule) } == true,
                "seed \(seed): \(report.finding?.message ?? "nothing")")
            caught += 1
        }
        #expect(caught == 3)
    }

    // MARK: State

    /// A kind of damage that a session must never do to its own state.
    enum StateFault: CaseIterable {
        /// A message is admitted, but not kept.
        case losesAMessage
        /// A message is kept, but was not admitted.
        case keepsAMessageTooMany
        /// A peer's links are counted wrongly.
        case miscountsLinks
        /// A connected conversation has no link, and nothing looks for one.
        case losesALink
        /// An awaited answer may never come, and nothing checks the deadline.
        case sleepsThroughADeadline

        func apply(_ machine: inout SessionMachine, _ peer: PeerRecord, _ conversation: Conversation) {
            switch self {
            case .losesAMessage: try? conversation.port.admit(100)
            case .keepsAMessageTooMany:
                conversation.append(ByteSlice([1, 2, 3]), on: .main, pool: &machine.outbox.pool)
            case .miscountsLinks: peer.linkCount += 1
            case .losesALink: conversation.link = nil
            case .sleepsThroughADeadline: peer.carryingLink?.movesAt = Moment(nanoseconds: 0)
            }
        }
    }

    @Test(arguments: StateFault.allCases)
    func `An inconsistent session is reported`(_ fault: StateFault) {
        for seed in [1, 2, 4] as [UInt64] {
            let report = World.run(seed: seed) { world in apply(world, fault) }
            #expect(
                report.finding?.rule == .consistency, "seed \(seed): \(report.finding?.message ?? "nothing")")
        }
    }

    @Test func `A session that forgets whom it refuses is reported`() {
        let findings = (1...8 as ClosedRange<UInt64>).compactMap { seed in
            World.run(seed: seed) { $0.forgetsRefusals = true }.finding
        }
        #expect(findings.count >= 4)
        #expect(findings.allSatisfy { $0.rule == .refusals }, "\(findings.map(\.rule))")
    }

    /// Applies the fault to the first session that has a conversation.
    private func apply(_ world: World, _ fault: StateFault) {
        world.schedule(after: .milliseconds(10)) {
            for run in world.activeRuns {
                guard let driver = run.session?.driver,
                    let peer = driver.machine.sortedPeers.first(where: { $0.state == .connected }),
                    let conversation = peer.conversation, !conversation.port.hasStaged
                else { continue }
                return fault.apply(&driver.machine, peer, conversation)
            }
            apply(world, fault)
        }
    }

    // MARK: Channels

    /// The things that a channel must never do to a message.
    enum ChannelFault: CaseIterable {
        case losesAMessage
        case repeatsAMessage
        case swapsMessages
        case changesAByte
        /// The channel itself loses a message: somebody else has read it.
        case givesAMessageToAnotherReader
    }

    @Test(arguments: ChannelFault.allCases)
    func `A world reports a message of a channel that is lost, repeated, moved or changed`(
        _ fault: ChannelFault
    ) {
        // In a storm any conversation may end, and its messages may be lost then.
        expectFindings([.exactlyOnce, .order, .delivery], afterDamages: 6) { damage($0, fault, note: $1) }
    }

    private func damage(_ world: World, _ fault: ChannelFault, note: @escaping () -> Void) {
        if fault == .givesAMessageToAnotherReader { return readAlong(in: world, note: note) }
        var count = 0
        var held: Message?
        world.messagesRead = { message in
            count += 1
            if let last = held {
                held = nil
                return [message, last]
            }
            guard count % 5 == 0, !message.payload.isEmpty else { return [message] }
            note()
            switch fault {
            case .losesAMessage: return []
            case .repeatsAMessage: return [message, message]
            case .swapsMessages:
                held = message
                return []
            default:
                var bytes = message.bytes
                bytes[bytes.count - 1] ^= 1
                return [Message(origin: message.origin, payload: ByteSlice(bytes))]
            }
        }
    }

    private func readAlong(in world: World, note: @escaping () -> Void) {
        world.schedule(after: .milliseconds(170)) {
            for port in world.activeRuns.flatMap({ ($0.channels?.open ?? [:]).values })
            where port.poll() != nil {
                note()
            }
            if !world.isQuiet { readAlong(in: world, note: note) }
        }
    }

    // MARK: Streams

    /// A kind of damage that a session must never do to a stream.
    enum StreamFault: CaseIterable {
        case losesBytes
        case doublesAByte
        case reordersBytes
        case endsBeforeTheLastByte
        /// The writer sends more than the reader has allowed.
        case exceedsTheCredit

        /// Damages a stream at the end that reads. Returns false if it is not in a state in which that shows.
        func apply(_ stream: WorldStream, _ reader: StreamPort, _ writer: StreamTable) -> Bool {
            switch self {
            case .losesBytes:
                guard case .bytes = reader.read() else { return false }
            case .doublesAByte:
                guard case .bytes(let bytes) = reader.read(), let last = bytes.bytes.last else {
                    return false
                }
                deliver(bytes.bytes + [last], to: reader)
            case .reordersBytes:
                guard case .bytes(let bytes) = reader.read(), bytes.count > 1 else { return false }
                deliver(bytes.bytes.reversed(), to: reader)
            case .endsBeforeTheLastByte:
                guard !stream.directions[0].isFinished else { return false }
                reader.receivedFinish()
            case .exceedsTheCredit:
                let credit = StreamControl.credit(.max).payload(for: reader.number)
                try? ByteSlice(credit).withUnsafeBytes { bytes throws(WireError) in
                    _ = try writer.receivedControl(StreamControlFrame(reading: bytes))
                }
            }
            return true
        }

        private func deliver(_ bytes: [UInt8], to port: StreamPort) {
            _ = ByteSlice(bytes).withUnsafeBytes { raw in port.deliver(raw) { ByteSlice(copying: raw) } }
            port.wakeReaders()
        }
    }

    @Test(arguments: StreamFault.allCases)
    func `A damaged stream is reported`(_ fault: StreamFault) {
        expectFindings([.order, .delivery, .endurance, .authentic, .consistency], afterDamages: 1) {
            world, note in
            // In a storm any conversation may end, and its streams with it.
            guard world.hasStreams, world.plan.kind != .storm else { return }
            damage(world, fault, note: note)
        }
    }

    /// Damages streams again and again, because the user of one may give it up before anything is noticed.
    private func damage(_ world: World, _ fault: StreamFault, note: @escaping () -> Void) {
        world.schedule(after: .milliseconds(150)) {
            for stream in world.worldStreams where stream.lasts(at: 0) && stream.lasts(at: 1) {
                guard !stream.directions[0].isStopped, !stream.directions[0].hasEnded,
                    let reader = stream.ends[1]?.port,
                    let peer = stream.opener.session?.driver.machine.peers[world.id(stream.other)],
                    let writer = peer.conversation?.streams
                else { continue }
                if fault.apply(stream, reader, writer) { note() }
            }
            if !world.isQuiet { damage(world, fault, note: note) }
        }
    }

    // MARK: Questions

    @Test(
        arguments: [
            (.beginsTwice, .exactlyOnce), (.beginsLate, .order), (.mixesAnswers, .order),
            (.ignoresCancellation, .leaks), (.losesOutcomes, .calls),
        ] as [(kind: QuestionFault.Kind, rule: Violation.Rule)], [false, true])
    func `A world reports what a program does wrong with questions`(
        fault: (kind: QuestionFault.Kind, rule: Violation.Rule), isOfActors: Bool
    ) {
        // Questions to programs may begin in any order.
        guard isOfActors || fault.kind != .beginsLate else { return }
        expectFindings([fault.rule]) { world, _ in
            world.questionFault = QuestionFault(kind: fault.kind, isOfActors: isOfActors)
        }
    }

    @Test(arguments: [false, true])
    func `A world reports a question that is sent again, which also ends the stream of the others`(
        isOfActors: Bool
    ) {
        expectFindings([.exactlyOnce, .calls]) { world, _ in sendAgain(isOfActors: isOfActors, in: world) }
    }

    /// Sends questions on which somebody has worked again, as the first ones of another stream.
    private func sendAgain(isOfActors: Bool, in world: World) {
        world.schedule(after: .milliseconds(500)) {
            for run in world.activeRuns {
                guard
                    let question = world.worldQuestions.last(where: { question in
                        question.asker === run && question.begun == 1
                            && (question.actor != nil) == isOfActors
                            && world.lasts(for: run, with: question.other, since: question.conversation)
                    })
                else { continue }
                run.session?.openStream(
                    named: question.actor ?? "", to: world.id(question.other),
                    for: isOfActors ? .actors : .calls
                ) { result in
                    guard let stream = try? result.get() else { return }
                    for record in Self.records(of: question) { _ = try? stream.tryWrite(record.frame) }
                    stream.finish()
                }
            }
            if !world.isQuiet { sendAgain(isOfActors: isOfActors, in: world) }
        }
    }

    private static func records(of question: WorldQuestion) -> [CallRecord] {
        let content = ByteSlice(question.content)
        if question.actor == nil {
            return [.request(number: 1, timeout: 0, name: question.name, content: content)]
        }
        return [.name(question.name), .numbered(number: 1, timeout: 0, name: 0, content: content)]
    }
}
