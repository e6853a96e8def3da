/// The conversations that the last message to several peers went to, in the order of its recipients: the next one mostly
/// goes to the same, and need not look them up nor take a reference to each. Loop only.
struct RecipientGroup {
    private var conversations: ContiguousArray<Conversation> = []
    /// The same, for who looks at them without taking a reference.
    private var unretained: ContiguousArray<Unmanaged<Conversation>> = []

    /// The conversation the `index`-th recipient had last time, if that is `id` and can still be sent to. For the time of a
    /// call that ends no conversation.
    @inline(__always)
    func remembered(_ index: Int, _ id: PeerID) -> Unmanaged<Conversation>? {
        guard index < unretained.count else { return nil }
        let candidate = unretained[index]
        let isRight = candidate._withUnsafeGuaranteedRef { $0.peer == id && $0.acceptsMessages }
        return isRight ? candidate : nil
    }

    /// Remembers whom the `index`-th recipient turned out to be.
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
