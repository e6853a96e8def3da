import CAllocationCounter
import NighCore

/// Counts the operations of a counted path: through a warm-up, then until there are enough.
///
/// Each side counts them where they end for it. Callgrind writes its counts for a side's thread at the end of the
/// warm-up, and at the end of the last operation. `@unchecked Sendable`: the operations of a side end one after the
/// other, on its loop or in one task.
final class OperationCounter: @unchecked Sendable {
    private let warmUp: Int
    private let operations: Int
    private let (results, result) = AsyncThrowingStream.makeStream(of: UInt64.self)
    private var ended = 0
    private var endedAtAnswerer = 0
    private var allocationsAtStart: UInt64 = 0

    init(warmUp: Int, operations: Int) {
        self.warmUp = warmUp
        self.operations = operations
    }

    /// Takes the end of an operation on the calling side. Returns whether another one is to begin.
    @inline(__always)
    func operationEnded() -> Bool {
        ended &+= 1
        if ended == warmUp { begin() }
        guard ended == warmUp &+ operations else { return true }
        finish()
        return false
    }

    /// Takes the end of an operation on the answering side.
    @inline(__always)
    func operationEndedAtAnswerer() {
        endedAtAnswerer &+= 1
        if endedAtAnswerer == warmUp || endedAtAnswerer == warmUp &+ operations { counting_mark_answering() }
    }

    private func begin() {
        counting_mark_calling()
        allocationsAtStart = allocation_counter_value()
    }

    private func finish() {
        let allocations = allocation_counter_value() - allocationsAtStart
        counting_mark_calling()
        result.yield(allocations)
    }

    /// Ends the count with an error. May be called from any thread.
    func fail(_ error: any Error) { result.finish(throwing: error) }

    /// The blocks that the process took from the heap during the operations, as soon as there were enough of these.
    var allocations: UInt64 {
        get async throws {
            guard let allocations = try await results.first(where: { _ in true }) else {
                throw NighError(.conversing, .closed)
            }
            return allocations
        }
    }
}
