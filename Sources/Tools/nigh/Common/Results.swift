import Glibc
import JSONText
import NighCore
import ProgramSupport

/// Reports the results of a command, in the form that the user asked for: items as they come, then one summary.
///
/// In words, each item's lines are printed as it comes, then the lines of the summary. As lines of JSON, each item is
/// an object with its kind as `type`, and the summary has the type `summary`. As one JSON object, the object has a list
/// of items for each kind, and after those the members of the summary.
///
/// Callable from any thread. `@unchecked Sendable`: the lock guards all mutable state.
final class Results: @unchecked Sendable {
    /// The version of the JSON format. A change that could break a reader increases it; new members do not.
    static let format = 1

    /// The kind of an item.
    struct Kind: Hashable, Sendable {
        /// The `type` in a line of JSON, for example `reply`.
        let name: String
        /// The name of the list in one JSON object, for example `replies`.
        let plural: String

        init(_ name: String, plural: String) {
            self.name = name
            self.plural = plural
        }
    }

    let form: OutputOptions.Form
    /// The live lines on the standard error, if that is a terminal.
    let live: LiveRegion

    /// Whether remarks and single items are left out.
    let isQuiet: Bool
    private let command: String
    private let hasColours: Bool
    private let output: LineOutput
    private let lock = Lock()
    private var lists: [(kind: Kind, items: [JSON])]
    /// The names of peers, by the short PeerIDs that stand for them in errors.
    private var names: [String: DisplayName] = [:]
    /// The last text that `showWaiting` wrote to a standard error that is no terminal.
    private var lastWaiting: String?

    /// The maximum number of names that are kept: strangers can use any number of keys.
    private static let maximumNames = 1_000

    /// Creates the reporter of `command`, whose items are of `kinds`. Calls `onFailure` when nobody reads the results
    /// any more.
    init(
        of command: String, _ options: OutputOptions, kinds: [Kind] = [],
        onFailure: @escaping @Sendable () -> Void
    ) {
        self.command = command
        form = options.form
        isQuiet = options.isQuiet
        hasColours = options.showsColours(on: STDOUT_FILENO)
        live = LiveRegion(hasColours: options.showsColours(on: STDERR_FILENO), isQuiet: options.isQuiet)
        output = LineOutput(onFailure: onFailure)
        lists = kinds.map { ($0, []) }
    }

    /// Whether results are reported in words. If not, callers skip details that only words show.
    var isText: Bool { form == .text }

    /// Reports an item: `lines` as text, else `members` as JSON.
    func report(_ kind: Kind, _ members: [JSON.Member], lines: [Line]) {
        switch form {
        case .text: print(lines)
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

    /// Reports the summary; nothing is reported after it.
    func summarize(_ members: [JSON.Member], lines: [Line]) {
        live.end()
        let beginning: [JSON.Member] = [
            .init("nigh", .text(command)), .init("format", .integer(Self.format)),
        ]
        switch form {
        case .text: print(lines)
        case .jsonLines:
            printJSON([.init("type", "summary")] + beginning + members)
        case .json:
            let lists = lock.withLock { self.lists }
            let items = lists.map { JSON.Member($0.kind.plural, .list($0.items)) }
            printJSON(beginning + items + members)
        }
    }

    /// Reports that the command failed. The words go to the standard error.
    func fail(_ error: any Error) {
        live.end()
        let error: any Error = (error as? NighError).map { named($0) } ?? error
        LineOutput.printError(CheckCode.text(of: error, Self.checkCodes(of: error)), by: "nigh")
        guard form != .text else { return }
        summarize([.init("error", Self.json(of: error))], lines: [])
    }

    /// Writes a remark for a person to the standard error; programs do not depend on it.
    func remark(_ text: String) {
        if isQuiet { return }
        live.writeAbove { LineOutput.printError(text, by: "nigh") }
    }

    /// Writes an error that does not end the command as a remark.
    func remark(_ error: any Error) {
        remark((error as? NighError).map { "\(named($0))" } ?? "\(error)")
    }

    /// Shows a person the reason for waiting: at a terminal in place, until `endWaiting`; elsewhere as one line on the
    /// standard error, unless the results are JSON.
    func showWaiting(_ line: Line) {
        if live.isVisible { return live.show([line]) }
        let text = line.text(colours: false)
        let isNew = lock.withLock {
            defer { lastWaiting = text }
            return isText && lastWaiting != text
        }
        if isNew { remark(text) }
    }

    /// Removes the line that `showWaiting` has shown in place.
    func endWaiting() { if live.isVisible { live.show([]) } }

    /// Notes the name of a peer for the errors that know only its PeerID.
    func note(_ peer: Peer) {
        lock.withLock {
            guard names.count < Self.maximumNames || names[peer.id.short] != nil else { return }
            names[peer.id.short] = peer.displayName
        }
    }

    /// Returns the error with the names of the peers that it, or one of its attempts, names by short PeerIDs only.
    func named(_ error: NighError) -> NighError {
        var error = error
        error.attempts = error.attempts.map { named($0) }
        if let short = error.peer, let name = lock.withLock({ names[short] }) {
            error.peer = "\(name) (\(short))"
        }
        return error
    }

    private func print(_ lines: [Line]) {
        live.writeAbove { output.writeSanitized(lines.map { $0.text(colours: hasColours) }) }
    }

    private func printJSON(_ members: [JSON.Member]) {
        live.writeAbove { output.writeSanitized(["\(JSON.object(members))"]) }
    }

    /// An error with all its parts.
    static func json(of error: any Error) -> JSON {
        let code = JSON(checkCodes(of: error).first)
        guard let error = error as? NighError else { return ["text": .text("\(error)"), "code": code] }
        return [
            "text": .text("\(error)"), "stage": .text(error.stage.rawValue),
            "cause": .text(error.cause.label), "cause_text": .text("\(error.cause)"),
            "peer": JSON(error.peer),
            "transport": JSON(error.transport), "advice": JSON(error.advice),
            "attempts": .list(error.attempts.map(json)), "code": code,
        ]
    }

    private static func checkCodes(of error: any Error) -> [String] {
        (error as? any ExplainedError)?.checkCodes ?? []
    }
}
