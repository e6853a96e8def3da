import NighCore
import SessionArguments
import Synchronization
import Testing

@testable import nigh

/// A search or a call ends at once when it is cancelled, so Ctrl-C has no delay.
@Suite(.callsPrograms) struct CancelledCallTests {
    private func commandSession() throws -> CommandSession {
        let options = SessionOptions(
            transports: "memory", plugins: .none, service: "cancelled", name: DisplayName(fitting: "Lynx"),
            identity: .ephemeral, security: .encrypted, relays: .nobody, isVerbose: false)
        let mine = try CommandSession(
            options, role: .client, results: Results(of: "test", OutputOptions(), onFailure: {}))
        mine.start()
        return mine
    }

    @Test("A search that is cancelled before it starts looks for nobody")
    func search() async throws {
        let mine = try commandSession()
        let deadline = await mine.onLoop { $0.loop.now + .seconds(60) }
        let search = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await mine.find(.named("Puma"), until: deadline)
        }
        await #expect(throws: CancellationError.self) { try await search.value }
        await mine.close()
    }

    @Test("A call that is cancelled during its pause makes no further attempt", arguments: [true, false])
    func pause(isCancelledBefore: Bool) async throws {
        let mine = try commandSession()
        let address = try #require(TransportAddress("memory://nobody"))
        let attempts = Mutex(0)
        let call = Task {
            try await mine.call(
                .address(address), for: .ping, .init(timeLimit: .seconds(60), retriesAddresses: true),
                whenFailed: { _ in
                    if !isCancelledBefore { withUnsafeCurrentTask { $0?.cancel() } }
                }
            ) { _, _ in
                attempts.withLock { $0 += 1 }
                if isCancelledBefore { withUnsafeCurrentTask { $0?.cancel() } }
                throw NighError(.connecting, .refused)
            }
        }
        await #expect(throws: (any Error).self) { try await call.value }
        #expect(attempts.withLock { $0 } == 1)
        await mine.close()
    }
}
