import Glibc
import JSONText
import NighLoop
import NighCore
import NighRecord

/// Traces the links of a session of its own. Entries from the session's loop go through a recorder into a socket pair,
/// so that a slow terminal holds up this command and never the session.
struct LiveTrace: Sendable {
    let command: TraceCommand
    let results: Results
    let stopRequest: StopRequest

    /// How long the peer is looked for and called.
    private static let callTimeout = Duration.seconds(30)

    func run() async throws -> ExitStatus {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw NighError(.starting, .system(errno, String(cString: strerror(errno))))
        }
        let (near, far) = (ends[0], ends[1])
        let recorder: LinkRecorder
        do {
            recorder = try LinkRecorder(descriptor: far, path: "the trace")
        } catch {
            close(near)
            throw error
        }
        let session: CommandSession
        do {
            session = try CommandSession(
                command.session, role: .peer, acceptsAllInvitations: command.options.accepts, results: results
            ) { $0.layers.append(recorder) }
        } catch {
            _ = recorder.finish()
            close(near)
            throw error
        }
        let command = command
        let results = results
        // Read to the end in any case: the recorder must be able to write everything that it has.
        let reading = Task {
            await BlockingTask.run {
                command.show(
                    RecordSource(descriptor: near, follows: false, isRequestedToEnd: { false }), results)
            }
        }
        let failure = await runSession(over: session)
        await session.close()
        _ = await BlockingTask.run { recorder.finish() }
        var result = await reading.value
        // The failure of the conversation explains more than a fault in reading its record.
        result.fault = failure ?? result.fault
        command.summarize(result, results)
        guard let fault = result.fault else { return .success }
        return fault is TransportsUnavailable ? .unavailable : .failed
    }

    /// Runs until the trace should end. Returns the error if it ends before.
    private func runSession(over session: CommandSession) async -> (any Error)? {
        session.start(onEvent: { event in handle(event, session) })
        let (peer, duration) = (command.options.peer, command.options.duration)
        do {
            try await stopRequest.cancelling {
                if let peer {
                    _ = try await session.connect(to: peer, for: .ping, .init(timeLimit: Self.callTimeout))
                }
                if let duration { return try await Task.sleep(for: duration) }
                if peer == nil, let unusable = await session.unusableTransports() { throw unusable }
                // Only a stop request ends this.
                while true { try await Task.sleep(for: .seconds(3_600)) }
            }
            return nil
        } catch {
            return stopRequest.isRequested ? nil : error
        }
    }

    /// Called on the session's loop.
    private func handle(_ event: SessionEvent, _ session: CommandSession) {
        switch event {
        case .invited(let invitation): invitation.accept()
        case .listening(let scheme, let addresses) where !addresses.isEmpty:
            let list = addresses.map(\.description)
            results.report(
                Self.listeningKind,
                [
                    .init("transport", .text(scheme)), .init("addresses", .list(list.map(JSON.text))),
                    .init("peer", .text(session.session.id.description)),
                ],
                lines: [
                    Line("\(session.session.identity.short) can be called at \(list.joined(separator: ", "))")
                ])
        default: break
        }
    }

    static let listeningKind = Results.Kind("listening", plural: "listening")
}
