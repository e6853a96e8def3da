// Input from links: hellos, requests, messages, ends.

/// A message for the program, borrowed from the link that it came on. Valid until the next call to the machine.
struct Delivery {
    let conversation: Conversation
    let origin: MessageOrigin
    let bytes: UnsafeRawBufferPointer
    /// The message as a slice, if it was assembled from pieces.
    let whole: ByteSlice?
    /// The kind of a message that is not the program's own.
    let kind: MessageKind?
    /// Whether it came as a datagram, and not within the link.
    var isPacket = false

    /// Creates a delivery of a message that came whole in a frame.
    @inline(__always)
    init(_ frame: FrameDecoder.Frame, in conversation: Conversation) {
        self.conversation = conversation
        origin = MessageOrigin(peer: conversation.peer, frameType: frame.type)
        bytes = frame.bytes
        whole = nil
        kind = nil
    }

    /// Creates a delivery of a message of a kind that came whole in a frame.
    init(_ frame: FrameDecoder.Frame, of kind: MessageKind, on lane: Lane, in conversation: Conversation) {
        self.conversation = conversation
        self.kind = kind
        origin = MessageOrigin(peer: conversation.peer, lane: lane, isReliable: true)
        bytes = UnsafeRawBufferPointer(rebasing: frame.bytes.dropFirst(MessageKind.byteCount))
        whole = nil
    }

    /// Creates a delivery of a message that was assembled from pieces.
    init(whole: ByteSlice, of kind: MessageKind?, on lane: Lane, in conversation: Conversation) {
        self.conversation = conversation
        self.whole = whole
        self.kind = kind
        origin = MessageOrigin(peer: conversation.peer, lane: lane, isReliable: true)
        bytes = whole.pointer
    }

    /// Creates a delivery of a message that came as datagrams.
    init(_ message: DatagramPath.Received, in conversation: Conversation) {
        self.conversation = conversation
        kind = nil
        origin = MessageOrigin(peer: conversation.peer, lane: .main, isReliable: false)
        bytes = message.bytes
        whole = message.whole
        isPacket = true
    }

    /// Returns the message in a form that may be kept.
    func retained(from link: Link) -> ByteSlice {
        if let whole { return whole }
        if isPacket { return ByteSlice(copying: bytes) }
        return link.machine.retain(bytes)
    }

    /// The number of bytes that it counts until the program reads it.
    var cost: Int { SendLane.cost(of: bytes.count) }
}

extension MessageOrigin {
    /// Creates the origin of a message that came whole in a frame of the given type.
    @inline(__always)
    init(peer: PeerID, frameType: UInt8) {
        self.init(
            peer: peer, lane: frameType == FrameType.bulkMessage.rawValue ? .bulk : .main,
            isReliable: frameType != FrameType.unreliable.rawValue)
    }
}

extension SessionMachine {
    /// Returns the next message for the program and counts it, if it came whole and nothing else comes before it.
    /// Otherwise returns nil, and `nextDelivery` continues. This is the fast path for nearly all messages: it retains
    /// nothing and makes no step.
    @inline(__always)
    mutating func nextWholeMessage(
        from link: Link, in conversation: Conversation, now: Moment
    ) -> FrameDecoder.Frame? {
        guard !hasDirectives, let frame = link.machine.nextWholeMessage() else { return nil }
        do throws(WireError) {
            try conversation.received(frame, now: now)
            return frame
        } catch {
            violated(link, error.message, now: now)
            return nil
        }
    }

    /// Processes the bytes that a link received, up to the next message for the program. Returns nil if there is none.
    @inline(__always)
    mutating func nextDelivery(from link: Link, now: Moment) -> Delivery? {
        while let step = link.machine.next(now: now) {
            if let delivery = handle(step, on: link, now: now) { return delivery }
        }
        return nil
    }

    /// Acknowledges received messages if that is due. Call it when `nextDelivery` has returned nil.
    @inline(__always)
    mutating func finishReceiving(on link: Link, now: Moment) {
        conversationToWake.take()?.wakeReaders()
        watchLargeChunks(now: now)
        guard link.purpose != .finished else { return }
        // If other output leaves anyway, the acknowledgement leaves with it.
        if let conversation = link.conversation,
            conversation.shouldAcknowledgeNow
                || (conversation.owesAcknowledgement && link.machine.hasOwnOutput)
        {
            acknowledge(conversation, on: link)
        }
        if link.machine.hasOwnOutput { markDirty(link) }
        watch(link)
    }

    mutating func acknowledge(_ conversation: Conversation, on link: Link) {
        link.machine.send(conversation.takeStanding())
        markDirty(link)
    }

    private mutating func handle(_ step: LinkMachine.Step, on link: Link, now: Moment) -> Delivery? {
        do throws(WireError) {
            switch step {
            case .secured: secured(link, now: now)
            case .opened: opened(link, now: now)
            case .request(let request, let isResume):
                requestReceived(request, isResume: isResume, on: link, now: now)
            case .accepted(let acceptance): requestAccepted(acceptance, on: link, now: now)
            case .refused(let refusal): requestRefused(refusal, on: link, now: now)
            case .crossed(let context): crossedContextReceived(context, on: link)
            case .introduced(let introduction): if !link.isGuest { link.introduction = introduction }
            case .acknowledged: try acknowledged(on: link, now: now)
            case .message(_, let frame), .unreliable(let frame):
                let conversation = try conversation(on: link)
                try conversation.received(frame, now: now)
                return Delivery(frame, in: conversation)
            case .kindMessage(let lane, let kind, let frame):
                let conversation = try conversation(on: link)
                try conversation.receivedMessage(on: lane, frame, now: now)
                return Delivery(frame, of: kind, on: lane, in: conversation)
            case .begin(let lane, let size, let kind):
                try conversation(on: link).receivedBeginning(on: lane, size: size, kind, now: now)
            case .piece(let lane, let frame):
                let conversation = try conversation(on: link)
                guard let (whole, kind) = try conversation.receivedPiece(on: lane, frame, now: now) else {
                    return nil
                }
                return Delivery(whole: whole, of: kind, on: lane, in: conversation)
            case .streamData(let frame):
                let conversation = try conversation(on: link)
                try conversation.receivedStreamData(frame, now: now) { link.machine.retain($0) }
                if conversation.hasReadersToWake { conversationToWake = conversation }
            case .streamControl(let frame, let wireBytes):
                let conversation = try conversation(on: link)
                let opened = try conversation.receivedStreamControl(frame, wireBytes: wireBytes, now: now)
                if let opened { report(ByteStream(opened)) }
                measureRoundTrip(for: conversation, on: link, now: now)
                if conversation.streams?.hasUnsent ?? false { markDirty(link) }
            case .datagrams(let offer): try datagramsOffered(offer, on: link)
            case .pong(let token, let roundTrip):
                if let conversation = link.conversation, conversation.link === link {
                    conversation.streams?.roundTrip = link.machine.shortestRoundTrip
                }
                if let waiting = pings.removeValue(forKey: token) {
                    output(.answerPing(waiting.token, .success(roundTrip)))
                }
            case .pairing(let message): pairingReceived(message, on: link, now: now)
            case .responsiveAgain:
                if let peer = link.peer, peer.link === link { reportResponsive(peer) }
            case .closed(let end): linkEnded(link, end, now: now)
            }
        } catch {
            violated(link, error.message, now: now)
        }
        return nil
    }

    /// Measures the round trip of the link if windows of streams are to follow it and nothing has measured it yet.
    mutating func measureRoundTrip(for conversation: Conversation, on link: Link, now: Moment) {
        guard conversation.streams?.takeRoundTripRequest() ?? false else { return }
        link.machine.sendAutomaticPing(now: now)
        markDirty(link)
    }

    /// Tells the program that the peer responds again, if it was told that the peer does not.
    mutating func reportResponsive(_ peer: PeerRecord) {
        guard let conversation = peer.conversation, conversation.isReportedUnresponsive else { return }
        conversation.isReportedUnresponsive = false
        report(.peerResponsive(snapshot(of: peer)))
    }

    /// Reports a stream that the peer has opened, to the program or to the layer for its purpose.
    private mutating func report(_ stream: ByteStream) {
        switch stream.purpose {
        case .program: report(.streamOpened(stream))
        case .files, .comparedFiles, .relay, .channel, .calls, .channelStream, .actors, .forward:
            output(.reportStream(stream))
        }
    }

    private func conversation(on link: Link) throws(WireError) -> Conversation {
        guard let conversation = link.conversation else {
            throw .malformed("a message before a conversation")
        }
        return conversation
    }

    private mutating func acknowledged(on link: Link, now: Moment) throws(WireError) {
        let conversation = try conversation(on: link)
        if try conversation.apply(link.machine.peerStanding, pool: &outbox.pool) { markDirty(link) }
        if !conversation.flushes.isEmpty { finishFlushes(of: conversation) }
        guard conversation.departure != nil, let peer = link.peer else { return }
        if conversation.isDrained {
            finishDeparture(of: peer, now: now)
        } else if conversation.hasUnacknowledged, !conversation.hasUnsent {
            requestAcknowledgement(from: peer, now: now)
        }
    }

    /// Handles a link whose other side has proven its key. A conversation that continues need not wait for the hello
    /// before its request is sent, which saves one round trip.
    private mutating func secured(_ link: Link, now: Moment) {
        guard let race = race(of: link), case .peer(let id) = race.purpose, let peer = peers[id],
            peer.attempt?.race === race, peer.conversation != nil, mayConverse(with: id)
        else { return }
        raceWon(race, by: link)
        link.assign(to: peer)
        sendRequest(on: link, to: peer, now: now)
    }

    /// Determines the purpose of the link, after the hellos are exchanged.
    private mutating func opened(_ link: Link, now: Moment) {
        guard let hello = link.machine.peerHello else { return }
        noteIncarnation(of: hello, now: now)
        noteIdentity(of: hello.peer, on: link, now: now)
        if link.purpose == .finished { return }
        guard mayKeepLink(to: hello.peer, link.machine.provenIdentity, for: race(of: link)?.purpose) else {
            return reject(link, .notPaired, now: now)
        }
        if let peer = link.peer, link.purpose == .requesting {
            peer.name = hello.name
            return
        }
        guard let dial = link.dial else { return acceptedLinkOpened(link, hello: hello, now: now) }
        guard let race = dials[dial.number] else { return close(link, .cancelled) }
        if let expected = race.purpose.peer, hello.peer != expected {
            let cause = NighError.Cause.wrongPeer(expected: expected, found: hello.peer)
            close(link, .wrongPeer, because: cause)
            return candidateFailed(dial, error: NighError(.greeting, cause), now: now)
        }
        raceWon(race, by: link)
        switch race.purpose {
        case .address(let call): addressAnswered(call, link: link, hello: hello, now: now)
        case .knownAddress(let known): knownAddressAnswered(hello, at: known, on: link, now: now)
        case .peer(let id), .pairing(let id):
            guard let peer = peers[id] else { return close(link, .cancelled) }
            link.assign(to: peer)
            peer.name = hello.name
            if case .pairing = race.purpose {
                beginPairing(with: peer, on: link, now: now)
            } else {
                sendRequest(on: link, to: peer, now: now)
            }
        }
    }

    /// Returns the race that the link belongs to; nil for an accepted link, and once the race is over.
    private func race(of link: Link) -> DialRace? { link.dial.flatMap { dials[$0.number] } }

    /// Closes a link that is of no use to this session, regardless of what it was dialled for.
    private mutating func reject(_ link: Link, _ cause: NighError.Cause, now: Moment) {
        close(link, .notPaired)
        guard let race = race(of: link) else { return }
        raceWon(race, by: link)
        let error = NighError(
            .greeting, cause, transport: transports[link.transport].scheme,
            advice: "pair the two devices first")
        continueRace(race, after: error, now: now)
    }

    private mutating func acceptedLinkOpened(_ link: Link, hello: Hello, now: Moment) {
        guard let peer = record(of: hello, on: link) else {
            return close(link, .tooManyLinks, because: .limit("known peers", limits.knownPeers))
        }
        link.assign(to: peer)
        watch(link)
    }

    /// Returns the record of the peer that has sent `hello`. Makes it if there is room for one more; returns nil
    /// otherwise.
    mutating func record(of hello: Hello, on link: Link) -> PeerRecord? {
        guard let peer = record(of: hello.peer, name: hello.name) else { return nil }
        peer.name = hello.name
        if link.isGuest { peer.isGuest = true }
        if let identity = link.machine.provenIdentity { _ = peer.identity.prove(identity) }
        return peer
    }

    /// Notes the identity that a hello has proven. If the peer was announced as a session of another identity, all
    /// calls of the program for it fail, because they are meant for somebody else.
    private mutating func noteIdentity(of id: PeerID, on link: Link, now: Moment) {
        guard let identity = link.machine.provenIdentity, let peer = peers[id] else { return }
        let before = peer.identity
        if peer.conversation != nil, let known = before.proven, known != identity {
            return violated(link, "the identity has changed during a conversation", now: now)
        }
        // The announcement may have changed since the program has invited the peer.
        if case .inviting(let invitation) = peer.phase { peer.identity.announce(invitation.identity) }
        let announced = peer.identity.current
        guard peer.identity.prove(identity) else {
            let cause = NighError.Cause.insecure(.falselyAnnounced(as: announced))
            fail(attemptOf: peer, with: cause, now: now)
            endPairing(with: peer, cause, saying: .declined)
            if peers[id] === peer { reportTrust(in: peer) }
            return
        }
        if before.current != identity, peer.state != .unavailable { reportChange(of: peer) }
    }

    /// Ends the conversation with a peer that has restarted, and therefore knows nothing of it.
    private mutating func noteIncarnation(of hello: Hello, now: Moment) {
        guard let peer = peers[hello.peer], let conversation = peer.conversation,
            conversation.incarnation != hello.incarnation
        else { return }
        endConversation(of: peer, cause: .restarted, now: now)
    }

    /// Ends a link whose other side broke the protocol. The conversation ends with it, because nothing that came can be
    /// trusted any more.
    mutating func violated(_ link: Link, _ what: String, now: Moment) {
        guard link.purpose != .finished else { return }
        end(link, .protocolViolation, what, because: .protocolViolation(what), now: now)
    }

    /// Handles the end of a link that this session has not decided itself.
    mutating func linkEnded(_ link: Link, _ end: LinkMachine.LinkEnd, now: Moment) {
        guard link.purpose != .finished else { return }
        let purpose = link.purpose
        discard(link)
        count(end: end.cause)
        switch purpose {
        case .carrying:
            pairingLinkEnded(link, end, wasCarrying: true)
            if let peer = link.peer, peer.link === link {
                carryingLinkEnded(of: peer, link, end, now: now)
            }
        case .requesting: requestLinkEnded(link, end, now: now)
        case .pairing: pairingLinkEnded(link, end, wasCarrying: false)
        case .invited:
            if let peer = link.peer, peer.invitation?.link === link {
                endInvitation(of: peer, cause: end.cause, code: .cancelled)
            }
        case .unsettled:
            if let dial = link.dial {
                let error = NighError(.greeting, end.cause, transport: transports[link.transport].scheme)
                candidateFailed(dial, error: error, now: now)
            }
        case .finished: break
        }
    }

    private mutating func requestLinkEnded(_ link: Link, _ end: LinkMachine.LinkEnd, now: Moment) {
        guard let peer = link.peer, let attempt = peer.attempt, attempt.link === link else { return }
        if end.isByPeer, end.code == .superseded {
            // A peer that moves the conversation does so by itself.
            if peer.state == .connected { return fail(attemptOf: peer, with: .superseded, now: now) }
            attempt.forgetLink()
            attempt.waitsForPeerUntil =
                now + Moment.Span(timings.firstRetry) + Moment.Span(timings.firstRetry)
            return watch(peer)
        }
        // For example a pairing that the peer removed while there was no link to say so.
        if peer.conversation != nil, end.scope == .conversation {
            return endConversation(of: peer, cause: end.cause, now: now)
        }
        if end.code == nil, case .inviting(let invitation) = peer.phase, !invitation.isRepeated {
            // The answer may be lost with the link, or the peer has given its own request up for this one. So the
            // request is worth repeating on all routes.
            invitation.isRepeated = true
            attempt.race.routes = preferredRoutes(of: peer)
        }
        let error = NighError(.inviting, end.cause, transport: transports[link.transport].scheme)
        requestFailed(peer, with: error, now: now)
    }
}
