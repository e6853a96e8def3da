import NighCalls
import NighCore
import NighTestKit

/// A question of one user to another's program or to one of its actors, and what has become of it.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldQuestion: @unchecked Sendable {
    /// How the other user's program works on the question.
    struct Work {
        /// How long that takes; nil if it only ends when nobody waits any more.
        var delay: Duration?
        /// Whether the program goes on when nobody waits any more.
        var isStubborn = false
        var result = Result.answer
        /// The bytes of the answer.
        var size = 0
    }

    enum Result {
        case answer
        case error
        /// The actor is not called, for this reason.
        case refusal(CallRefusal)
    }

    let number: Int
    let name: String
    /// The name of the actor's stream; nil for a question to the program.
    let actor: String?
    let asker: SessionRun
    let other: Int
    let receiver: SessionRun?
    /// The number in the ledger of what the asker sends in the conversation.
    let conversation: Int
    let size: Int
    let timeout: Duration?
    let begin: Moment
    let deadline: Moment
    let work: Work
    /// How many times the other program has begun to work on it.
    var begun = 0
    /// The answer that the other program has given.
    var given: CallOutcome?
    /// Whether the asker's user waits no longer.
    var isCancelled = false
    /// Whether the asker was told how it ended, and that it was never sent.
    var isOver = false
    var wasNeverSent = false
    var task: Task<Void, Never>?

    init(
        number: Int, name: String, of actor: String?, from asker: SessionRun, to other: Int,
        _ stream: SessionRun.OutgoingStream, size: Int, timeout: Duration?, at now: Moment, work: Work
    ) {
        self.number = number
        self.name = name
        self.actor = actor
        self.asker = asker
        self.other = other
        receiver = stream.receiver
        conversation = stream.number
        self.size = size
        self.timeout = timeout
        begin = now
        deadline = timeout.map { now + Moment.Span($0) } ?? .never
        self.work = work
    }

    /// The bytes at the beginning of a question that say which one it is.
    static let headerLength = 4

    var content: [UInt8] {
        withUnsafeBytes(of: UInt32(number)) { Array($0) }
            + NumberedMessage.bytes(ofStream: key, from: 0, count: size - Self.headerLength)
    }

    /// The only right outcome for the asker, if there is an answer at all.
    var outcome: CallOutcome {
        let bytes = ByteSlice(NumberedMessage.bytes(ofStream: key + 1, from: 0, count: work.size))
        return switch work.result {
        case .answer: .answer(bytes)
        case .error: .error(bytes)
        case .refusal(let reason): .refused(reason, "because of question \(number)")
        }
    }

    /// Distinguishes the content of the question from that of everything else.
    private var key: Int { 1 << 42 | number << 1 }

    /// Returns the number that a question says it has.
    static func number(of content: [UInt8]) -> Int? {
        guard content.count >= headerLength else { return nil }
        return content.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
    }
}

/// A mistake that a program makes with questions. It is planted on purpose, to see that the rules notice.
struct QuestionFault {
    enum Kind: Sendable {
        /// A program works on a question twice.
        case beginsTwice
        /// The calls to an actor begin in another order than they were made.
        case beginsLate
        /// A question gets the answer to another.
        case mixesAnswers
        /// The work goes on although nobody waits for the answer.
        case ignoresCancellation
        /// The asker is not told how its question has ended.
        case losesOutcomes
    }

    let kind: Kind
    /// Whether it befalls the questions to actors only, or the others only.
    let isOfActors: Bool
}

/// The questions of one run: those that it waits for, and those that its program works on.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldQuestions: @unchecked Sendable {
    private struct Line: Hashable {
        let asker: UInt64
        let actor: String
    }

    let layer = Calls()
    /// When this run began to have actors; nil if it has none yet.
    var hasActorsSince: Moment?
    /// The questions whose outcome its user waits for, by number.
    var waiting: [Int: WorldQuestion] = [:]
    /// The last question of each asker that has begun at each actor.
    private var lastBegun: [Line: Int] = [:]
    private var pauses: [Int: PendingAnswer<Void>] = [:]
    private var pauseCount = 0

    /// Waits for a while, or for ever without a `delay`. Ends early when the task is cancelled, unless it `isStubborn`.
    func pause(for delay: Duration?, isStubborn: Bool, in world: World) async {
        pauseCount += 1
        let number = pauseCount
        await withTaskCancellationHandler {
            await PendingAnswer<Void>.wait(otherwise: ()) { pause in
                if Task.isCancelled, !isStubborn { return pause.give(()) }
                pauses[number] = pause
                if let delay { world.schedule(after: delay) { pause.give(()) } }
            }
        } onCancel: {
            if !isStubborn { pauses[number]?.give(()) }
        }
        pauses[number] = nil
    }

    /// Notes that a question begins at an actor. Returns a later question of the same asker that has begun before it.
    func begins(_ question: WorldQuestion, at actor: String) -> Int? {
        let line = Line(asker: question.asker.incarnation, actor: actor)
        if let last = lastBegun[line], last > question.number { return last }
        lastBegun[line] = question.number
        return nil
    }

    /// Ends everything that its program works on, as when its process dies.
    func stop() {
        waiting = [:]
        for pause in pauses.values { pause.give(()) }
    }
}

/// The actors of one run.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldActors: ActorHost, @unchecked Sendable {
    private weak var run: SessionRun?
    private let answer: (ActorCall) async -> CallOutcome
    private var hasClosed = false

    init(of run: SessionRun, answer: @escaping (ActorCall) async -> CallOutcome) {
        self.run = run
        self.answer = answer
    }

    func answer(_ call: ActorCall) async -> CallOutcome {
        checkOpen("calls an actor")
        return await answer(call)
    }

    func receive(_ stream: ByteStream) {
        run?.report(
            .calls, "passes the stream \(stream.name) to its actors, which nobody has opened for them")
    }

    func handle(_ event: SessionEvent) { checkOpen("tells its actors \(event)") }

    func sessionDidClose() {
        checkOpen("closes twice for its actors")
        hasClosed = true
    }

    private func checkOpen(_ words: @autoclosure () -> String) {
        if hasClosed { run?.report(.silence, "\(words()) after it closed") }
    }
}
