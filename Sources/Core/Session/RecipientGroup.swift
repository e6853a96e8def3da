/// The conversations that the last message to several peers went to, in the order of its recipients: the next one mostly
/// goes to the same, and need not look them up nor take a reference to each. Loop only.
struct RecipientGroup {
    private var conversations: ContiguousArray<Conversation> = []
    /// The same, for who looks at them without taking a reference.
    private var unretained: ContiguousArray<Unmanaged<Conversation>> = []

    /// Calls `body` with the conversation that the recipient `id`, the `index`-th, has; false when it has none.
    @inline(__always)
    mutating func with(
        _ index: Int, _ id: PeerID, among peers: [PeerID: PeerRecord], _ body: (Conversation) -> Bool
    ) -> Bool {
        if index < unretained.count {
            var isKnown = false
            let result = unretained[index]._withUnsafeGuaranteedRef { conversation in
                isKnown = conversation.peer == id && conversation.acceptsMessages
                return isKnown && body(conversation)
            }
            if isKnown { return result }
        }
        guard let conversation = peers[id]?.conversation, conversation.acceptsMessages else { return false }
        keep(conversation, at: index)
        return body(conversation)
    }

    private mutating func keep(_ conversation: Conversation, at index: Int) {
        if index < conversations.count {
            conversations[index] = conversation
            unretained[index] = .passUnretained(conversation)
        } else if index == conversations.count {
            conversations.append(conversation)
            unretained.append(.passUnretained(conversation))
        }
    }
}
