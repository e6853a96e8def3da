import NighCalls
import NighCore

/// A question of one user to another, and what has become of it.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldQuestion: @unchecked Sendable {
    /// How the other user's program works on the question.
    struct Work {
        /// How long that takes; nil if it only ends when nobody waits any more.
        var delay: Duration?
        /// Whether the program goes on when nobody waits any more.
        var isStubborn = false
        /// Whether the answer is an error.
        var fails = false
        /// The bytes of the answer.
        var size = 0
    }

    let number: Int
    let name: String
    let asker: SessionRun
    let other: Int
    let receiver: SessionRun?
    /// The number in the ledger of what the asker sends in the conversation.
    let conversation: Int
    let size: Int
    let timeout: Duration?
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
        number: Int, name: String, from asker: SessionRun, to other: Int, _ stream: SessionRun.OutgoingStream,
        size: Int, timeout: Duration?, at now: Moment, work: Work
    ) {
        self.number = number
        self.name = name
        self.asker = asker
        self.other = other
        receiver = stream.receiver
        conversation = stream.number
        self.size = size
        self.timeout = timeout
        deadline = timeout.map { now + Moment.Span($0) } ?? .never
        self.work = work
    }

    /// The bytes at the beginning of a question that say which one it is.
    static let headerLength = 4

    var content: [UInt8] {
        withUnsafeBytes(of: UInt32(number)) { Array($0) }
            + WorldMessage.bytes(ofStream: key, from: 0, count: size - Self.headerLength)
    }

    /// The only right outcome for the asker, if there is an answer at all.
    var outcome: CallOutcome {
        let bytes = ByteSlice(WorldMessage.bytes(ofStream: key + 1, from: 0, count: work.size))
        return work.fails ? .error(bytes) : .answer(bytes)
    }

    /// Distinguishes the content of the question from that of everything else.
    private var key: Int { 1 << 42 | number << 1 }

    /// Returns the number that a question says it has.
    static func number(of content: [UInt8]) -> Int? {
        guard content.count >= headerLength else { return nil }
        return content.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
    }
}

/// The questions of one run: those that it waits for, and those that its program works on.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldQuestions: @unchecked Sendable {
    let layer = Calls()
    /// The questions whose outcome its user waits for, by number.
    var waiting: [Int: WorldQuestion] = [:]
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

    /// Ends everything that its program works on, as when its process dies.
    func stop() {
        waiting = [:]
        for pause in pauses.values { pause.give(()) }
    }
}
