import FourInARow
import NighCore
import SessionArguments
import Terminal

/// The sentences that announce news to the person.
///
/// The screens and the plain text mode use them. Names and words of other peers are made harmless. This code only makes
/// text, and shows no more of an error than its cause and advice.
enum Sentences {
    /// Returns the sentence for `news`, or nil if the screen shows them anyway. `view` is the state after the news.
    static func sentence(for news: LobbyNews, in view: LobbyView) -> String? {
        text(for: news, view).map { CellText($0).string }
    }

    /// Returns why the last request was refused.
    static func sentence(for refusal: Breach, in view: LobbyView) -> String {
        let tableView = view.place.tableView
        switch refusal {
        case .columnFull: return Game.Refusal.columnFull.description
        case .outOfTurn where tableView?.pending != nil: return "your last action is still on its way"
        case .outOfTurn: return Game.Refusal.notYourTurn.description
        case .untimely, .falseClaim, .garbage, .falseReport:
            guard let tableView else { return "you are not at a table" }
            guard tableView.ownDisc != nil else { return "you only watch here" }
            guard let game = tableView.table.game, !tableView.table.isWaiting else {
                return "nobody plays with you yet"
            }
            return game.ending == nil ? "the game is not over yet" : Game.Refusal.over.description
        }
    }

    /// The mark of a guest in a browser, which people have to see.
    static let guestMark = "guest, not encrypted"

    /// The reason why no code for phones can be shown.
    static let noCode = "the code for phones is shown at your own table, if the game was started with --web"

    private static func text(for news: LobbyNews, _ view: LobbyView) -> String? {
        switch news {
        case .table(let news):
            return view.place.tableView.flatMap { TableSentences(view, $0).text(for: news) }
        case .seatRequested(let seatRequest):
            return "\(seatRequest.name) wants to play, over \(seatRequest.transport)"
        case .seatRequestWithdrawn(let seatRequest):
            return "\(seatRequest.name) no longer waits for your answer"
        case .hasKnownName(let id, let name, let trust):
            return PeerWarning(id, name: name, trust: trust)?.sentence
        case .linkLost(let person, let grace):
            guard concernsGame(person, view) else { return nil }
            return "no connection to \(person.name): waiting \(seconds(grace)) s for them to come back"
        case .linkRestored(let person): return concernsGame(person, view) ? "\(person.name) is back" : nil
        case .changedTransport(let person, _):
            guard concernsGame(person, view), let transport = person.transport else { return nil }
            let isPlaying = view.place.tableView?.table.isPlaying ?? false
            return isPlaying
                ? "the game goes on over \(transport)" : "\(person.name) is reached over \(transport) now"
        case .notReachedYet(let name, let error):
            return "\(name) does not answer yet: \(cause(error)); trying again"
        case .couldNotJoin(let name, let error): return refusal(by: name, error)
        case .tableClosed(let name, let error): return closing(by: name, error)
        case .hostLeft(let name, let successor):
            let host = successor.map { "\($0) now hosts the table" } ?? "you now host the table"
            return "\(name) left; \(host). Waiting for a player."
        case .hostMisbehaved(let name, let breach):
            return "the program of \(name) \(breach): you have left their table"
        case .transport(let scheme, .up): return "\(scheme) works"
        case .transport(let scheme, .down(let error)): return broken(scheme, error)
        case .otherFailure(let error): return failure(error)
        case .advertised(let scheme, let name):
            return name == view.name ? nil : "over \(scheme) others see you as \(name)"
        }
    }

    /// Returns whether a person's link matters to the game. Nothing is said about watchers that come and go.
    private static func concernsGame(_ person: Person, _ view: LobbyView) -> Bool {
        guard case .hosting(let tableView) = view.place else { return true }
        return tableView.guest?.id == person.id
    }

    /// Returns whole seconds, rounded up, so that no sentence says "0 s".
    private static func seconds(_ duration: Duration) -> Int64 {
        let (seconds, rest) = duration.components
        return rest > 0 ? seconds + 1 : seconds
    }

    // MARK: Errors

    /// Returns the cause and the advice of an error, without the program's names for them.
    static func reason(_ error: NighError) -> String {
        let (cause, advice) = (cause(error), error.advice ?? first(error).advice)
        return advice.map { "\(cause); \($0)" } ?? cause
    }

    /// Returns a few words about a transport that does not work. There are others.
    static func broken(_ scheme: String, _ error: NighError) -> String {
        "\(scheme) does not work: \(cause(error))"
    }

    private static func cause(_ error: NighError) -> String { first(error).cause.description }

    /// Returns the error that explains most: if several attempts failed, that of the first one.
    private static func first(_ error: NighError) -> NighError {
        var error = error
        while error.cause == .allFailed, let attempt = error.attempts.first { error = attempt }
        return error
    }

    private static func failure(_ error: NighError) -> String {
        switch (error.peer, error.transport) {
        case (let peer?, let transport?): "\(peer), over \(transport): \(reason(error))"
        case (let one?, nil), (nil, let one?): "\(one): \(reason(error))"
        case (nil, nil): reason(error)
        }
    }

    private static func refusal(by name: String, _ error: NighError) -> String {
        switch first(error).cause {
        case .declined(let reason, _): reason.isEmpty ? "\(name) said no" : "\(name) said no: \(reason)"
        case .peerLeft: "\(name) is not there any more"
        default: "could not get to the table of \(name): \(reason(error))"
        }
    }

    private static func closing(by name: String, _ error: NighError?) -> String {
        guard let error else { return "\(name) has closed the table" }
        return switch first(error).cause {
        case .peerLeft, .left: "\(name) has closed the table"
        default: "the connection to \(name) is lost: \(reason(error))"
        }
    }
}
