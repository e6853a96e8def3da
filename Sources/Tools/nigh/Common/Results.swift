import Glibc
import JSONText
import NighCore
import ProgramLife

/// What a command has to tell, in the form it was asked for: items as they come, then one summary.
///
/// As words, each item's lines are printed as it comes, then those of the summary. As lines of JSON, each item is an object
/// with its kind as `type`, and the summary one of the type `summary`. As one object of JSON, the summary's members stand in it,
/// and before them a list of items for each kind.
///
/// Callable from any thread. `@unchecked Sendable`: what changes is guarded by the lock.
final class Results: @unchecked Sendable {
    /// The format of the JSON objects. A change that could break a reader makes it greater; new members do not.
    static let format = 1

    /// What kind of thing an item is.
    struct Kind: Hashable, Sendable {
        /// The `type` of a line of JSON, as in `reply`.
        let name: String
        /// The name of the list of them in one object, as in `replies`.
        let plural: String

        init(_ name: String, plural: String) {
            self.name = name
            self.plural = plural
        }
    }

    let form: OutputOptions.Form
    /// What happens meanwhile, on the standard error, where that is a terminal.
    let live: LiveRegion

    private let command: String
    private let hasColours: Bool
    private let lines: LineOutput
    private let lock = Lock()
    private var lists: [(kind: Kind, items: [JSON])]

    /// What `command` has to tell; `kinds` are all that its items can be of. `whenBroken` is called when nobody reads it any more.
    init(
        of command: String, _ options: OutputOptions, kinds: [Kind] = [],
        whenBroken: @escaping @Sendable () -> Void
    ) {
        self.command = command
        form = options.form
        hasColours = options.showsColours(on: STDOUT_FILENO)
        live = LiveRegion(hasColours: options.showsColours(on: STDERR_FILENO))
        lines = LineOutput(whenBroken: whenBroken)
        lists = kinds.map { ($0, []) }
    }

    /// Whether words are wanted, so that whoever tells something costly may leave it.
    var isInWords: Bool { form == .words }

    /// Tells an item: as words `words`, else `members`.
    func tell(_ kind: Kind, _ members: [JSON.Member], words: [Line]) {
        switch form {
        case .words: print(words)
        case .jsonLines: printJSON([.init("type", .text(kind.name))] + members)
        case .json:
            lock.withLock {
                if let place = lists.firstIndex(where: { $0.kind == kind }) {
                    lists[place].items.append(.object(members))
                } else {
                    lists.append((kind, [.object(members)]))
                }
            }
        }
    }

    /// Tells how it all came out; the last thing that is told.
    func sumUp(_ members: [JSON.Member], words: [Line]) {
        live.end()
        let beginning: [JSON.Member] = [
            .init("nigh", .text(command)), .init("format", .integer(Self.format)),
        ]
        switch form {
        case .words: print(words)
        case .jsonLines:
            printJSON([.init("type", "summary")] + beginning + members)
        case .json:
            let lists = lock.withLock { self.lists }
            let items = lists.map { JSON.Member($0.kind.plural, .list($0.items)) }
            printJSON(beginning + items + members)
        }
    }

    /// Sums up that it failed. As words that belongs to the standard error.
    func fail(_ error: any Error) {
        live.end()
        LineOutput.complain("\(error)", by: "nigh")
        guard form != .words else { return }
        sumUp([.init("error", Self.json(of: error))], words: [])
    }

    /// Says on the standard error what a person should know and no program waits for.
    func remark(_ words: String) { live.aside { LineOutput.complain(words, by: "nigh") } }

    private func print(_ words: [Line]) {
        live.aside { lines.harmlessLines(words.map { $0.text(colours: hasColours) }) }
    }

    private func printJSON(_ members: [JSON.Member]) {
        live.aside { lines.harmlessLines(["\(JSON.object(members))"]) }
    }

    /// An error in all its parts.
    static func json(of error: any Error) -> JSON {
        guard let error = error as? NighError else { return ["text": .text("\(error)")] }
        return [
            "text": .text("\(error)"), "stage": .text(error.stage.rawValue),
            "cause": .text(error.cause.label), "cause_text": .text("\(error.cause)"),
            "peer": JSON(error.peer),
            "transport": JSON(error.transport), "advice": JSON(error.advice),
            "attempts": .list(error.attempts.map(json)),
        ]
    }
}
