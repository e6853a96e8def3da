import FourInARow
import NighCore

/// The lines that the bot prints about its games. The line that begins with "game", and the board below it, are the
/// same on both sides of a table.
struct GameReport: Sendable {
    /// Transports that nobody asked for by name. Their failures are not printed.
    let optionalSchemes: Set<String>

    /// Returns the lines to print for `news`, if any.
    func lines(for news: LobbyNews, in view: LobbyView) -> [String] {
        switch news {
        case .table(.ended): return view.place.tableView?.table.game.map(lines(for:)) ?? []
        case .table(.began(let number, let starter)):
            guard number == 1, let tableView = view.place.tableView else { return [] }
            let names = PlayerNames(view, tableView)
            let transport = tableView.other?.transport.map { ", over \($0)" } ?? ""
            return ["\(names[.red]) plays red, \(names[.yellow]) yellow\(transport); \(starter.name) begins"]
        case .table(.moved), .table(.joined): return []
        case .transport(let scheme, .down) where optionalSchemes.contains(scheme): return []
        case .otherFailure(let error) where error.transport.map(optionalSchemes.contains) ?? false: return []
        default: return Sentences.sentence(for: news, in: view).map { [$0] } ?? []
        }
    }

    private func lines(for game: Game) -> [String] {
        let moves = game.moves.map(\.description).joined()
        let head = "game \(game.number), \(game.starter.name) first: \(moves): \(Self.result(of: game))"
        return [head] + game.board.text.split(separator: "\n").map { "  \($0)" }
    }

    private static func result(of game: Game) -> String {
        switch game.ending {
        case .line(let disc): "\(disc.name) wins"
        case .draw: "a draw"
        case .resigned(let disc): "\(disc.name) resigned"
        case .left(let disc): "\(disc.name) left"
        case .brokenOff(let disc, let breach): "broken off: \(disc.name) \(breach)"
        case nil: "not over"
        }
    }
}

extension Disc {
    fileprivate var name: String { self == .red ? "red" : "yellow" }
}
