extension SessionDriver {
    /// Delivers the messages that a link received, one by one, each after the events that came before it.
    @inline(__always)
    func deliver(from connection: PipeConnection, now: Moment) {
        let link = connection.link
        let handlerBox = messageHandlerBox
        while true {
            if let conversation = link.conversation {
                if let handlerBox, conversation.inbox == nil {
                    deliverWholeMessages(from: link, in: conversation, to: handlerBox, now: now)
                } else {
                    enqueueWholeMessages(from: link, in: conversation, now: now)
                }
            }
            guard let delivery = machine.nextDelivery(from: link, now: now) else { break }
            if machine.hasDirectives {
                carryOutDirectives()
                guard delivery.conversation.isActive else { continue }
            }
            deliver(delivery, from: link, to: handlerBox)
        }
        machine.finishReceiving(on: link, now: now)
        if !link.machine.wantsToRead, !connection.isPaused, link.purpose != .finished {
            connection.isPaused = true
            connection.pipe.pauseReading()
        }
    }

    /// Delivers messages that came whole. This is the fast path: it retains nothing for any of them.
    @inline(__always)
    private func deliverWholeMessages(
        from link: Link, in conversation: Conversation, to handlerBox: MessageHandlerBox, now: Moment
    ) {
        let peer = conversation.peer
        while let frame = machine.nextWholeMessage(from: link, in: conversation, now: now) {
            handlerBox.handler(frame.bytes.bytes, MessageOrigin(peer: peer, frameType: frame.type))
        }
    }

    @inline(__always)
    func deliver(_ delivery: Delivery, from link: Link, to handlerBox: MessageHandlerBox?) {
        if let kind = delivery.kind {
            guard let place = layers?.receivers[kind]?(delivery.bytes.bytes, kind, delivery.origin)
            else { return }
            return enqueue(delivery, from: link, in: place.messages.inbox, hiding: place.layerByteCount)
        }
        let ownInbox = delivery.conversation.inbox
        guard ownInbox == nil, let handlerBox else {
            return enqueue(delivery, from: link, in: ownInbox ?? inbox)
        }
        handlerBox.handler(delivery.bytes.bytes, delivery.origin)
    }

    /// Puts messages that came whole into the inbox. They lie one after another in memory and stay so, with one
    /// reference for all. Drops unreliable ones while a whole window is unread.
    @inline(__always)
    private func enqueueWholeMessages(from link: Link, in conversation: Conversation, now: Moment) {
        let window = machine.limits.receiveWindow
        var start: UnsafeRawPointer?
        var count = 0
        while let frame = machine.nextWholeMessage(from: link, in: conversation, now: now) {
            if frame.type == FrameType.unreliable.rawValue, conversation.unread >= window {
                conversation.statistics.unreliableUnread &+= 1
                enqueue(frames: .init(start: start, count: count), from: link, in: conversation)
                start = nil
                count = 0
                continue
            }
            // Counted at once, because the next message may end the conversation, which then reports how much is
            // unread.
            conversation.countUnread(frame.wireBytes)
            if start == nil { start = frame.bytes.baseAddress.unsafelyUnwrapped - FrameHeader.byteCount }
            count &+= frame.wireBytes
        }
        enqueue(frames: .init(start: start, count: count), from: link, in: conversation)
    }

    /// Puts messages that lie one after another into the inbox as one run.
    private func enqueue(frames: UnsafeRawBufferPointer, from link: Link, in conversation: Conversation) {
        guard !frames.isEmpty else { return }
        (conversation.inbox ?? inbox).append(
            UnreadRun(port: conversation.port, bytes: link.machine.retain(frames), origin: nil))
    }

    /// Puts a message into an inbox. Drops an unreliable one while a whole window is unread.
    private func enqueue(
        _ delivery: Delivery, from link: Link, in inbox: MessageInbox, hiding hiddenByteCount: Int = 0
    ) {
        let conversation = delivery.conversation
        if !delivery.origin.isReliable, conversation.unread >= machine.limits.receiveWindow {
            conversation.statistics.unreliableUnread &+= 1
            return
        }
        conversation.countUnread(delivery.cost)
        inbox.append(
            UnreadRun(
                port: conversation.port, bytes: delivery.retained(from: link), origin: delivery.origin,
                hiddenByteCount: hiddenByteCount))
    }

    func pipeOver(_ connection: PipeConnection, error: NighError?) {
        if connection.link.isHeld {
            connection.endWhileHeld = error.map { .failure($0) } ?? .success(())
            return
        }
        guard remove(connection.link) != nil else { return }
        machine.pipeClosed(connection.link, error: error, now: loop.now)
        observeEnd(of: connection.link, cause: error?.cause)
    }
}

extension SessionDriver {
    /// Stops reading from a link until it is released or closed.
    func hold(_ link: Link) {
        guard let connection = connections[link.number], !connection.isPaused else { return }
        connection.isPaused = true
        connection.pipe.pauseReading()
    }

    /// Reads from a link again, first the bytes that came meanwhile.
    func release(_ link: UInt64) {
        guard !isClosed, let connection = connections[link], !connection.link.isHeld else { return }
        inTurn {
            deliver(from: connection, now: loop.now)
            if connection.link.machine.tap != nil { observe(connection.link) }
            switch connection.endWhileHeld {
            case .success?: return pipeOver(connection, error: nil)
            case .failure(let error)?: return pipeOver(connection, error: error)
            case nil: break
            }
            guard connection.isPaused, connection.link.machine.wantsToRead else { return }
            connection.isPaused = false
            connection.pipe.resumeReading()
        }
    }
}
