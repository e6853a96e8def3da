import FourInARow
import NighCore
import ProgramLife

/// Shows the game as lines on the standard output, and reads commands from the standard input. The end of the input
/// ends the program.
///
/// `@unchecked Sendable`: `talk` is guarded by the lock.
final class PlainFront: Front, @unchecked Sendable {
    private let output: LineOutput
    private let lock = Lock()
    private var talk: PlainTalk?
    private let input: TypedLines

    /// Throws if there are no descriptors left.
    init(_ output: LineOutput) throws(NighError) {
        self.output = output
        input = try TypedLines()
    }

    func start(_ view: LobbyView, wished: @escaping @Sendable (Wish) -> Void) throws {
        let talk = PlainTalk(view)
        lock.withLock { self.talk = talk }
        say(talk.greeting)
        try input.start { [self] line in
            if let line { take(line, wished) } else { wished(.quit) }
        }
    }

    func show(_ view: LobbyView, _ news: LobbyNews?) {
        say(lock.withLock { talk?.lines(for: view, news) } ?? [])
    }

    func refused(_ breach: Breach) {
        guard let view = lock.withLock({ talk?.view }) else { return }
        tell(Sentences.sentence(for: breach, in: view))
    }

    func tell(_ words: String) { say([PlainTalk.spoken(words)]) }

    func stop() { input.stop() }

    private func say(_ lines: [String]) { output.lines(lines) }

    private func take(_ line: String, _ wished: @Sendable (Wish) -> Void) {
        guard let reply = lock.withLock({ talk?.reply(to: line) }) else { return }
        say(reply.lines)
        for wish in reply.wishes { wished(wish) }
    }
}
