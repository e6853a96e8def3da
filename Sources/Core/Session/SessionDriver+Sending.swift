// Messages from the loop on their way to the conversations.

extension SessionDriver {
    /// The conversation with a peer one can send to, found without hashing where it is the same as last time.
    private func conversation(with id: PeerID) throws(NighError) -> Conversation {
        if let lastSentTo, lastSentTo.peer == id, lastSentTo.acceptsMessages { return lastSentTo }
        return try findConversation(with: id)
    }

    private func findConversation(with id: PeerID) throws(NighError) -> Conversation {
        guard let peer = machine.peers[id], let conversation = peer.conversation else {
            throw notConnected(id)
        }
        guard conversation.acceptsMessages else { throw NighError(.sending, .left, peer: peer.label) }
        lastSentTo = conversation
        lastSentToUnretained = .passUnretained(conversation)
        return conversation
    }

    private func notConnected(_ id: PeerID) -> NighError {
        NighError(
            .sending, isClosed ? .closed : .notConnected, peer: machine.peers[id]?.label ?? id.short,
            advice: isClosed ? nil : "invite the peer and wait until it is connected")
    }

    /// Sends from the loop: behind what other threads have staged for the peer, at most one copy of the bytes.
    @inline(__always)
    func send(_ bytes: UnsafeRawBufferPointer, to id: PeerID, on lane: Lane, isNext: Bool) throws(NighError) {
        if let lastSentToUnretained {
            let isSent = lastSentToUnretained._withUnsafeGuaranteedRef { conversation in
                guard conversation.peer == id, conversation.acceptsMessages, !conversation.port.hasStaged,
                    conversation.port.admitsAtOnce(bytes.count, on: lane, isNext: isNext)
                else { return false }
                conversation.accept(bytes, on: lane, pool: &machine.pool)
                announce(conversation)
                return true
            }
            if isSent { return }
        }
        try sendToAnother(bytes, to: id, on: lane, isNext: isNext)
    }

    /// Sends to another peer than last time, behind staged messages, or not at all.
    private func sendToAnother(
        _ bytes: UnsafeRawBufferPointer, to id: PeerID, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        let conversation = try conversation(with: id)
        try admit(bytes.count, to: conversation, on: lane, isNext: isNext)
        conversation.accept(bytes, on: lane, pool: &machine.pool)
        announce(conversation)
    }

    func send(_ payload: ByteSlice, to id: PeerID, on lane: Lane, isNext: Bool) throws(NighError) {
        let conversation = try conversation(with: id)
        try admit(payload.count, to: conversation, on: lane, isNext: isNext)
        conversation.accept(payload, on: lane, pool: &machine.pool)
        announce(conversation)
    }

    /// Sends from the loop to several peers: what fits into a frame is encoded once, and all of them refer to that.
    func send(
        _ payload: ByteSlice, to peers: [PeerID], on lane: Lane, failures: inout [PeerID: NighError]
    ) {
        guard payload.count <= machine.limits.frame else {
            for id in peers { sendSingly(payload, to: id, on: lane, failures: &failures) }
            return
        }
        let encoded = encodeShared(payload, on: lane)
        for (index, id) in peers.enumerated() {
            if let conversation = group.remembered(index, id) ?? remember(id, at: index),
                conversation._withUnsafeGuaranteedRef({ $0.takes(encoded, size: payload.count, on: lane) })
            {
                conversation._withUnsafeGuaranteedRef { announce($0) }
            } else {
                sendSingly(payload, to: id, on: lane, failures: &failures)
            }
        }
    }

    @inline(never)
    private func sendSingly(
        _ payload: ByteSlice, to id: PeerID, on lane: Lane, failures: inout [PeerID: NighError]
    ) {
        do throws(NighError) {
            try send(payload, to: id, on: lane, isNext: false)
        } catch {
            failures[id] = error
        }
    }

    @inline(never)
    private func remember(_ id: PeerID, at index: Int) -> Unmanaged<Conversation>? {
        guard let conversation = machine.peers[id]?.conversation, conversation.acceptsMessages else {
            return nil
        }
        group.keep(conversation, at: index)
        return .passUnretained(conversation)
    }

    private func encodeShared(_ payload: ByteSlice, on lane: Lane) -> ByteSlice {
        let needed = SendLane.cost(of: payload.count)
        if shared.map({ $0.room < needed }) ?? true {
            let full = shared.take()
            shared = needed <= machine.pool.chunkSize ? machine.pool.take() : Chunk(capacity: needed)
            if let full { machine.pool.recycle(full) }
        }
        let chunk = shared.unsafelyUnwrapped
        let start = chunk.filled
        payload.withUnsafeBytes { EncodedMessage.write($0, on: lane, to: chunk.claim(needed)) }
        return chunk.slice(from: start)
    }

    private func admit(
        _ count: Int, to conversation: Conversation, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        let port = conversation.port
        if port.hasStaged { takeStaged(from: port, into: conversation) }
        try port.admit(count, on: lane, isNext: isNext)
    }

    func takeStaged(from port: PeerPort, into conversation: Conversation) {
        while let run = port.takeStaged() { conversation.accept(run, pool: &machine.pool) }
    }

    /// Sees to it that the link writes what the conversation has accepted; mostly that is seen to already.
    @inline(__always)
    private func announce(_ conversation: Conversation) {
        if !conversation.isAnnounced { announceAnew(conversation) }
    }

    @inline(never)
    private func announceAnew(_ conversation: Conversation) {
        conversation.isAnnounced = true
        if let link = conversation.carrier { writeSoon(link) }
    }

    func writeSoon(_ link: Link) {
        machine.markDirty(link)
        guard depth == 0, !flushIsDue else { return }
        flushIsDue = true
        loop.execute(flushWork)
    }

    /// Hands an unreliable message to the link, or drops it where that would have to wait.
    func sendUnreliable(_ bytes: UnsafeRawBufferPointer, to id: PeerID) throws(NighError) {
        let conversation = try conversation(with: id)
        let limit = min(machine.limits.unreliableMessage, conversation.largestWholeMessage)
        guard bytes.count <= limit else {
            throw NighError(
                .sending, .messageTooLarge(size: bytes.count, limit: limit), peer: id.short,
                advice: "send it reliably, or less of it")
        }
        guard let link = machine.peers[id]?.link, let connection = connections[link.number],
            connection.pipe.writableBytes > link.machine.unreliableByteCount &+ bytes.count
        else {
            conversation.statistics.unreliableDropped &+= 1
            return
        }
        link.machine.sendUnreliable(bytes)
        writeSoon(link)
    }
}
