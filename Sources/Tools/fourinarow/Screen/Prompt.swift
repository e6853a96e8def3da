import Terminal

/// A question to the person, or a line that the person is writing, before anything else can be done.
enum Prompt {
    /// Whether to resign.
    case resign
    /// Whether to leave in the middle of a game.
    case leave
    /// How strong the bot should be.
    case level(Int)
    /// A chat line for the table.
    case chat(LineEditor)
    /// No question: it shows all keys until one is pressed.
    case help

    static let levels = 1...9
    static let defaultLevel = 5
}
