import Terminal

/// What the person is being asked, or is writing, before anything else can be done.
enum Prompt {
    /// Whether to give the game up.
    case resign
    /// Whether to leave in the middle of a game.
    case leave
    /// How strong the machine is to be.
    case level(Int)
    /// What to say at the table.
    case chat(LineEditor)
    /// Nothing: it shows all keys, until one is pressed.
    case help

    static let levels = 1...9
    static let usualLevel = 5
}
