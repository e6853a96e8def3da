import Glibc
import NighCore
import ProgramLife

/// Asks the person at the terminal, one question after the other.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
final class FileQuestions: @unchecked Sendable {
    private let lock = Lock()
    private var open: [(words: String, answer: @Sendable (Bool) -> Void)] = []
    private let live: LiveRegion
    private let input: TypedLines

    /// Fails where there are no descriptors left.
    init(_ live: LiveRegion) throws {
        self.live = live
        input = try TypedLines()
        try input.start { [weak self] line in self?.typed(line) }
    }

    /// Whether somebody is being asked.
    var isAsking: Bool { lock.withLock { !open.isEmpty } }

    /// Asks, after those before; `answer` is called on another thread. The end of what is typed means no.
    func ask(_ words: String, answer: @escaping @Sendable (Bool) -> Void) {
        let isFirst = lock.withLock {
            open.append((words, answer))
            return open.count == 1
        }
        if isFirst { show(words) }
    }

    /// Reads nothing more.
    func stop() { input.stop() }

    private func show(_ words: String) {
        live.show([])
        LineOutput.write(LineOutput.harmless(words), to: STDERR_FILENO)
    }

    /// - Parameter line: nil at the end of what is typed.
    private func typed(_ line: String?) {
        let isYes: Bool
        switch line?.lowercased() {
        case "y", "yes": isYes = true
        case "n", "no", nil: isYes = false
        default: return lock.withLock { open.first?.words }.map(show) ?? ()
        }
        let (answer, next) = lock.withLock { () -> ((@Sendable (Bool) -> Void)?, String?) in
            guard !open.isEmpty else { return (nil, nil) }
            return (open.removeFirst().answer, open.first?.words)
        }
        answer?(isYes)
        if let next { show(next) }
    }
}
