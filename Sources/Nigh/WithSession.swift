import Dispatch
import NighCore
import Synchronization

/// Begins a session, runs `body` with it, and ends it in good order, also if `body` throws. `body` runs where the
/// caller runs, for instance in its actor.
///
///     try await withSession(service: "hello", endsOnInterrupt: true) { session in
///         session.connectsAutomatically = true
///         for await note in session.messages(of: String.self) { print(note.sender.name, note.content) }
///     }
///
/// The other parameters are those of ``Session/init(service:name:transports:configure:)``. If the task is cancelled,
/// `body` is, too; the session then still ends in good order, which takes some seconds at most.
///
/// - Parameter endsOnInterrupt: whether Ctrl-C and SIGTERM cancel `body`, for a program that does nothing else. A
///   second one ends the program at once. A signal that the program handles or ignores itself is left alone.
public nonisolated(nonsending) func withSession<Result>(
    service: String, name: String? = nil, transports: String? = nil, endsOnInterrupt: Bool = false,
    configure: (inout SessionSettings) -> Void = { _ in },
    _ body: nonisolated(nonsending) (Session) async throws -> Result
) async throws -> Result {
    var settings = SessionSettings()
    configure(&settings)
    let make = { @Sendable [settings] () throws(NighError) in
        try Session(service: service, name: name, transports: transports) { $0 = settings }
    }
    // Making a session reads files, unless it is simulated.
    let session = SimulatedDevice.current == nil ? try await onOwnThread(.starting, make) : try make()
    do {
        let result =
            endsOnInterrupt && SimulatedDevice.current == nil
            ? try await SignalCancellation.cancelling { try await body(session) } : try await body(session)
        await session.close()
        return result
    } catch {
        await session.close()
        throw error
    }
}

/// Runs work that reads files on a queue of its own, so that no thread of Swift's concurrency runtime waits for it, and
/// so that it does not wait for the threads of Dispatch's global queues, which the program may block. If the task is
/// cancelled, the call fails at once; the work goes on, and its result is dropped.
nonisolated(nonsending) func onOwnThread<Value: Sendable>(
    _ stage: NighError.Stage, _ work: @Sendable @escaping () throws(NighError) -> Value
) async throws(NighError) -> Value {
    let waiting = Mutex<PendingAnswer<Swift.Result<Value, NighError>>?>(nil)
    let cancelled = Swift.Result<Value, NighError>.failure(NighError(stage, .cancelled))
    let result = await withTaskCancellationHandler {
        await PendingAnswer.wait(otherwise: cancelled) { answer in
            waiting.withLock { $0 = answer }
            if Task.isCancelled { answer.give(cancelled) }
            DispatchQueue(label: "nigh.files").async { answer.give(Swift.Result(catching: work)) }
        }
    } onCancel: {
        waiting.withLock { $0.take() }?.give(cancelled)
    }
    return try result.get()
}
