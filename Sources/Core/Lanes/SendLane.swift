/// The messages of one lane that were accepted and are not acknowledged yet, in the form in which they travel.
///
/// Small messages are encoded once, one after another, into chunks. These bytes are the queue, are given to the pipe by
/// reference, and are sent again on the next link. A large message is kept as the program's own payload. When it is
/// written, its header goes before it; if it is too long for one frame, it is cut into pieces. A cursor says how much
/// the present link has been given.
struct SendLane {
    private struct Segment {
        /// A run of encoded small messages, or the payload of one large message.
        var bytes: ByteSlice
        var isLarge: Bool
        /// Whether the payload was copied for the lane, which gives its chunk back.
        var isCopy = false
        /// The kind of the large message; runs have the kinds of theirs inside.
        var kind: MessageKind?
        var messageCount: Int

        /// Its cost in the send buffer, besides `bytes`.
        var overhead: Int { isLarge ? SendLane.cost(of: kind.byteCount) : 0 }
    }

    let lane: Lane
    private let chunks: LargeChunks
    private var segments = Ring<Segment>()

    /// How many messages the peer has acknowledged since the conversation began.
    private(set) var acknowledged: UInt64 = 0
    /// How many messages have been accepted since the conversation began.
    private(set) var accepted: UInt64 = 0
    /// Frame bytes given to the present link, for its flow control.
    private(set) var sentOnLink: UInt64 = 0
    /// How many messages have been given whole to any link.
    private(set) var everSent: UInt64 = 0

    /// Bytes and messages of the first segment that are acknowledged.
    private var acknowledgedBytes = 0
    private var acknowledgedInFirst = 0

    /// The position in the segments up to which this link has them: all segments before this one, and these bytes and
    /// messages of it. The cursor stays at the end of the last segment, which may still grow.
    private var cursorSegment = 0
    private var cursorBytes = 0
    private var cursorMessages = 0
    /// Whether the link was told that the large message at the cursor begins.
    private var cursorHasBegun = false
    /// The number of the last message that this link has been given whole.
    private(set) var sent: UInt64 = 0

    private var tail: Chunk?
    /// Where the run at the end of `tail` may grow, and by how many bytes. Messages added there since the last
    /// `commitRun` are counted only here, so that a message needs no look at the segments and retains nothing.
    private var runEnd: UnsafeMutableRawPointer?
    private var room = 0
    private var freshBytes = 0
    private var freshMessages = 0

    /// - Parameter chunks: where copies of large messages go when they are acknowledged.
    init(lane: Lane, chunks: LargeChunks) {
        self.lane = lane
        self.chunks = chunks
    }

    /// The size from which on a reference to a payload costs less than a copy.
    private static let leastReference = 12 << 10

    /// Returns whether to keep `payload` by reference. If it would fit into a frame, it must fill a good part of its
    /// chunk, because the whole chunk is kept.
    static func refersTo(_ payload: ByteSlice, pieceLimit: Int) -> Bool {
        payload.count > pieceLimit
            || (payload.count >= leastReference && payload.chunk.capacity / 4 <= payload.count)
    }

    /// Returns how many bytes a message of `count` payload bytes counts against the send buffer.
    static func cost(of count: Int) -> Int { count &+ FrameHeader.byteCount }

    var isEmpty: Bool { segments.isEmpty }

    /// Whether something was not given to the present link yet.
    var hasUnsent: Bool { sent < accepted }

    /// The bytes that count against the send buffer; used by the consistency checks.
    var heldCost: Int {
        var cost = freshBytes &- acknowledgedBytes
        for index in 0..<segments.count {
            cost &+= segments[index].bytes.count &+ segments[index].overhead
        }
        return cost
    }

    /// Whether the counts are in the order in which a message passes them, and agree with what is kept.
    var isConsistent: Bool {
        acknowledged <= sent && sent <= everSent && everSent <= accepted && cursorAgrees
    }

    /// Whether the cursor and the segments agree with the counts.
    private var cursorAgrees: Bool {
        var counted = acknowledged &- UInt64(acknowledgedInFirst)
        var given = segments.isEmpty && cursorBytes == 0 ? counted : nil
        for index in 0..<segments.count {
            if index == cursorSegment, cursorBytes <= segments[index].bytes.count {
                given = counted &+ UInt64(cursorMessages)
            }
            counted &+= UInt64(segments[index].messageCount)
        }
        return given == sent && counted &+ UInt64(freshMessages) == accepted
    }

    // MARK: Accepting

    /// Encodes a small message at the end. This is the one copy of its bytes on the way out.
    @inline(__always)
    mutating func append(_ bytes: UnsafeRawBufferPointer, pool: inout LaneChunks) {
        EncodedMessage.write(bytes, on: lane, to: claimFrame(payloadLength: bytes.count, pool: &pool))
    }

    /// Encodes a small message of a kind at the end.
    mutating func append(_ bytes: UnsafeRawBufferPointer, of kind: MessageKind, pool: inout LaneChunks) {
        let length = MessageKind.byteCount &+ bytes.count
        EncodedMessage.write(bytes, of: kind, on: lane, to: claimFrame(payloadLength: length, pool: &pool))
    }

    /// Appends a frame of any type, and returns where its payload has to be written at once.
    mutating func appendFrame(
        _ type: FrameType, payloadLength: Int, pool: inout LaneChunks
    ) -> UnsafeMutableRawPointer {
        let start = claimFrame(payloadLength: payloadLength, pool: &pool)
        FrameHeader(type: type, payloadLength: payloadLength).write(to: start)
        return start + FrameHeader.byteCount
    }

    /// Makes room for a frame at the end, counts it, and returns where it has to be written at once.
    @inline(__always)
    private mutating func claimFrame(payloadLength: Int, pool: inout LaneChunks) -> UnsafeMutableRawPointer {
        let needed = FrameHeader.byteCount &+ payloadLength
        if needed > room { openRun(needed, pool: &pool) }
        let start = runEnd.unsafelyUnwrapped + freshBytes
        room &-= needed
        freshBytes &+= needed
        freshMessages &+= 1
        accepted &+= 1
        return start
    }

    /// Appends small messages that another thread has encoded already.
    mutating func append(encoded bytes: ByteSlice, messages: Int) {
        closeRun()
        accepted &+= UInt64(messages)
        var isJoined = false
        if segments.count > 0 {
            segments.update(segments.count &- 1) { run in
                guard !run.isLarge, run.bytes.extend(over: bytes) else { return }
                run.messageCount &+= messages
                isJoined = true
            }
        }
        if !isJoined { segments.append(Segment(bytes: bytes, isLarge: false, messageCount: messages)) }
    }

    /// Appends a large message by reference: the program's own bytes, or a copy in a chunk of the session's.
    mutating func append(large payload: ByteSlice, of kind: MessageKind? = nil, isCopy: Bool) {
        closeRun()
        segments.append(
            Segment(bytes: payload, isLarge: true, isCopy: isCopy, kind: kind, messageCount: 1))
        accepted &+= 1
    }

    /// Makes sure that there is a run at the end that may grow by `needed` bytes.
    private mutating func openRun(_ needed: Int, pool: inout LaneChunks) {
        closeRun()
        if tail == nil || tail.unsafelyUnwrapped.room < needed { beginChunk(needed, pool: &pool) }
        let chunk = tail.unsafelyUnwrapped
        segments.append(Segment(bytes: chunk.slice(from: chunk.filled), isLarge: false, messageCount: 0))
        runEnd = chunk.base + chunk.filled
        room = chunk.room
    }

    /// Enters the messages added to the growing run into the segments.
    private mutating func commitRun() {
        guard freshMessages > 0, let tail else { return }
        _ = tail.claim(freshBytes)
        segments.update(segments.count &- 1) { run in
            run.bytes.grow(to: tail.filled)
            run.messageCount &+= freshMessages
        }
        runEnd = tail.base + tail.filled
        freshBytes = 0
        freshMessages = 0
    }

    /// Ends the growing run. The next small message opens a new one.
    private mutating func closeRun() {
        commitRun()
        room = 0
    }

    private mutating func beginChunk(_ needed: Int, pool: inout LaneChunks) {
        let isFirst = segments.isEmpty
        if isFirst, let tail { pool.recycle(tail) }
        tail = nil
        tail = pool.take(withRoom: needed, isFirst: isFirst)
    }

    // MARK: Acknowledging

    /// Forgets the messages up to number `count`, and returns the bytes set free. The caller has checked that they were
    /// sent.
    mutating func acknowledge(upTo count: UInt64, pool: inout LaneChunks) -> Int {
        commitRun()
        var freed = 0
        while acknowledged < count, let first = segments.first {
            let left = first.messageCount &- acknowledgedInFirst
            if count &- acknowledged >= UInt64(left) {
                freed &+= first.bytes.count &- acknowledgedBytes &+ first.overhead
                acknowledged &+= UInt64(left)
                removeFirst(pool: &pool)
            } else {
                let messages = Int(count &- acknowledged)
                let end = Self.end(of: messages, in: first.bytes, from: acknowledgedBytes)
                freed &+= end &- acknowledgedBytes
                acknowledgedBytes = end
                acknowledgedInFirst &+= messages
                acknowledged = count
            }
        }
        return freed
    }

    private mutating func removeFirst(pool: inout LaneChunks) {
        guard let removed = segments.popFirst() else { return }
        acknowledgedBytes = 0
        acknowledgedInFirst = 0
        if cursorSegment > 0 {
            cursorSegment &-= 1
        } else {
            cursorBytes = 0
            cursorMessages = 0
            cursorHasBegun = false
        }
        let chunk = removed.bytes.chunk
        if removed.isLarge {
            if removed.isCopy { chunks.recycle(chunk) }
            return
        }
        if segments.isEmpty {
            room = 0
            if chunk === tail { tail = nil }
        } else if chunk === tail || segments[0].bytes.chunk === chunk {
            return
        }
        pool.recycle(chunk)
    }

    /// Returns where the `count`-th message ends, counted from `start`.
    private static func end(of count: Int, in run: ByteSlice, from start: Int) -> Int {
        run.withUnsafeBytes { bytes in
            var position = start
            for _ in 0..<count {
                let header = FrameHeader(readingFrom: bytes.baseAddress.unsafelyUnwrapped + position)
                position &+= FrameHeader.byteCount &+ header.payloadLength
            }
            return position
        }
    }

    // MARK: Writing

    /// Begins a new link, which will be given everything that is not acknowledged. Returns how many messages are sent
    /// again.
    mutating func startLink() -> UInt64 {
        sentOnLink = 0
        cursorSegment = 0
        cursorBytes = acknowledgedBytes
        cursorMessages = acknowledgedInFirst
        cursorHasBegun = false
        sent = acknowledged
        return everSent &- acknowledged
    }

    /// Gives the link up to about `budget` bytes, as far as `granted` allows. Returns how many it gave.
    mutating func gather(
        into queue: inout ByteQueue, budget: Int, granted: UInt64, pieceLimit: Int,
        header: inout ControlWriter
    ) -> Int {
        commitRun()
        var given = 0
        while given < budget, sent < accepted {
            let credit = granted > sentOnLink ? Int(clamping: granted &- sentOnLink) : 0
            guard credit > 0 else { break }
            let room = min(budget &- given, credit)
            let segment = segments[cursorSegment]
            if cursorBytes == segment.bytes.count {
                cursorSegment &+= 1
                cursorBytes = 0
                cursorMessages = 0
                cursorHasBegun = false
                continue
            }
            let count =
                segment.isLarge
                ? gatherLarge(segment, into: &queue, room: room, pieceLimit: pieceLimit, header: &header)
                : gatherRun(segment, into: &queue, room: room)
            sentOnLink &+= UInt64(count)
            given &+= count
        }
        return given
    }

    private mutating func gatherRun(_ segment: Segment, into queue: inout ByteQueue, room: Int) -> Int {
        var end = segment.bytes.count
        var messages = segment.messageCount &- cursorMessages
        if end &- cursorBytes > room {
            // Whole frames until the room is used up; the last frame may exceed it.
            (end, messages) = Self.wholeFrames(in: segment.bytes, from: cursorBytes, room: room)
        }
        queue.append(segment.bytes[cursorBytes..<end])
        let count = end &- cursorBytes
        cursorBytes = end
        cursorMessages &+= messages
        noteSent(messages)
        return count
    }

    private static func wholeFrames(in run: ByteSlice, from start: Int, room: Int) -> (
        end: Int, messages: Int
    ) {
        run.withUnsafeBytes { bytes in
            var position = start
            var messages = 0
            while position &- start < room, position < bytes.count {
                let header = FrameHeader(readingFrom: bytes.baseAddress.unsafelyUnwrapped + position)
                position &+= FrameHeader.byteCount &+ header.payloadLength
                messages &+= 1
            }
            return (position, messages)
        }
    }

    private mutating func gatherLarge(
        _ segment: Segment, into queue: inout ByteQueue, room: Int, pieceLimit: Int,
        header: inout ControlWriter
    ) -> Int {
        let size = segment.bytes.count
        if size <= pieceLimit, segment.kind == nil {
            queue.append(header.detachedHeader(.message(on: lane), payloadLength: size))
            queue.append(segment.bytes)
            cursorBytes = size
            cursorMessages = 1
            noteSent(1)
            return FrameHeader.byteCount &+ size
        }
        var count = 0
        if !cursorHasBegun {
            cursorHasBegun = true
            queue.append(
                EncodedMessage.beginning(of: segment.bytes.count, segment.kind, on: lane, header: &header))
            count = FrameHeader.byteCount &+ EncodedMessage.beginningLength(segment.kind)
        }
        while count < room, cursorBytes < segment.bytes.count {
            let piece = min(pieceLimit, segment.bytes.count &- cursorBytes)
            queue.append(header.detachedHeader(.piece(on: lane), payloadLength: piece))
            queue.append(segment.bytes[cursorBytes..<cursorBytes &+ piece])
            cursorBytes &+= piece
            count &+= FrameHeader.byteCount &+ piece
        }
        if cursorBytes == segment.bytes.count {
            cursorMessages = 1
            noteSent(1)
        }
        return count
    }

    private mutating func noteSent(_ messages: Int) {
        sent &+= UInt64(messages)
        everSent = max(everSent, sent)
    }
}

/// The form of reliable messages on the wire, for all code that writes them.
enum EncodedMessage {
    /// The payload length of a frame that announces a large message.
    static func beginningLength(_ kind: MessageKind?) -> Int { 4 &+ kind.byteCount }

    /// Writes a whole small message to `start`, where there must be room for it and its header.
    @inline(__always)
    static func write(_ bytes: UnsafeRawBufferPointer, on lane: Lane, to start: UnsafeMutableRawPointer) {
        FrameHeader(type: .message(on: lane), payloadLength: bytes.count).write(to: start)
        if let source = bytes.baseAddress {
            (start + FrameHeader.byteCount).copyMemory(from: source, byteCount: bytes.count)
        }
    }

    /// Writes a whole small message of a kind to `start`, where there must be room for it, its kind and its header.
    static func write(
        _ bytes: UnsafeRawBufferPointer, of kind: MessageKind, on lane: Lane,
        to start: UnsafeMutableRawPointer
    ) {
        let header = FrameHeader(
            type: .kindMessage(on: lane), payloadLength: MessageKind.byteCount &+ bytes.count)
        header.write(to: start)
        (start + FrameHeader.byteCount).storeBytes(of: kind.rawValue, as: UInt8.self)
        if let source = bytes.baseAddress {
            (start + FrameHeader.byteCount + MessageKind.byteCount)
                .copyMemory(from: source, byteCount: bytes.count)
        }
    }

    /// Returns the frame that announces a message of `count` bytes in pieces.
    static func beginning(
        of count: Int, _ kind: MessageKind?, on lane: Lane, header: inout ControlWriter
    ) -> ByteSlice {
        header.standaloneFrame(.begin(on: lane), number: UInt32(count), last: kind?.rawValue)
    }
}
