// Messages from the program: each goes into its conversation, and the conversation's link joins those that have
// something to write. Each reliable `send` returns whether the driver has to flush because it may have added such a
// link.

extension SessionMachine {
    // MARK: From the loop

    @inline(__always)
    mutating func send(
        _ bytes: UnsafeRawBufferPointer, to id: PeerID, on lane: Lane, isNext: Bool
    ) throws(NighError) -> Bool {
        switch outbox.appendToLast(bytes, to: id, on: lane, isNext: isNext) {
        case .appended: return false
        case .firstAppended: return announceLast()
        case .notAppended: return try sendToAnother(bytes, to: id, on: lane, isNext: isNext)
        }
    }

    /// Sends to another peer than last time, or behind staged messages, or throws.
    @inline(never)
    private mutating func sendToAnother(
        _ bytes: UnsafeRawBufferPointer, to id: PeerID, on lane: Lane, isNext: Bool
    ) throws(NighError) -> Bool {
        let conversation = try conversation(with: id)
        try outbox.append(bytes, to: conversation, on: lane, isNext: isNext)
        return announce(conversation)
    }

    mutating func send(
        _ payload: ByteSlice, of kind: MessageKind? = nil, to id: PeerID, on lane: Lane, isNext: Bool
    ) throws(NighError) -> Bool {
        let conversation = try conversation(with: id)
        try outbox.append(payload, of: kind, to: conversation, on: lane, isNext: isNext)
        return announce(conversation)
    }

    /// Sends to several peers. A message that fits into a frame is encoded once, and all of them refer to it.
    mutating func send(
        _ payload: ByteSlice, to ids: [PeerID], on lane: Lane, failures: inout [PeerID: NighError]
    ) -> Bool {
        var isNews = false
        guard payload.count <= limits.frame else {
            for id in ids where send(payload, to: id, on: lane, failures: &failures) { isNews = true }
            return isNews
        }
        let encoded = outbox.encode(payload, on: lane)
        for (index, id) in ids.enumerated() {
            let recipient = outbox.recipient(index, id) { peers[$0]?.conversation }
            if let recipient,
                recipient._withUnsafeGuaranteedRef({ $0.append(encoded, size: payload.count, on: lane) })
            {
                if recipient._withUnsafeGuaranteedRef({ announce($0) }) { isNews = true }
            } else if send(payload, to: id, on: lane, failures: &failures) {
                isNews = true
            }
        }
        return isNews
    }

    @inline(never)
    private mutating func send(
        _ payload: ByteSlice, to id: PeerID, on lane: Lane, failures: inout [PeerID: NighError]
    ) -> Bool {
        do throws(NighError) {
            return try send(payload, to: id, on: lane, isNext: false)
        } catch {
            failures[id] = error
            return false
        }
    }

    /// Passes an unreliable message to the link, or drops it if it would have to wait.
    ///
    /// - Parameter room: returns how many bytes the pipe of a link accepts now.
    mutating func send(
        unreliable bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, to id: PeerID, now: Moment,
        room: (Link) -> Int
    ) throws(NighError) {
        let conversation = try conversation(with: id)
        let limit = min(limits.unreliableMessage, conversation.largestWholeMessage)
        guard bytes.count <= limit else {
            throw NighError(
                .sending, .messageTooLarge(size: bytes.count, limit: limit),
                peer: peers[id]?.label ?? id.short,
                advice: "send it reliably, or send a shorter message")
        }
        if let link = conversation.link, link.machine.hasDatagrams {
            let sending = send(bytes, order, onPathOf: link, now: now)
            // An older one with the same key may still wait within the link.
            if sending != .notOpen, order.mayWait, link.newest.remove(order) {
                conversation.statistics.unreliableDropped &+= 1
            }
            switch sending {
            case .queued: return
            case .tooFast:
                conversation.statistics.unreliableDropped &+= 1
                return
            case .notOpen: break
            }
        }
        if let link = outbox.send(unreliable: bytes, order, to: conversation, room: room) { markDirty(link) }
    }

    // MARK: From other threads

    /// Handles the work of another thread: it has staged messages for a peer, or has read messages from it.
    mutating func processPort(_ port: PeerPort) {
        guard let peer = peers[port.peer] else { return }
        if let conversation = peer.conversation, conversation.port === port, port.hasStaged {
            outbox.appendStaged(to: conversation)
            if let link = conversation.link { markDirty(link) }
        }
        if let conversation = peer.conversation, conversation.port === port {
            conversation.attendToStreams()
            if conversation.streams?.hasUnsent ?? false, let link = conversation.link { markDirty(link) }
        }
        countRead(port.takeRead(), from: peer)
    }

    // MARK: Streams

    /// Opens a stream to a peer.
    mutating func openStream(
        named name: String, to id: PeerID, for purpose: StreamPurpose, now: Moment
    ) throws(NighError) -> StreamPort {
        let conversation = try conversation(with: id)
        let port = try conversation.openStream(named: name, for: purpose)
        if let link = conversation.link {
            measureRoundTrip(for: conversation, on: link, now: now)
            markDirty(link)
        }
        return port
    }

    // MARK: Finding the conversation

    /// Whether the session is closed or closing.
    private var isEnding: Bool { isClosing || isOver }

    /// Returns the conversation with a peer, if it accepts messages. If it is the same as last time, nothing is hashed.
    private mutating func conversation(with id: PeerID) throws(NighError) -> Conversation {
        if let conversation = outbox.lastConversation(with: id) { return conversation }
        guard let peer = peers[id], let conversation = peer.conversation else {
            throw NighError(
                .sending, isEnding ? .closed : .notConnected, peer: peers[id]?.label ?? id.short,
                advice: isEnding ? nil : "invite the peer and wait until it is connected")
        }
        guard conversation.acceptsMessages else {
            throw NighError(.sending, isEnding ? .closed : .left, peer: peer.label)
        }
        outbox.remember(conversation)
        return conversation
    }

    /// Makes sure that the link writes the appended messages. Usually the link is announced already.
    @inline(__always)
    private mutating func announce(_ conversation: Conversation) -> Bool {
        if conversation.isAnnounced { return false }
        return announceNow(conversation)
    }

    @inline(never)
    private mutating func announceLast() -> Bool {
        outbox.lastUnretained?._withUnsafeGuaranteedRef { announceNow($0) } ?? false
    }

    @inline(never)
    private mutating func announceNow(_ conversation: Conversation) -> Bool {
        conversation.isAnnounced = true
        guard let link = conversation.link else { return false }
        markDirty(link)
        return true
    }
}
