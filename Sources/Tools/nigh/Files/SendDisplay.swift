import NighCore

/// The lines in place that show how far the transfers of one `nigh send` are, one transfer below the other.
///
/// Callable from any thread. `@unchecked Sendable`: the lock guards all mutable state.
final class SendDisplay: @unchecked Sendable {
    /// The lines of one transfer.
    struct TransferLines: Sendable {
        fileprivate let display: SendDisplay
        fileprivate let index: Int

        /// Whether there is no other transfer.
        var isOnly: Bool { display.count == 1 }

        func show(_ lines: [Line]) { display.show(lines, at: index) }
    }

    private let live: LiveRegion
    private let lock = Lock()
    private var lines: [[Line]]
    fileprivate let count: Int

    init(_ live: LiveRegion, transfers count: Int) {
        self.live = live
        self.count = count
        lines = Array(repeating: [], count: count)
    }

    /// The lines of each transfer, in order.
    var transfers: [TransferLines] { lines.indices.map { TransferLines(display: self, index: $0) } }

    private func show(_ lines: [Line], at index: Int) {
        guard live.isVisible else { return }
        let all = lock.withLock {
            self.lines[index] = lines
            return self.lines.flatMap(\.self)
        }
        live.show(all)
    }
}
