/// A pipe and its link: hands what the pipe tells to the session machine, and messages on to the program. Loop only.
final class PipeConnection: PipeHandler {
    let pipe: any Pipe
    let link: Link
    /// Reading is paused until the link's answers have been written, or while the link is held.
    var isPaused = false
    /// The pipe was over while the link was held; why.
    var endWhileHeld: Result<Void, NighError>?
    /// Holds the connection in turn, until the pipe is over or the session closed.
    private let driver: SessionDriver

    init(pipe: any Pipe, link: Link, driver: SessionDriver) {
        self.pipe = pipe
        self.link = link
        self.driver = driver
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard !driver.isClosed else { return }
        let now = driver.loop.now
        driver.inTurn {
            driver.machine.received(bytes, on: link, now: now)
            if link.machine.tap != nil { driver.observe(link) }
            if link.isHeld { return }
            driver.deliver(from: self, now: now)
            if link.machine.tap != nil { driver.observe(link) }
        }
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        driver.inTurn { driver.machine.markDirty(link) }
    }

    /// The other side writes no more: without its answers there is no conversation, so the link is over.
    func pipeEnded(_ pipe: any Pipe) {
        driver.inTurn { driver.pipeOver(self, error: nil) }
        pipe.close(.afterWriting)
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        driver.inTurn { driver.pipeOver(self, error: error) }
    }
}

extension SessionDriver {
    /// Hands out what a link brought, message by message, each after the events that came before it.
    @inline(__always)
    func deliver(from connection: PipeConnection, now: Moment) {
        let link = connection.link
        let door = messageDoor
        while true {
            if let conversation = link.conversation {
                if let door {
                    handOver(from: link, in: conversation, to: door, now: now)
                } else {
                    keepAll(from: link, in: conversation, now: now)
                }
            }
            guard let delivery = machine.nextDelivery(from: link, now: now) else { break }
            if machine.hasDirectives {
                carryOutDirectives()
                guard delivery.conversation.isActive else { continue }
            }
            hand(delivery, from: link, to: door)
        }
        machine.finishReceiving(on: link, now: now)
        if !link.machine.wantsToRead, !connection.isPaused, link.purpose != .finished {
            connection.isPaused = true
            connection.pipe.pauseReading()
        }
    }

    /// The short way for messages that came whole: it takes no reference for any of them.
    @inline(__always)
    private func handOver(
        from link: Link, in conversation: Conversation, to door: MessageDoor, now: Moment
    ) {
        let peer = conversation.peer
        while let frame = machine.nextWholeMessage(from: link, in: conversation, now: now) {
            door.handler(frame.bytes.bytes, MessageOrigin(peer: peer, frameType: frame.type))
        }
    }

    @inline(__always)
    private func hand(_ delivery: Delivery, from link: Link, to door: MessageDoor?) {
        guard let door else { return keep(delivery, from: link) }
        door.handler(delivery.bytes.bytes, delivery.origin)
    }

    /// Keeps messages that came whole: they lie one behind the other and stay so, with one reference for all.
    @inline(__always)
    private func keepAll(from link: Link, in conversation: Conversation, now: Moment) {
        let window = machine.limits.receiveWindow
        var start: UnsafeRawPointer?
        var count = 0
        while let frame = machine.nextWholeMessage(from: link, in: conversation, now: now) {
            if frame.type == FrameType.unreliable.rawValue, conversation.unread >= window {
                conversation.statistics.unreliableUnread &+= 1
                keep(frames: .init(start: start, count: count), from: link, in: conversation)
                start = nil
                count = 0
                continue
            }
            // At once: the message after it may end the conversation, which then says how much is unread.
            conversation.becameUnread(frame.wireBytes)
            if start == nil { start = frame.bytes.baseAddress.unsafelyUnwrapped - FrameHeader.byteCount }
            count &+= frame.wireBytes
        }
        keep(frames: .init(start: start, count: count), from: link, in: conversation)
    }

    private func keep(frames: UnsafeRawBufferPointer, from link: Link, in conversation: Conversation) {
        guard !frames.isEmpty else { return }
        inbox.append(
            UnreadRun(port: conversation.port, bytes: link.machine.retain(frames), origin: nil))
    }

    private func keep(_ delivery: Delivery, from link: Link) {
        let conversation = delivery.conversation
        if !delivery.origin.isReliable, conversation.unread >= machine.limits.receiveWindow {
            conversation.statistics.unreliableUnread &+= 1
            return
        }
        conversation.becameUnread(delivery.cost)
        inbox.append(
            UnreadRun(
                port: conversation.port, bytes: delivery.retained(from: link), origin: delivery.origin))
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
    /// Tells the observer what a link has noted for it.
    @inline(never)
    func observe(_ link: Link) {
        guard let observer, let tap = link.machine.tap else { return }
        let now = loop.now
        for event in tap.take() { observer.link(link.number, event, at: now) }
    }

    private func observeBeginning(of connection: PipeConnection, scheme: String) {
        guard let observer else { return }
        connection.link.machine.observe()
        let opening = LinkOpening(
            isDialled: connection.link.machine.side == .dialling, scheme: scheme,
            localAddress: connection.pipe.localAddress, remoteAddress: connection.pipe.remoteAddress)
        observer.link(connection.link.number, .opened(opening), at: loop.now)
        observe(connection.link)
    }

    /// Tells the observer that a link is over, which was forgotten here before; the cause is the link's own where none is given.
    func observeEnd(of link: Link, cause: NighError.Cause? = nil) {
        guard let observer, link.machine.tap != nil else { return }
        observe(link)
        let end = link.machine.end
        var told = cause ?? end?.cause ?? .closed
        // A link that this side ends as it likes always has the same cause; the code says more.
        if cause == nil, told == .left, let code = end?.code, code != .left, code != .sessionClosed {
            told = LinkClose(code).cause
        }
        let ending = LinkEnding(
            words: "\(told)", code: end?.number, isByPeer: end?.saidByPeer ?? false)
        observer.link(link.number, .ended(ending), at: loop.now)
    }
}

extension SessionDriver {
    /// Reads nothing from a link until it is released or closed.
    func hold(_ link: Link) {
        guard let connection = connections[link.number], !connection.isPaused else { return }
        connection.isPaused = true
        connection.pipe.pauseReading()
    }

    /// Reads again, first what came meanwhile.
    func release(_ link: UInt64) {
        guard !isClosed, let connection = connections[link], !connection.link.isHeld else { return }
        inTurn {
            switch connection.endWhileHeld {
            case .success?: return pipeOver(connection, error: nil)
            case .failure(let error)?: return pipeOver(connection, error: error)
            case nil: break
            }
            deliver(from: connection, now: loop.now)
            if connection.link.machine.tap != nil { observe(connection.link) }
            guard connection.isPaused, connection.link.machine.wantsToRead else { return }
            connection.isPaused = false
            connection.pipe.resumeReading()
        }
    }
}

extension SessionDriver: TransportEvents {
    private func index(of transport: any Transport) -> Int? { transports.firstIndex { $0 === transport } }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { routeSeen(sighting, by: transport) }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        routeSeen(sighting, by: transport)
    }

    private func routeSeen(_ sighting: Sighting, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn { machine.routeSeen(sighting, transport: index, now: loop.now) }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.routeLost(address) }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn { machine.addressKnown(address, transport: index, now: loop.now) }
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed,
            let link = machine.pipeOpened(
                transport: index, dial: dial, at: pipe.remoteAddress, now: loop.now)
        else { return pipe.close(.now) }
        let connection = PipeConnection(pipe: pipe, link: link, driver: self)
        connections[link.number] = connection
        observeBeginning(of: connection, scheme: transport.scheme)
        pipe.start(handler: connection)
        inTurn {}
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.dialFailed(dial, error: error, now: loop.now) }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn {
            machine.isAdvertised(as: name)
            machine.output(.tell(.advertised(scheme: transport.scheme, name)))
        }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    func browsingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    private func failed(_ error: NighError) {
        guard !isClosed else { return }
        inTurn { machine.output(.tell(.transportFailed(error))) }
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.output(.tell(.listening(scheme: transport.scheme, addresses))) }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn {
            machine.output(.tell(.transportChanged(scheme: transport.scheme, condition)))
            switch condition {
            case .up: machine.visitAddresses(transport: index, now: loop.now)
            case .down: machine.routesLost(transport: index)
            }
        }
    }
}
