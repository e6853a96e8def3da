/// Everything that two sessions send each other, over any number of links: two ordered lanes of messages in each
/// direction and one for the frames of streams, which are counted, kept until acknowledged, and sent again on the next
/// link.
///
/// It does no I/O, like the machines around it. The session machine owns it from the first request to the end. Loop
/// only. This file is long because the state of a conversation is private to it.
package final class Conversation: FrameSource {
    var id: UInt64
    /// The ID of this side's own invitation, if its answer was lost before this side accepted the peer's. The peer may
    /// have accepted it by then. If so, it knows the conversation by this ID only.
    var ownInvitation: UInt64?
    let peer: PeerID
    /// The incarnation of the peer in this conversation. A peer that was started again knows nothing of the
    /// conversation.
    let incarnation: UInt64
    /// The part of the conversation that other threads may touch.
    let port: PeerPort
    /// `port`, for access that retains nothing.
    let unretainedPort: Unmanaged<PeerPort>

    // These are touched for each message. A run-time check for overlapping access would cost as much as the message,
    // and is not needed: everything here is confined to the loop, and nothing is called back while it is being changed.
    @exclusivity(unchecked) var statistics = ConversationCounts()
    @exclusivity(unchecked) private var sending: InlineArray<2, SendLane>
    @exclusivity(unchecked) private var receiving: InlineArray<2, ReceiveLane>
    @exclusivity(unchecked) private var granted: InlineArray<2, UInt64> = [0, 0]
    private let receiveWindow: Int
    private let messageLimit: Int
    private let frameLimit: Int
    private let acknowledgeWithin: Moment.Span

    /// The longest payload that both sides accept in one frame.
    private let pieceLimit: Int

    /// The streams, once there was one.
    @exclusivity(unchecked) var streams: StreamTable?
    /// The terms of both sides for streams; nil if one of them has none.
    let streamAgreement: StreamTable.Agreement?

    /// Received bytes that the program has not read.
    private(set) var unread: Int
    private var unacknowledgedBytes = 0
    /// When an acknowledgement has to leave at the latest.
    private(set) var acknowledgeBy = Moment.never

    /// How many bytes of each lane are written before it is the other's turn. So a bulk transfer delays the main lane
    /// only a little.
    private static let mainShare = 64 << 10
    private static let bulkShare = 16 << 10
    private static let streamShare = 16 << 10

    /// - Parameters:
    ///   - hello: this side's own hello.
    ///   - identity: the identity that the peer acts for.
    ///   - unread: bytes of earlier conversations that the program has not read.
    init(
        id: UInt64, hello: Hello, peer: Hello, identity: PeerID, port: PeerPort, unread: Int,
        limits: SessionLimits, timings: SessionTimings
    ) {
        self.unread = unread
        self.id = id
        self.peer = peer.peer
        incarnation = peer.incarnation
        self.port = port
        unretainedPort = .passUnretained(port)
        let chunks = port.largeChunks
        sending = [SendLane(lane: .main, chunks: chunks), SendLane(lane: .bulk, chunks: chunks)]
        receiving = [ReceiveLane(chunks: chunks), ReceiveLane(chunks: chunks)]
        receiveWindow = limits.receiveWindow
        messageLimit = limits.message
        frameLimit = limits.frame
        acknowledgeWithin = Moment.Span(timings.acknowledge)
        pieceLimit = min(limits.frame, peer.maximumFrame)
        streamAgreement = hello.streams.flatMap { [pieceLimit] ours in
            peer.streams.map { theirs in
                StreamTable.Agreement(
                    peer: peer.peer, identity: identity, peerName: peer.name,
                    isOdd: hello.peer > peer.peer, ours: ours, theirs: theirs, pieceLimit: pieceLimit)
            }
        }
    }

    /// False once the conversation has ended.
    private(set) var isActive = true

    /// False once this side is leaving or the conversation has ended.
    private(set) var acceptsMessages = true

    /// Whether the link knows that there is something to write. Set with the first message after a `gather`.
    var isAnnounced = false

    /// The link that carries the conversation now. With it, a sender need not look the link up in the peer's record. (A
    /// link knows its conversation for the same reason, for received messages.)
    @exclusivity(unchecked) var link: Link? { didSet { streams?.isReconnecting = link == nil } }

    /// The context of this side's own invitation, which it withdrew to accept the peer's.
    var crossedContext: [UInt8]?
    /// Where the messages of this conversation are kept, if they have a sequence of their own.
    @exclusivity(unchecked) var inbox: MessageInbox?

    /// Whether the program was last told that the peer does not respond.
    var isReportedUnresponsive = false
    /// How many links in a row have broken shortly after they began to carry the conversation.
    var briefLinks = 0
    /// Set when this side is leaving, which it does once everything that it sent is acknowledged.
    var departure: Departure?
    /// The calls that wait until the peer has acknowledged all messages before them.
    private(set) var flushes: [Flush] = []

    /// Stops accepting messages, and reports `error` to all that wait for room. Staged messages can still be taken.
    /// With `keepsRelays`, streams for relays go on, and the conversation is not drained before this side has ended its
    /// writing to them.
    func stopAccepting(_ error: NighError, keepsRelays: Bool = false) {
        acceptsMessages = false
        port.stop(error)
        streams?.stopWriting(error, keepsRelays: keepsRelays)
    }

    /// Stops delivering and sending, and reports `error` to all that wait for room.
    func end(_ error: NighError) {
        isActive = false
        acceptsMessages = false
        streams?.end(error)
        link = nil
        port.close(error)
        inbox?.finish()
        countRead(port.takeRead())
    }

    // MARK: Sending

    /// Whether everything that was accepted has been acknowledged.
    var isDrained: Bool { sending[0].isEmpty && sending[1].isEmpty && (streams?.isDrained ?? true) }

    /// Begins to wait until the peer has acknowledged all messages that were accepted. Returns false if it has.
    func beginFlush(_ token: CallToken) -> Bool {
        if sending[0].isEmpty, sending[1].isEmpty { return false }
        flushes.append(Flush(token: token, counts: [sending[0].accepted, sending[1].accepted]))
        return true
    }

    /// Removes and returns the calls whose messages the peer has acknowledged.
    func takeFinishedFlushes() -> [CallToken] {
        let finished = flushes.prefix { flush in
            (0..<2).allSatisfy { flush.counts[$0] <= sending[$0].acknowledged }
        }
        flushes.removeFirst(finished.count)
        return finished.map(\.token)
    }

    /// The bytes that were accepted, or written to streams, and are not acknowledged.
    var undeliveredByteCount: Int { port.outstanding &+ (streams?.undeliveredByteCount ?? 0) }

    /// Whether the peer has not acknowledged something that was written.
    var hasUnacknowledged: Bool {
        !sending[0].isEmpty || !sending[1].isEmpty || (streams?.unacknowledged ?? 0) > 0
    }

    /// Whether something was not written to the present link yet, whether the peer has granted it or not.
    var hasUnsent: Bool {
        sending[0].hasUnsent || sending[1].hasUnsent || (streams?.hasUnsent ?? false)
    }

    /// Appends a message that the port has admitted. A small one is copied. A large one is kept by reference if it lies
    /// in a chunk of the session's; otherwise it is copied, too.
    @inline(__always)
    func append(_ bytes: UnsafeRawBufferPointer, on lane: Lane, pool: inout LaneChunks) {
        statistics.messagesSent &+= 1
        statistics.bytesSent &+= bytes.count
        if bytes.count <= pieceLimit {
            sending[Int(lane.rawValue)].append(bytes, pool: &pool)
        } else {
            sending[Int(lane.rawValue)].append(large: port.largeChunks.slice(of: bytes), isCopy: true)
        }
    }

    /// Appends a message of a kind that the port has admitted, like a message of the program.
    private func append(
        _ bytes: UnsafeRawBufferPointer, of kind: MessageKind, on lane: Lane, pool: inout LaneChunks
    ) {
        let count = bytes.count &+ MessageKind.byteCount
        statistics.messagesSent &+= 1
        statistics.bytesSent &+= count
        if count <= pieceLimit {
            sending[Int(lane.rawValue)].append(bytes, of: kind, pool: &pool)
        } else {
            let copy = port.largeChunks.slice(of: bytes)
            sending[Int(lane.rawValue)].append(large: copy, of: kind, isCopy: true)
        }
    }

    /// Appends a message, by reference if that is worth it, otherwise by copy.
    func append(
        _ payload: ByteSlice, of kind: MessageKind? = nil, isCopy: Bool = false, on lane: Lane,
        pool: inout LaneChunks
    ) {
        guard SendLane.refersTo(payload, pieceLimit: pieceLimit) else {
            return payload.withUnsafeBytes { bytes in
                guard let kind else { return append(bytes, on: lane, pool: &pool) }
                append(bytes, of: kind, on: lane, pool: &pool)
            }
        }
        statistics.messagesSent &+= 1
        statistics.bytesSent &+= payload.count &+ kind.byteCount
        sending[Int(lane.rawValue)].append(large: payload, of: kind, isCopy: isCopy)
    }

    /// Appends a small message that is already encoded, for several peers. Returns false if it cannot be appended at
    /// once and as it is.
    @inline(__always)
    func append(_ encoded: ByteSlice, size: Int, on lane: Lane) -> Bool {
        guard size <= pieceLimit,
            unretainedPort._withUnsafeGuaranteedRef({
                !$0.hasStaged && $0.admitsAtOnce(size, on: lane, isNext: false)
            })
        else { return false }
        statistics.messagesSent &+= 1
        statistics.bytesSent &+= size
        sending[Int(lane.rawValue)].append(encoded: encoded, messages: 1)
        return true
    }

    /// Appends messages that another thread has staged and the port has admitted.
    func append(_ staged: StagedRun, pool: inout LaneChunks) {
        guard !staged.isLarge else {
            return append(
                staged.bytes, of: staged.kind, isCopy: staged.isCopy, on: staged.lane, pool: &pool)
        }
        statistics.messagesSent &+= staged.messageCount
        statistics.bytesSent &+= staged.bytes.count &- staged.messageCount &* FrameHeader.byteCount
        sending[Int(staged.lane.rawValue)].append(encoded: staged.bytes, messages: staged.messageCount)
    }

    /// The length up to which messages travel whole. Longer ones are kept by reference and travel in pieces.
    var largestWholeMessage: Int { pieceLimit }

    package func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter) {
        isAnnounced = false
        var left = budget
        while left > 0, hasUnsent {
            let main = sending[0].gather(
                into: &queue, budget: min(left, Self.mainShare), granted: granted[0], pieceLimit: pieceLimit,
                header: &header)
            left &-= main
            var given = main
            if left > 0, sending[1].hasUnsent {
                let bulk = sending[1].gather(
                    into: &queue, budget: min(left, Self.bulkShare), granted: granted[1],
                    pieceLimit: pieceLimit, header: &header)
                left &-= bulk
                given &+= bulk
            }
            if left > 0, let streams {
                let ofStreams = streams.gather(
                    into: &queue, budget: min(left, Self.streamShare), header: &header)
                left &-= ofStreams
                given &+= ofStreams
            }
            if given == 0 { return }
        }
    }

    /// Whether the state is consistent: each lane is, an owed acknowledgement has a time at which it must leave, and
    /// the kept bytes are those that were admitted and are not acknowledged. Nothing may be staged meanwhile.
    var isConsistent: Bool {
        sending[0].isConsistent && sending[1].isConsistent && unread >= 0
            && receiving[0].isConsistent && receiving[1].isConsistent
            && owesAcknowledgement == (unacknowledgedBytes > 0)
            && (streams?.isConsistent ?? true)
            && sending[0].heldCost &+ sending[1].heldCost == port.outstanding
    }

    /// Returns how far the messages of a lane have come, for checks that look at both ends.
    func progress(on lane: Lane) -> LaneProgress {
        let index = Int(lane.rawValue)
        return LaneProgress(
            acknowledged: sending[index].acknowledged, everSent: sending[index].everSent,
            received: receiving[index].received)
    }

    /// Applies the counts and grants that the peer reports. Fails if the peer claims messages that were never sent, or
    /// shrinks a grant. Returns whether something is left to write.
    func apply(_ standing: Standing, pool: inout LaneChunks) throws(WireError) -> Bool {
        for lane in 0..<2 where standing.received[lane] > sending[lane].sent {
            throw .malformed("the acknowledgement of a message that was not sent")
        }
        for lane in 0..<2 where standing.granted[lane] < granted[lane] {
            throw .malformed("a grant that shrinks")
        }
        if let streams {
            try streams.acknowledge(upTo: standing.streamFrames)
        } else if standing.streamFrames > 0 {
            throw .malformed("the acknowledgement of a stream's frame that was not sent")
        }
        for lane in 0..<2 {
            let freed = sending[lane].acknowledge(upTo: standing.received[lane], pool: &pool)
            granted[lane] = standing.granted[lane]
            if freed > 0 { port.release(freed, on: sending[lane].lane) }
        }
        return hasUnsent
    }

    /// Whether the peer has acknowledged more than `standing` says. A request with it is out of date: it was held up on
    /// its way, and the peer gave it up and went on reading another link.
    func hasOvertaken(_ standing: Standing) -> Bool {
        (0..<2).contains { standing.received[$0] < sending[$0].acknowledged }
            || standing.streamFrames < streams?.acknowledged ?? 0
    }

    /// Begins to use a link on which the peer has stated its `standing`. Fails if the peer claims messages that were
    /// never sent, or has lost some that it acknowledged.
    func startLink(peerStanding standing: Standing, pool: inout LaneChunks) throws(WireError) {
        for lane in 0..<2 {
            guard standing.received[lane] <= sending[lane].everSent,
                standing.received[lane] >= sending[lane].acknowledged
            else { throw .malformed("an impossible count of messages") }
        }
        if let streams {
            try streams.startLink(count: standing.streamFrames)
        } else if standing.streamFrames > 0 {
            throw .malformed("an impossible count of stream frames")
        }
        for lane in 0..<2 {
            let freed = sending[lane].acknowledge(upTo: standing.received[lane], pool: &pool)
            statistics.messagesResent &+= Int(clamping: sending[lane].startLink())
            granted[lane] = standing.granted[lane]
            if freed > 0 { port.release(freed, on: sending[lane].lane) }
        }
    }

    // MARK: Receiving

    /// Returns the standing to send at the start of a link. Forgets partial messages, and starts flow control again.
    func standingForNewLink() -> Standing {
        for lane in 0..<2 { receiving[lane].startLink() }
        return takeStanding()
    }

    /// Returns the standing to send on a link that is to replace this one. Nothing changes until the peer agrees, which
    /// has to be reported with `noteGrant`.
    func standingForReplacementLink() -> Standing {
        var standing = Standing()
        for lane in 0..<2 {
            standing.received[lane] = receiving[lane].received
            standing.granted[lane] = UInt64(max(0, receiveWindow - unread))
        }
        standing.streamFrames = streams?.received ?? 0
        return standing
    }

    /// Notes that a request has granted `bytes` of each lane, on a link that only now carries the conversation.
    func noteGrant(_ bytes: UInt64) {
        for lane in 0..<2 { receiving[lane].startLink(granted: bytes) }
    }

    /// Returns the standing to send to the peer now, and counts it as sent.
    func takeStanding() -> Standing {
        unacknowledgedBytes = 0
        acknowledgeBy = .never
        var standing = Standing()
        for lane in 0..<2 {
            standing.received[lane] = receiving[lane].received
            standing.granted[lane] = receiving[lane].grant(window: receiveWindow, unread: unread)
        }
        standing.streamFrames = streams?.received ?? 0
        return standing
    }

    /// When an acknowledgement leaves if nothing has carried it earlier: some time before it must, because timers fire
    /// late.
    var acknowledgesAt: Moment {
        guard owesAcknowledgement else { return .never }
        return acknowledgeBy + Moment.Span(nanoseconds: -acknowledgeWithin.nanoseconds / 10)
    }

    /// Whether something was received that is not acknowledged yet.
    var owesAcknowledgement: Bool { acknowledgeBy != .never }

    /// Whether so much was received that it should be acknowledged before the time is up.
    var shouldAcknowledgeNow: Bool { unacknowledgedBytes &* 4 >= receiveWindow }

    /// Counts a received message that came whole in a frame.
    @inline(__always)
    func received(_ frame: FrameDecoder.Frame, now: Moment) throws(WireError) {
        if frame.type == FrameType.message.rawValue {
            try receivedMessage(on: .main, frame, now: now)
        } else if frame.type == FrameType.bulkMessage.rawValue {
            try receivedMessage(on: .bulk, frame, now: now)
        } else {
            statistics.unreliableReceived &+= 1
        }
    }

    /// Counts a received reliable message that came whole.
    @inline(__always)
    func receivedMessage(on lane: Lane, _ frame: FrameDecoder.Frame, now: Moment) throws(WireError) {
        let index = Int(lane.rawValue)
        guard receiving[index].count(frame.wireBytes, frameLimit: frameLimit) else { throw Self.overrun }
        try receiving[index].countMessage()
        statistics.messagesReceived &+= 1
        statistics.bytesReceived &+= frame.bytes.count
        noteReceived(frame.wireBytes, now: now)
    }

    func receivedBeginning(
        on lane: Lane, size: Int, _ kind: MessageKind?, now: Moment
    ) throws(WireError) {
        let bytes = FrameHeader.byteCount &+ EncodedMessage.beginningLength(kind)
        guard receiving[Int(lane.rawValue)].count(bytes, frameLimit: frameLimit) else { throw Self.overrun }
        try receiving[Int(lane.rawValue)].begin(size: size, kind, limit: messageLimit)
        noteReceived(bytes, now: now)
    }

    /// Adds a piece of a message. Returns the message once it is whole, and its kind if it has one.
    func receivedPiece(
        on lane: Lane, _ frame: FrameDecoder.Frame, now: Moment
    ) throws(WireError) -> (message: ByteSlice, kind: MessageKind?)? {
        let index = Int(lane.rawValue)
        guard receiving[index].count(frame.wireBytes, frameLimit: frameLimit) else { throw Self.overrun }
        let whole = try receiving[index].append(frame.bytes)
        noteReceived(frame.wireBytes, now: now)
        guard let whole else { return nil }
        // The message may be all that the sender has room for, so its acknowledgement must not wait for more messages.
        if whole.count &* 4 >= receiveWindow { unacknowledgedBytes = receiveWindow }
        let kind = receiving[index].kind
        statistics.messagesReceived &+= 1
        statistics.bytesReceived &+= whole.count &+ kind.byteCount
        return (whole, kind)
    }

    private static let overrun = WireError.malformed("more bytes than were allowed")

    @inline(__always)
    func noteReceived(_ bytes: Int, now: Moment) {
        unacknowledgedBytes &+= bytes
        if acknowledgeBy == .never { acknowledgeBy = now + acknowledgeWithin }
    }

    /// Counts bytes of a message that is kept for the program to read later.
    func countUnread(_ bytes: Int) { unread &+= bytes }

    /// Counts bytes that the program has read.
    func countRead(_ bytes: Int) { unread &-= bytes }

    /// Whether so much room was made since the peer last got a grant that it should get a new one at once.
    var shouldGrantNow: Bool {
        for lane in 0..<2 {
            let gain = receiving[lane].grantGain(window: receiveWindow, unread: unread)
            if gain &* 4 >= receiveWindow { return true }
        }
        return false
    }

    /// All counts, those of streams among them.
    var counts: ConversationCounts {
        var result = statistics
        if let streams {
            result.streamsOpened = streams.opened
            result.streamBytesSent = streams.bytesSent
            result.streamBytesReceived = streams.bytesReceived
        }
        return result
    }

    /// Adds the counts of a link that carries the conversation no longer. Messages that wait on it, or on its path for
    /// datagrams, count as dropped.
    func keepCounts(of link: Link) {
        statistics.unreliableSent &+= link.machine.statistics.unreliableSent
        statistics.unreliableDropped &+= link.machine.statistics.unreliableDropped
        statistics.unreliableDropped &+= link.newest.count &+ (link.datagrams?.waitingCount ?? 0)
    }

    /// The counts for the program, completed with those that only the conversation knows.
    var snapshot: PeerStatistics {
        var result = PeerStatistics(counts)
        result.bytesWaiting = port.outstanding
        result.bytesUnread = unread
        return result
    }
}
