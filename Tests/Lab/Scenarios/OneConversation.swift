/// The states of a peer since it was first seen: found, connected, and disconnected.
///
/// Links may be lost and replaced on the way if the conversation goes on. Nigh promises that for every unreliable wire,
/// and an emulated one on a busy machine may be unreliable.
struct OneConversation {
    /// The states in the order in which they were reported.
    let states: [String]

    /// Whether there was one conversation, which ended, however often its link was replaced. The last link may be lost
    /// before the other side's goodbye has arrived.
    var isWhole: Bool {
        let beginning = ["available", "connecting", "connected"]
        guard states.starts(with: beginning) else { return false }
        var rest = states.dropFirst(beginning.count)
        while rest.starts(with: ["reconnecting", "connected"]) { rest = rest.dropFirst(2) }
        if rest.first == "reconnecting" { rest = rest.dropFirst() }
        return rest.first == "disconnected" && !rest.contains("connecting")
    }
}
