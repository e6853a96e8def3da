import FourInARow

/// A person's interface to the game: a screen, or lines.
protocol UserInterface: AnyObject, Sendable {
    /// Starts to show `view`. Calls `onRequest`, on any thread, with each request of the person.
    func start(_ view: LobbyView, onRequest: @escaping @Sendable (UserRequest) -> Void) throws

    /// Shows the current view and its news. Called on the lobby's loop, which it must not block.
    func show(_ view: LobbyView, _ news: LobbyNews?)

    /// Reports that the last request is not possible.
    func showRefusal(_ breach: Breach)

    /// Shows another sentence.
    func showMessage(_ text: String)

    /// Shows a code for guests, in place of the one before.
    func showCode(_ code: GuestCode)

    /// Gives back the terminal and everything else that was taken over to show the game. Nothing is called afterwards.
    func stop()
}
