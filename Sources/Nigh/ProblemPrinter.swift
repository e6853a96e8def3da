import NighCore
import Synchronization

/// Keeps the problems for which a session finds nobody or is not found, for programs that begin to read events later,
/// and prints them for a program that reads none.
final class ProblemPrinter: SessionLayer {
    private struct State {
        var problems: UnreadProblems
        /// Whether the program has ever asked for events.
        var hasEventReader: Bool
        var isClosing = false
        weak var session: NighCore.Session?
    }

    private let state: Mutex<State>

    init(_ problems: UnreadProblems, hasEventReader: Bool) {
        state = Mutex(State(problems: problems, hasEventReader: hasEventReader))
    }

    /// Prints nothing from now on, because the program reads events. Returns those of the problems that last now.
    func beginReading() -> [SessionEvent] {
        state.withLock { state in
            state.hasEventReader = true
            return state.problems.events
        }
    }

    func attach(to session: NighCore.Session) { state.withLock { $0.session = session } }

    func handle(_ event: NighCore.SessionEvent) {
        let session = state.withLock { state -> NighCore.Session? in
            let mayPrint =
                state.problems.handle(event) && state.problems.print != nil && !state.hasEventReader
            return mayPrint ? state.session : nil
        }
        guard let loop = session?.loop else { return }
        loop.schedule(at: loop.now + UnreadProblems.patience) { [weak self] in self?.print() }
    }

    func sessionWillClose() { state.withLock { $0.isClosing = true } }

    private func print() {
        let (lines, print) = state.withLock { state -> ([String], (@Sendable (String) -> Void)?) in
            guard !state.hasEventReader, !state.isClosing else { return ([], nil) }
            return (state.problems.takeLines(), state.problems.print)
        }
        for line in lines { print?(line) }
    }
}
