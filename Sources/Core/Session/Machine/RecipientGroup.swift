/// The conversations that the last message to several peers went to, in the order of its recipients. Usually the next
/// one goes to the same peers, and then need not look them up or retain each of them. Loop only.
struct RecipientGroup {
    private var conversations: ContiguousArray<Conversation> = []
    /// `conversations`, for access that retains nothing.
    private var unretained: ContiguousArray<Unmanaged<Conversation>> = []

    /// Returns the conversation that the recipient at `index` had last time, if it is with `id` and still accepts
    /// messages. Valid during a call that ends no conversation.
    @inline(__always)
    func remembered(_ index: Int, _ id: PeerID) -> Unmanaged<Conversation>? {
        guard index < unretained.count else { return nil }
        let candidate = unretained[index]
        let isRight = candidate._withUnsafeGuaranteedRef { $0.peer == id && $0.acceptsMessages }
        return isRight ? candidate : nil
    }

    /// Remembers the conversation of the recipient at `index`.
    mutating func keep(_ conversation: Conversation, at index: Int) {
        if index < conversations.count {
            conversations[index] = conversation
            unretained[index] = .passUnretained(conversation)
        } else if index == conversations.count {
            conversations.append(conversation)
            unretained.append(.passUnretained(conversation))
        }
    }
}
