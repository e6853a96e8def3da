/// The streams of one conversation: their number, their turns to send, how much each may send, and the limits for the
/// other side.
///
/// The frames of all streams go through one lane of their own, which counts them, keeps them until they are
/// acknowledged, and sends them again on the next link. The lane has no grants, because each stream has a credit: so
/// nothing in the lane ever waits for a reader. A machine without I/O; the conversation owns it. Loop only.
/// This file is long because the state of all streams is private to it.
final class StreamTable {
    /// The terms that the two sides have agreed on.
    struct Agreement {
        var peer: PeerID
        /// The identity that the peer acts for.
        var identity: PeerID
        var peerName: DisplayName
        /// Whether this side numbers its streams 1, 3, 5 …; the other side then has 2, 4, 6 …
        var isOdd: Bool
        /// The terms of this side, and those of the other.
        var ours: StreamTerms
        var theirs: StreamTerms
        /// The longest payload of a frame that both sides accept.
        var pieceLimit: Int
    }

    /// The loop's part of one stream.
    private final class Stream {
        let port: StreamPort
        /// The bytes that were sent, and that may be sent.
        var sent: UInt64 = 0
        var credit: UInt64
        /// The bytes that have come, and that the other side was told it may send.
        var received: UInt64 = 0
        var granted: UInt64
        /// By how many bytes `granted` exceeds the bytes that the program has read.
        var window: StreamWindow
        /// Whether the other side was told that the stream is open.
        var isAnnounced: Bool
        var hasSendingEnded = false
        var hasReceivingEnded = false
        /// The reason why the other side has stopped reading. Nil again once it was told that nothing more comes.
        var stopped: String?
        /// Whether the stream waits for its turn.
        var waitsForTurn = false

        init(_ port: StreamPort, credit: Int, window: Int) {
            self.port = port
            self.credit = UInt64(credit)
            granted = UInt64(window)
            self.window = StreamWindow(window, for: port.purpose)
            isAnnounced = !port.isOwn
        }

        var mayBeSentMore: Bool { sent < credit }

        /// Whether nothing more passes in either direction, and the program has read everything.
        var isOver: Bool { hasSendingEnded && hasReceivingEnded && port.isAllRead }
    }

    private let agreement: Agreement
    private let chunks: Guarded<ChunkPool>
    private let attention: any StreamAttention

    private var lane: SendLane
    /// The chunks of control frames.
    private var pool = LaneChunks(smallSize: 256, largeSize: 1 << 10, keepAtMost: 16)
    /// Writes the payloads of control frames. It keeps its memory, so that they allocate none.
    private var writer = FieldWriter()
    /// The bytes of frames that are not acknowledged.
    private(set) var unacknowledged = 0
    /// The frames that have come since the conversation began.
    private(set) var received: UInt64 = 0

    private var streams: [UInt32: Stream] = [:]
    /// The streams that may have something to send, in the order of their turns.
    private var turns = Ring<Stream>()
    private var nextNumber: UInt32
    /// The highest number that the other side has used.
    private var lastTheirs: UInt32 = 0
    /// The streams with bytes for which tasks wait.
    private var streamsToWake: [StreamPort] = []
    private var openedByUs = 0
    private var openedByThem = 0
    /// Whether no link carries the conversation now.
    var isReconnecting = false {
        didSet {
            guard isReconnecting != oldValue else { return }
            for stream in orderedStreams { stream.port.setReconnecting(isReconnecting) }
        }
    }
    /// The shortest round trip that was measured on the present link, which windows follow; nil before that.
    var roundTrip: Moment.Span?
    /// Whether a measurement was asked for on the present link.
    private var isMeasured = false
    /// The streams whose windows follow the link, and by how many bytes these are larger than at first.
    private var followers = 0
    private(set) var windowGrowth: UInt64 = 0
    /// The most bytes by which all windows that follow the link may together have grown.
    static let growthLimit: UInt64 = 16 << 20
    /// Whether this side leaves only after it has ended its writing to all streams for relays.
    private var waitsForRelays = false

    /// The streams that either side has opened since the conversation began.
    private(set) var opened = 0
    /// The bytes of all streams that were added to the lane, and that have come.
    private(set) var bytesSent = 0
    private(set) var bytesReceived = 0

    /// - Parameters:
    ///   - chunks: the memory for the frames of streams.
    ///   - attention: gets the ports of streams whose programs have done something.
    init(
        _ agreement: Agreement, largeChunks: LargeChunks, chunks: Guarded<ChunkPool>,
        attention: any StreamAttention
    ) {
        self.agreement = agreement
        self.chunks = chunks
        self.attention = attention
        // All frames come encoded, so the lane's own frame types do not matter.
        lane = SendLane(lane: .bulk, chunks: largeChunks)
        nextNumber = agreement.isOdd ? 1 : 2
    }

    /// The number of streams that are not forgotten.
    var count: Int { streams.count }

    // MARK: Opening

    /// Opens a stream, whose bytes may follow at once.
    func open(named name: String, for purpose: StreamPurpose = .program) throws(NighError) -> StreamPort {
        guard agreement.theirs.accept(purpose) else {
            throw Self.unsupported(purpose, by: label)
        }
        guard StreamControl.isName(name) else {
            throw NighError(
                .sending, .invalid("name of a stream"), peer: label,
                advice: "use at most 255 bytes and no control characters")
        }
        guard openedByUs < agreement.theirs.streams, nextNumber <= UInt32.max - 2 else {
            throw NighError(
                .sending, .limit("streams", agreement.theirs.streams), peer: label,
                advice: "finish streams before you open more, or raise `limits.streams` at the peer")
        }
        openedByUs += 1
        let stream = add(nextNumber, name, purpose, isOwn: true)
        nextNumber += 2
        giveTurn(to: stream)
        return stream.port
    }

    private var label: String { agreement.peerName.label(of: agreement.identity) }

    private func add(_ number: UInt32, _ name: String, _ purpose: StreamPurpose, isOwn: Bool) -> Stream {
        let window = agreement.ours.window
        let port = StreamPort(
            number: number, name: name, purpose: purpose, peer: agreement.peer,
            identity: agreement.identity, peerName: agreement.peerName, isOwn: isOwn, window: window,
            frameRoom: min(agreement.pieceLimit, Self.frameLimit) - StreamData.numberLength, chunks: chunks,
            attention: attention)
        if isReconnecting { port.setReconnecting(true) }
        let stream = Stream(port, credit: agreement.theirs.window, window: window)
        streams[number] = stream
        if stream.window.followsLink { followers += 1 }
        opened += 1
        return stream
    }

    /// The longest payload of a frame: with its header it fills the chunk that streams share.
    private static let frameLimit = (16 << 10) - FrameHeader.byteCount

    private func isOurs(_ number: UInt32) -> Bool { (number & 1 == 1) == agreement.isOdd }

    // MARK: Sending

    /// Looks at a stream whose program has done something.
    func attend(to port: StreamPort) {
        port.markUnlisted()
        if let stream = streams[port.number], stream.port === port { giveTurn(to: stream) }
    }

    private func giveTurn(to stream: Stream) {
        guard !stream.waitsForTurn else { return }
        stream.waitsForTurn = true
        turns.append(stream)
    }

    /// The bytes that may be unacknowledged before new frames wait. So a peer that acknowledges nothing cannot fill
    /// this side's memory with answers to itself.
    private static let laneLimit = 4 << 20

    /// Whether something can be written to the present link.
    var hasUnsent: Bool { lane.hasUnsent || (!turns.isEmpty && unacknowledged < Self.laneLimit) }

    /// The frames that the other side has acknowledged.
    var acknowledged: UInt64 { lane.acknowledged }

    /// Whether everything that was written is acknowledged, and nothing more will be written that this side waits for.
    var isDrained: Bool {
        lane.isEmpty
            && !streams.values.contains { stream in
                !stream.isAnnounced || stream.port.hasOutput(credit: true)
                    || waitsForRelays && stream.port.purpose == .relay && !stream.hasSendingEnded
            }
    }

    /// The bytes that programs have written and the other side has not acknowledged, with their frames' headers.
    var undeliveredByteCount: Int {
        streams.values.reduce(unacknowledged) { $0 &+ $1.port.unsentByteCount }
    }

    /// Gives the link up to about `budget` bytes. Returns how many it gave.
    func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter) -> Int {
        var given = 0
        while given < budget {
            if !lane.hasUnsent { takeTurn() }
            let count = lane.gather(
                into: &queue, budget: budget &- given, granted: .max, pieceLimit: agreement.pieceLimit,
                header: &header)
            given &+= count
            if count == 0, turns.isEmpty || unacknowledged >= Self.laneLimit { break }
        }
        return given
    }

    /// Lets the next stream add its frames to the lane: its control frames, and one frame of bytes. Nothing else adds
    /// frames.
    private func takeTurn() {
        guard unacknowledged < Self.laneLimit, let stream = turns.popFirst() else { return }
        stream.waitsForTurn = false
        let number = stream.port.number
        guard streams[number] === stream else { return }
        if !stream.isAnnounced {
            stream.isAnnounced = true
            append(.open(name: stream.port.name, for: stream.port.purpose), number)
        }
        if let reason = stream.port.takeStop() { append(.stop(reason: reason), number) }
        grantMore(stream)
        if let reason = stream.stopped.take() { endSending(stream, because: reason) }
        switch stream.port.takeOutput(credit: stream.mayBeSentMore) {
        case .frame(let frame, let count):
            lane.append(encoded: frame, messages: 1)
            unacknowledged &+= frame.count
            stream.sent &+= UInt64(count)
            bytesSent &+= count
            if stream.port.hasOutput(credit: stream.mayBeSentMore) { giveTurn(to: stream) }
        case .finish:
            stream.hasSendingEnded = true
            append(.finish, number)
        case .cancel(let reason): endSending(stream, because: reason)
        case nil: break
        }
        releaseIfOver(stream)
    }

    /// Tells the other side how much more it may send, once that is worth a frame.
    private func grantMore(_ stream: Stream) {
        guard !stream.hasReceivingEnded, let read = stream.port.takeRead() else { return }
        stream.window.note(unread: stream.received &- read)
        stream.granted = read &+ stream.window.size
        append(.credit(stream.granted), stream.port.number)
    }

    private func endSending(_ stream: Stream, because reason: String) {
        stream.hasSendingEnded = true
        append(.cancel(reason: reason), stream.port.number)
    }

    private func append(_ control: StreamControl, _ number: UInt32) {
        writer.removeAll()
        control.write(for: number, to: &writer)
        let payload = writer.bytes
        lane.appendFrame(.streamControl, payloadLength: payload.count, pool: &pool)
            .copyMemory(from: payload, byteCount: payload.count)
        unacknowledged &+= FrameHeader.byteCount &+ payload.count
    }

    /// Forgets a stream of the other side that is over, and tells it so. A stream of this side is forgotten when the
    /// other side says so.
    private func releaseIfOver(_ stream: Stream) {
        guard !stream.port.isOwn, stream.isOver else { return }
        append(.release, stream.port.number)
        forget(stream)
        openedByThem -= 1
    }

    private func forget(_ stream: Stream) {
        streams[stream.port.number] = nil
        guard stream.window.followsLink else { return }
        followers -= 1
        windowGrowth &-= stream.window.growth
    }

    // MARK: Links

    /// Applies the count of frames that the other side has received. Fails if it claims more than was sent.
    func acknowledge(upTo count: UInt64) throws(WireError) {
        guard count <= lane.sent else {
            throw .malformed("the acknowledgement of a stream's frame that was not sent")
        }
        unacknowledged &-= lane.acknowledge(upTo: count, pool: &pool)
    }

    /// Begins a link on which the other side has stated its count. Fails if the count is impossible.
    func startLink(count: UInt64) throws(WireError) {
        guard count <= lane.everSent, count >= lane.acknowledged else {
            throw .malformed("an impossible count of stream frames")
        }
        unacknowledged &-= lane.acknowledge(upTo: count, pool: &pool)
        _ = lane.startLink()
    }

    /// Notes that another link carries the streams, and its round trip, if that was measured.
    func linkChanged(roundTrip: Moment.Span?) {
        self.roundTrip = roundTrip
        isMeasured = roundTrip != nil
        guard followers > 0 else { return }
        for stream in streams.values { stream.window.noteLink() }
    }

    /// Whether the round trip must be measured, because windows follow the link. True once for each link.
    func takeRoundTripRequest() -> Bool {
        guard followers > 0, !isMeasured else { return false }
        isMeasured = true
        return true
    }

    /// Whether the counts agree with each other.
    var isConsistent: Bool {
        lane.isConsistent && lane.heldCost == unacknowledged
            && openedByUs == streams.values.count { $0.port.isOwn }
            && openedByThem == streams.values.count { !$0.port.isOwn }
            && followers == streams.values.count { $0.window.followsLink }
            && windowGrowth
                == streams.values.reduce(0) { $0 + ($1.window.followsLink ? $1.window.growth : 0) }
            && streams.values.allSatisfy { $0.received <= $0.granted &+ UInt64(agreement.pieceLimit) }
    }

    /// The streams in the order of their numbers, so that a simulated run with several streams repeats exactly.
    private var orderedStreams: [Stream] { streams.sorted { $0.key < $1.key }.map(\.value) }

    /// Accepts no more bytes from the program, for this reason. Bytes written before are still sent. With
    /// `keepsRelays`, streams for relays go on, and nothing is drained before this side has ended its writing to them.
    func stopWriting(_ reason: NighError, keepsRelays: Bool) {
        waitsForRelays = keepsRelays
        for stream in orderedStreams where !(keepsRelays && stream.port.purpose == .relay) {
            stream.port.stopWriting(reason)
        }
    }

    /// Ends all streams with this error, because the conversation has ended: no stream is opened or counted any more.
    func end(_ error: NighError) {
        for stream in orderedStreams { stream.port.end(error) }
        streams.removeAll()
        (followers, windowGrowth) = (0, 0)
        turns.removeAll()
    }

    // MARK: Receiving

    /// Takes the next bytes of a stream. `retain` returns a slice of the bytes that it is given.
    func receivedData(
        _ payload: UnsafeRawBufferPointer, now: Moment, retain: (UnsafeRawBufferPointer) -> ByteSlice
    ) throws(WireError) {
        let number = try StreamData.number(of: payload)
        guard let stream = streams[number], !stream.hasReceivingEnded else {
            throw .malformed("bytes of a stream that is not open")
        }
        guard stream.received < stream.granted else {
            throw .malformed("more bytes of a stream than were allowed")
        }
        received &+= 1
        let bytes = UnsafeRawBufferPointer(rebasing: payload[StreamData.numberLength...])
        stream.received &+= UInt64(bytes.count)
        bytesReceived &+= bytes.count
        if stream.window.followsLink, let roundTrip {
            windowGrowth &+= stream.window.note(
                received: bytes.count, at: now, roundTrip: roundTrip,
                room: Self.growthLimit &- windowGrowth)
        }
        if stream.port.deliver(bytes, retained: { retain(bytes) }), streamsToWake.last !== stream.port {
            streamsToWake.append(stream.port)
        }
    }

    /// Whether tasks wait for bytes that have come.
    var hasReadersToWake: Bool { !streamsToWake.isEmpty }

    /// Resumes the tasks that wait for bytes that have come: once for all that was received together, since waking a
    /// task costs about as much as decrypting a frame.
    func wakeReaders() {
        for port in streamsToWake { port.wakeReaders() }
        streamsToWake.removeAll(keepingCapacity: true)
    }

    /// Handles a control frame of the other side. Returns the stream if the frame has opened one.
    func receivedControl(_ frame: StreamControlFrame) throws(WireError) -> StreamPort? {
        received &+= 1
        if case .open(let name, let purpose) = frame.control {
            return try opened(frame.number, name, purpose).port
        }
        guard let stream = streams[frame.number] else {
            // This side may have forgotten a stream of the other side that still reads earlier bytes.
            if !isOurs(frame.number), frame.number <= lastTheirs {
                switch frame.control {
                case .credit, .stop: return nil
                case .open, .finish, .cancel, .release: break
                }
            }
            throw .malformed("a control frame for a stream that is not open")
        }
        switch frame.control {
        case .open: break
        case .credit(let bytes):
            guard bytes >= stream.credit else { throw .malformed("a stream's credit that shrinks") }
            stream.credit = bytes
        case .finish:
            try endReceiving(stream)
            stream.port.receivedFinish()
        case .cancel(let reason):
            try endReceiving(stream)
            stream.port.receivedCancel(reason)
        case .stop(let reason):
            if stream.port.stopped(because: reason) { stream.stopped = reason }
        case .release:
            guard stream.port.isOwn, stream.hasSendingEnded, stream.hasReceivingEnded else {
                throw .malformed("the release of a stream that is not over")
            }
            forget(stream)
            openedByUs -= 1
            return nil
        }
        giveTurn(to: stream)
        return nil
    }

    private func opened(
        _ number: UInt32, _ name: String, _ purpose: StreamPurpose
    ) throws(WireError) -> Stream {
        guard agreement.ours.accept(purpose) else {
            throw .malformed("a stream for \(purpose), which this side does not accept")
        }
        let expected = lastTheirs == 0 ? (agreement.isOdd ? 2 : 1) : lastTheirs &+ 2
        guard number == expected else {
            throw .malformed("a stream with the number \(number), not \(expected)")
        }
        guard openedByThem < agreement.ours.streams else {
            throw .malformed("more streams than were allowed")
        }
        lastTheirs = number
        openedByThem += 1
        return add(number, name, purpose, isOwn: false)
    }

    private func endReceiving(_ stream: Stream) throws(WireError) {
        guard !stream.hasReceivingEnded else { throw .malformed("the second end of a stream") }
        stream.hasReceivingEnded = true
    }
}
