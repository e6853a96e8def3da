/// The path of a session's messages into their conversations: it admits, encodes and counts them, and gives one message
/// to many recipients. A value without I/O. The session machine has one, and finds the conversations.
struct Outbox {
    /// The chunks of encoded messages, given back when acknowledged. It keeps the number that one peer needs while
    /// messages are sent to it without a pause, because new memory from the system costs more than the message. The
    /// small ones are longer than `SessionDriver.flowByteCount`: a pipe in memory passes on chunk by chunk, and the
    /// first must not look like all there is.
    var pool = LaneChunks(smallSize: 4 << 10, largeSize: 32 << 10, keepAtMost: 128)
    /// The chunk in which messages to several peers are encoded.
    private var shared: Chunk?
    /// The recipients of the last message to several peers.
    private var group = RecipientGroup()
    /// The recipient of the last message to one peer. Usually the next message goes there, too.
    private var last: Conversation?
    /// `last`, for access that retains nothing.
    private(set) var lastUnretained: Unmanaged<Conversation>?

    // MARK: To one peer

    /// The result of appending a message to the conversation of the last one.
    enum Outcome {
        /// The message goes to another conversation, or something is in its way.
        case notAppended
        case appended
        /// The message was appended to a conversation whose link does not know yet that there is something to write.
        case firstAppended
    }

    /// Appends a message if it goes where the last one went and nothing is in its way. This is the fast path for nearly
    /// all messages: it looks nothing up and retains nothing.
    @inline(__always)
    mutating func appendToLast(
        _ bytes: UnsafeRawBufferPointer, to peer: PeerID, on lane: Lane, isNext: Bool
    ) -> Outcome {
        guard let lastUnretained else { return .notAppended }
        return lastUnretained._withUnsafeGuaranteedRef { conversation in
            guard conversation.peer == peer, conversation.acceptsMessages, !conversation.port.hasStaged,
                conversation.port.admitsAtOnce(bytes.count, on: lane, isNext: isNext)
            else { return .notAppended }
            conversation.append(bytes, on: lane, pool: &pool)
            return conversation.isAnnounced ? .appended : .firstAppended
        }
    }

    /// Returns the conversation of the last message to one peer, if it is with `peer` and still accepts messages.
    func lastConversation(with peer: PeerID) -> Conversation? {
        guard let last, last.peer == peer, last.acceptsMessages else { return nil }
        return last
    }

    mutating func remember(_ conversation: Conversation) {
        last = conversation
        lastUnretained = .passUnretained(conversation)
    }

    /// Appends a message behind those that other threads have staged. Its bytes are copied at most once.
    mutating func append(
        _ bytes: UnsafeRawBufferPointer, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        try admit(bytes.count, to: conversation, on: lane, isNext: isNext)
        conversation.append(bytes, on: lane, pool: &pool)
    }

    mutating func append(
        _ payload: ByteSlice, of kind: MessageKind? = nil, to conversation: Conversation, on lane: Lane,
        isNext: Bool
    ) throws(NighError) {
        try conversation.port.checkAccepts(kind)
        try admit(payload.count &+ kind.byteCount, to: conversation, on: lane, isNext: isNext)
        conversation.append(payload, of: kind, on: lane, pool: &pool)
    }

    private mutating func admit(
        _ count: Int, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        if conversation.port.hasStaged { appendStaged(to: conversation) }
        try conversation.port.admit(count, on: lane, isNext: isNext)
    }

    /// Appends the messages that other threads have staged, which the port has admitted already.
    mutating func appendStaged(to conversation: Conversation) {
        while let run = conversation.port.takeStaged() { conversation.append(run, pool: &pool) }
    }

    // MARK: To several peers

    /// Encodes a message that fits into a frame, once for all recipients.
    mutating func encode(_ payload: ByteSlice, on lane: Lane) -> ByteSlice {
        let needed = SendLane.cost(of: payload.count)
        if shared.map({ $0.room < needed }) ?? true {
            let full = shared.take()
            shared = pool.take(withRoom: needed, isFirst: false)
            if let full { pool.recycle(full) }
        }
        let chunk = shared.unsafelyUnwrapped
        let start = chunk.filled
        payload.withUnsafeBytes { EncodedMessage.write($0, on: lane, to: chunk.claim(needed)) }
        return chunk.slice(from: start)
    }

    /// Returns the conversation that the recipient at `index` had last time, or the one that `find` finds.
    @inline(__always)
    mutating func recipient(
        _ index: Int, _ peer: PeerID, find: (PeerID) -> Conversation?
    ) -> Unmanaged<Conversation>? {
        if let remembered = group.remembered(index, peer) { return remembered }
        guard let conversation = find(peer), conversation.acceptsMessages else { return nil }
        group.keep(conversation, at: index)
        return .passUnretained(conversation)
    }

    // MARK: Unreliable messages

    /// Passes an unreliable message to the link, and returns that link. Drops the message if it would have to wait,
    /// because the pipe has no `room` for it. Of the messages with one key the newest waits.
    func send(
        unreliable bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, to conversation: Conversation,
        room: (Link) -> Int
    ) -> Link? {
        guard let link = conversation.link else {
            conversation.statistics.unreliableDropped &+= 1
            return nil
        }
        if order.mayWait {
            if link.newest.remove(order) { conversation.statistics.unreliableDropped &+= 1 }
            if link.newest.add(bytes, order) { return link }
        }
        guard room(link) > link.machine.unreliableByteCount &+ bytes.count else {
            conversation.statistics.unreliableDropped &+= 1
            return nil
        }
        link.machine.sendUnreliable(bytes)
        return link
    }

    // MARK: Ending

    /// Releases all conversations to which messages went.
    mutating func forgetRecipients() {
        group = RecipientGroup()
        last = nil
        lastUnretained = nil
    }
}
