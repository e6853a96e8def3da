import Dispatch
import NighCore

/// Begins a session, runs `body` with it, and ends it in good order, also if `body` throws. Ctrl-C (and SIGTERM)
/// cancels `body`, so that its loops end; a second Ctrl-C ends the program at once.
///
///     try await withSession(service: "hello") { session in
///         session.connectsAutomatically = true
///         for await note in session.messages(of: String.self) { print(note.sender.name, note.content) }
///     }
///
/// The parameters are those of ``Session/init(service:name:transports:configure:)``.
public func withSession<Result>(
    service: String, name: String? = nil, transports: String? = nil,
    configure: @Sendable @escaping (inout SessionSettings) -> Void = { _ in },
    _ body: (Session) async throws -> Result
) async throws -> Result {
    // Making a session reads files.
    let session = try await onOwnThread { () throws(NighError) in
        try Session(service: service, name: name, transports: transports, configure: configure)
    }
    do {
        let result = try await Interruption.cancelling { try await body(session) }
        await session.close()
        return result
    } catch {
        await session.close()
        throw error
    }
}

/// Runs work that reads files on a thread of Dispatch, so that no thread of Swift's concurrency runtime waits for it.
func onOwnThread<Value: Sendable>(
    _ work: @Sendable @escaping () throws(NighError) -> Value
) async throws(NighError) -> Value {
    let result: Swift.Result<Value, NighError> = await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Swift.Result(catching: work)) }
    }
    return try result.get()
}
