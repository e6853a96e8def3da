/// The way of a session's messages into the conversations they are for: admits them, encodes them, counts them, and gives
/// one message to many. A value without I/O; the session machine has one, and finds the conversations.
struct Outbox {
    /// Encoded messages live in these; given back when acknowledged. As many are kept as one peer that is sent to without
    /// a pause has under way: memory fresh from the system costs more than the message.
    var pool = ChunkPool(chunkSize: 32 << 10, keepAtMost: 128)
    /// Where messages to several peers are encoded.
    private var shared: Chunk?
    /// To whom the last message to several peers went.
    private var group = RecipientGroup()
    /// To whom the last message to one peer went: mostly the next one goes there, too.
    private(set) var last: Conversation?
    /// The same, for who looks at it without taking a reference: kept by `last`.
    private var lastUnretained: Unmanaged<Conversation>?

    // MARK: To one

    /// What came of a message that was to go where the last one went.
    enum Outcome {
        /// It goes elsewhere, or something is in its way.
        case notAppended
        case appended
        /// It was appended to a conversation whose link does not know yet that there is something to write.
        case firstAppended
    }

    /// Appends a message if it goes where the last one went and nothing is in its way. The short way for nearly all messages: it looks
    /// nothing up and takes no reference.
    @inline(__always)
    mutating func appendAgain(
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

    /// The conversation that the last message to one peer went to, if it is with `peer` and can still be sent to.
    func again(_ peer: PeerID) -> Conversation? {
        guard let last, last.peer == peer, last.acceptsMessages else { return nil }
        return last
    }

    mutating func remember(_ conversation: Conversation) {
        last = conversation
        lastUnretained = .passUnretained(conversation)
    }

    /// Appends a message, behind what other threads have staged: at most one copy of its bytes.
    mutating func append(
        _ bytes: UnsafeRawBufferPointer, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        try admit(bytes.count, to: conversation, on: lane, isNext: isNext)
        conversation.append(bytes, on: lane, pool: &pool)
    }

    mutating func append(
        _ payload: ByteSlice, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        try admit(payload.count, to: conversation, on: lane, isNext: isNext)
        conversation.append(payload, on: lane, pool: &pool)
    }

    private mutating func admit(
        _ count: Int, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        if conversation.port.hasStaged { appendStaged(to: conversation) }
        try conversation.port.admit(count, on: lane, isNext: isNext)
    }

    /// Appends what other threads have staged, which was admitted there.
    mutating func appendStaged(to conversation: Conversation) {
        while let run = conversation.port.takeStaged() { conversation.append(run, pool: &pool) }
    }

    // MARK: To several

    /// Encodes a message that fits into a frame, once for all.
    mutating func encode(_ payload: ByteSlice, on lane: Lane) -> ByteSlice {
        let needed = SendLane.cost(of: payload.count)
        if shared.map({ $0.room < needed }) ?? true {
            let full = shared.take()
            shared = needed <= pool.chunkSize ? pool.take() : Chunk(capacity: needed)
            if let full { pool.recycle(full) }
        }
        let chunk = shared.unsafelyUnwrapped
        let start = chunk.filled
        payload.withUnsafeBytes { EncodedMessage.write($0, on: lane, to: chunk.claim(needed)) }
        return chunk.slice(from: start)
    }

    /// The conversation that the `index`-th of several recipients had last time, or what `find` finds.
    @inline(__always)
    mutating func recipient(
        _ index: Int, _ peer: PeerID, find: (PeerID) -> Conversation?
    ) -> Unmanaged<Conversation>? {
        if let remembered = group.remembered(index, peer) { return remembered }
        guard let conversation = find(peer), conversation.acceptsMessages else { return nil }
        group.keep(conversation, at: index)
        return .passUnretained(conversation)
    }

    // MARK: Unreliably

    /// Hands an unreliable message to the link, which it returns, or drops it where it would have to wait: where the pipe has
    /// no `room` for it.
    func send(
        unreliable bytes: UnsafeRawBufferPointer, to conversation: Conversation, room: (Link) -> Int
    ) -> Link? {
        guard let link = conversation.link, room(link) > link.machine.unreliableByteCount &+ bytes.count
        else {
            conversation.statistics.unreliableDropped &+= 1
            return nil
        }
        link.machine.sendUnreliable(bytes)
        return link
    }

    // MARK: The end

    /// Keeps nobody any more to whom a message went.
    mutating func forgetRecipients() {
        group = RecipientGroup()
        last = nil
        lastUnretained = nil
    }
}
