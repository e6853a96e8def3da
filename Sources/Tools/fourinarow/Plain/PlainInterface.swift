import FourInARow
import NighCore
import ProgramSupport
import Synchronization

/// Shows the game as lines on the standard output, and reads commands from the standard input. The end of the input
/// ends the program.
///
/// `@unchecked Sendable`: `dialog` is guarded by the lock.
final class PlainInterface: UserInterface, @unchecked Sendable {
    private let output: LineOutput
    private let lock = Mutex(())
    private var dialog: PlainDialog?
    private let codeStyle: PrintedCodeStyle?
    private let input: TypedLines

    /// Throws if there are no descriptors left.
    ///
    /// - Parameter codeStyle: how the codes for guests are printed; nil for their addresses alone.
    init(_ output: LineOutput, codeStyle: PrintedCodeStyle?) throws(NighError) {
        self.output = output
        self.codeStyle = codeStyle
        input = try TypedLines()
    }

    func start(_ view: LobbyView, onRequest: @escaping @Sendable (UserRequest) -> Void) throws {
        let dialog = PlainDialog(view)
        lock.withLock { _ in self.dialog = dialog }
        write(dialog.greeting)
        try input.start { [self] line in
            if let line { handle(line, onRequest) } else { onRequest(.quit) }
        }
    }

    func show(_ view: LobbyView, _ news: LobbyNews?) {
        write(lock.withLock { _ in dialog?.lines(for: view, news) } ?? [])
        writeCode()
    }

    func showCode(_ code: GuestCode) {
        lock.withLock { _ in dialog?.take(code) }
        writeCode()
    }

    func showRefusal(_ breach: Breach) {
        guard let view = lock.withLock({ _ in dialog?.view }) else { return }
        showMessage(Sentences.sentence(for: breach, in: view))
    }

    func showMessage(_ text: String) { write([PlainDialog.asSentence(text)]) }

    func stop() { input.stop() }

    private func write(_ lines: [String]) { output.lines(lines) }

    /// Writes the code for guests, if it is to be seen now.
    private func writeCode() {
        output.writeSanitized(lock.withLock { _ in dialog?.codeLines(codeStyle) } ?? [])
    }

    private func handle(_ line: String, _ onRequest: @Sendable (UserRequest) -> Void) {
        guard let reply = lock.withLock({ _ in dialog?.reply(to: line) }) else { return }
        write(reply.lines)
        writeCode()
        for request in reply.requests { onRequest(request) }
    }
}
