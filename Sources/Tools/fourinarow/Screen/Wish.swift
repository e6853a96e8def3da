import FourInARow
import NighCore

/// What the person in front of the screen wants of the program.
enum Wish: Hashable {
    /// Open a table of one's own.
    case host
    /// Go to a table.
    case join(PeerID, TableWish)
    /// Play against the machine.
    case playBot(level: Int)
    /// Let somebody sit down, or not.
    case answer(PeerID, accept: Bool)
    /// Do something at the table.
    case act(Action)
    /// Back to the lobby: from the table, or from the way to one.
    case leave
    /// End the program.
    case quit
    /// Stop the program, as Ctrl-Z does.
    case suspend
}
