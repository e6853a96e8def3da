import FourInARow

/// How a person sees the game and says what to do: a screen, or lines.
protocol Front: AnyObject, Sendable {
    /// Begins. `wished` is called for what the person wants, on any thread.
    func start(_ view: LobbyView, wished: @escaping @Sendable (Wish) -> Void) throws

    /// Told with everything as it is now, and with what has happened. Called on the lobby's loop; must not block it.
    func show(_ view: LobbyView, _ news: LobbyNews?)

    /// What was wished last cannot be done.
    func refused(_ breach: Breach)

    /// Something else to be said.
    func tell(_ words: String)

    /// Gives everything back that was taken to be seen. Nothing is called afterwards.
    func stop()
}
