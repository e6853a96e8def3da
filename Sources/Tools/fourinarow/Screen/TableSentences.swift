import FourInARow

/// The sentences about news at the current table.
struct TableSentences {
    private let names: PlayerNames
    private let own: Disc?
    /// The mark of a guest in a browser after the name of the one who sits down; empty for others.
    private let mark: String

    init(_ view: LobbyView, _ tableView: TableView) {
        names = PlayerNames(view, tableView)
        own = tableView.ownDisc
        mark = tableView.guest?.isGuest == true ? ", \(Sentences.guestMark)," : ""
    }

    func text(for news: TableNews) -> String? {
        switch news {
        case .joined(let seated):
            return seated
                ? "you sit at the table of \(names.host)" : "you watch at the table of \(names.host)"
        case .began(let number, let starter):
            let first = starter == own ? "you move first" : "\(names[starter]) moves first"
            return "game \(number) begins: \(first)"
        case .moved: return nil
        case .ended(let ending): return text(for: ending)
        case .said(let disc, let text): return "\(disc == own ? "you" : names[disc]): \(text)"
        case .guestJoined(let name): return "\(name)\(mark) sits down"
        case .guestLeft(let name): return "\(name) left the table"
        case .resumed(let name):
            return own == names.hostDisc.other
                ? "you take the seat: the game goes on" : "\(name)\(mark) takes the seat: the game goes on"
        case .seatOffered: return "the seat is free. Do you want to play on?"
        case .watched(let count):
            switch count {
            case ...0: return "nobody watches any more"
            case 1: return "one watches"
            default: return "\(count) watch"
            }
        }
    }

    /// Returns how the game has ended, as the local player sees it.
    func text(for ending: Game.Ending) -> String {
        switch ending {
        case .line(let winner) where winner == own: "You win!"
        case .line(let winner): "\(names[winner]) wins"
        case .draw: "It's a draw"
        case .resigned(let loser) where loser == own: "you resigned: \(names[loser.other]) wins"
        case .resigned(let loser) where loser.other == own: "\(names[loser]) resigned: you win"
        case .resigned(let loser): "\(names[loser]) resigned: \(names[loser.other]) wins"
        case .left: "nobody wins this game"
        case .brokenOff(let culprit, let breach) where culprit == own:
            "the program of \(names[culprit.other]) says that yours \(breach): the game is broken off"
        case .brokenOff(let culprit, let breach): "\(names[culprit]) \(breach): the game is broken off"
        }
    }
}

/// The names of the two players at a table, as far as the local player knows them.
struct PlayerNames {
    /// The name of the host.
    let host: String
    /// The colour of the host.
    let hostDisc: Disc
    private let guest: String?

    init(_ view: LobbyView, _ tableView: TableView) {
        hostDisc = tableView.table.hostDisc
        host = tableView.isHost ? view.name : tableView.host?.name ?? "the host"
        guest = tableView.isGuest ? view.name : tableView.table.guest?.description
    }

    /// The name of the player of this colour. For a free seat, it is a word for the guest who had it.
    subscript(disc: Disc) -> String { disc == hostDisc ? host : guest ?? "the guest" }

    /// Returns whether somebody plays this colour.
    func isTaken(_ disc: Disc) -> Bool { disc == hostDisc || guest != nil }
}
