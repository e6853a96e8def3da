import NighCore
import Synchronization

/// Prints the problems by which a session finds no peers or is not found, for a program that reads no events.
final class ProblemPrinter: SessionLayer {
    private struct State {
        var problems: UnreadProblems
        var isClosing = false
        weak var session: Session?
    }

    private let state: Mutex<State>

    init(_ problems: UnreadProblems) { state = Mutex(State(problems: problems)) }

    func attach(to session: Session) { state.withLock { $0.session = session } }

    func handle(_ event: SessionEvent) {
        let session = state.withLock { state in
            state.problems.handle(event) && state.problems.print != nil ? state.session : nil
        }
        guard let session, !session.isReadingEvents else { return }
        let loop = session.loop
        loop.schedule(at: loop.now + UnreadProblems.patience) { [weak self] in self?.print() }
    }

    func sessionWillClose() { state.withLock { $0.isClosing = true } }

    private func print() {
        let (lines, print) = state.withLock { state -> ([String], (@Sendable (String) -> Void)?) in
            guard let session = state.session, !session.isReadingEvents, !state.isClosing
            else { return ([], nil) }
            return (state.problems.takeLines(), state.problems.print)
        }
        for line in lines { print?(line) }
    }
}
