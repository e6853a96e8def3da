import FourInARow

/// How a person sees the game and enters commands: a screen, or lines.
protocol Front: AnyObject, Sendable {
    /// Starts to show `view`. Calls `wished`, on any thread, with what the person wants.
    func start(_ view: LobbyView, wished: @escaping @Sendable (Wish) -> Void) throws

    /// Shows the current view and what has just happened. Called on the lobby's loop, which it must not block.
    func show(_ view: LobbyView, _ news: LobbyNews?)

    /// Reports that the last request is not possible.
    func refused(_ breach: Breach)

    /// Shows another sentence.
    func tell(_ words: String)

    /// Gives back the terminal and everything else that was taken over to show the game. Nothing is called afterwards.
    func stop()
}
