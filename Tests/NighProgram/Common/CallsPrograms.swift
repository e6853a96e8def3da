import ChildPrograms
import Testing

/// Marks tests that run programs and block while they wait for them. At most eight run at once, each on threads of its
/// own. On the threads that all tests share, a test that waits for a program would block others, and after a wait it
/// would continue only behind all other work.
struct CallsPrograms: TestTrait, SuiteTrait, TestScoping {
    private static let permits = Permits(8)

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await Self.permits.run {
            try await ThreadForEachJob.run { try await function() }
        }
    }
}

extension Trait where Self == CallsPrograms {
    static var callsPrograms: Self { CallsPrograms() }
}
