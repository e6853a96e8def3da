/// Limits how many pieces of work run at once.
package actor Permits {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(_ count: Int) { free = count }

    /// Runs `work` when a permit is free.
    package nonisolated func run<Result: Sendable>(_ work: @Sendable () async throws -> Result) async rethrows
        -> Result
    {
        await take()
        do {
            let result = try await work()
            await giveBack()
            return result
        } catch {
            await giveBack()
            throw error
        }
    }

    private func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func giveBack() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}
