import FourInARow
import NighCore

/// A request of the person at the screen to the program.
enum UserRequest: Hashable {
    /// Open a table.
    case host
    /// Go to a table.
    case join(PeerID, TableRole)
    /// Play against the bot.
    case playBot(level: Int)
    /// Let a peer sit down, or not.
    case answer(PeerID, accept: Bool)
    /// Take the seat that the host has offered to this watcher, or not.
    case answerOffer(takesSeat: Bool)
    /// Perform an action at the table.
    case act(Action)
    /// Return to the lobby: leave the table, or cancel the attempt to join one.
    case leave
    /// See a new code for guests.
    case newCode
    /// End the program.
    case quit
    /// Stop the program, as Ctrl-Z does.
    case suspend
}
