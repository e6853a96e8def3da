import Glibc
import Synchronization

/// Messages of one peer on their way to the program, as they came: one piece of memory with one reference for all of
/// them, cut into messages only when they are read.
struct UnreadRun: Sendable {
    /// Whom to tell when they are read.
    let port: PeerPort
    /// Frames of whole messages one behind the other, or where there is an `origin` the payload of that one message.
    let bytes: ByteSlice
    /// Where the one message came from; nil for frames, which say it themselves.
    let origin: MessageOrigin?
}

/// The messages of a session that its program has not read.
///
/// The loop appends runs. The reader has one of them open at a time and takes message by message from it; the memory goes on
/// to the last message, so that it is free as soon as the program has let go of that. What was read is told to the loop by the
/// run, and within long ones in steps far smaller than the window.
///
/// `@unchecked Sendable`: what is marked "reader only" is touched with `isTaken` set by whoever touches it. No lock stands there
/// because there is one reader: a lock would cost as much as the message. Two that read at once against the rule wait for
/// each other for a few instructions.
final class MessageInbox: @unchecked Sendable {
    private let runs = Inbox<UnreadRun>()
    private let attention: Attention
    /// The loop is told when so much has been read.
    private let tellAfter: Int
    /// What is read of a run is counted when it is so much.
    private let step: Int

    private let isTaken = Atomic<Bool>(false)
    /// Whether the open run has something left to read, or is just being looked for. Who finds the queue empty because of that
    /// sees it set: it is set before the run is taken out, with the queue's lock in between.
    private let isOpen = Atomic<Bool>(false)

    // The open run, for the reader only. Nothing is called out while it is touched, hence without the check at run time.
    @exclusivity(unchecked) private var chunk: Chunk?
    @exclusivity(unchecked) private var base = UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    @exclusivity(unchecked) private var peer: PeerID
    @exclusivity(unchecked) private var port: PeerPort?
    /// Where in the chunk the next frame begins.
    @exclusivity(unchecked) private var position = 0
    /// A frame that ends there or behind it is for `pollAtMark`: something has to be counted, or the run is over.
    @exclusivity(unchecked) private var mark = 0
    @exclusivity(unchecked) private var end = 0
    /// Up to where reading has been counted.
    @exclusivity(unchecked) private var counted = 0

    /// - Parameter owner: the session's own PeerID.
    init(receiveWindow: Int, owner: PeerID, attention: Attention) {
        self.attention = attention
        tellAfter = receiveWindow / 4
        step = receiveWindow / 16
        peer = owner
    }

    // MARK: The loop

    func append(_ run: UnreadRun) { runs.append(run) }

    /// Nothing more will come; what waits can still be read.
    func finish() { runs.finish() }

    // MARK: The reader

    /// Whether a task waits for a message.
    var hasReader: Bool { runs.hasReader }

    /// The next message without waiting; nil when there is none now.
    @inline(__always)
    func poll() -> Message? {
        take()
        if position < mark {
            let header = FrameHeader(readingFrom: base + position)
            let start = position &+ FrameHeader.byteCount
            let next = start &+ header.payloadLength
            if next < mark {
                position = next
                let message = Message(
                    origin: MessageOrigin(peer: peer, frameType: header.type),
                    payload: ByteSlice(chunk: chunk.unsafelyUnwrapped, start: start, end: next))
                letGo()
                return message
            }
        }
        return pollAtMark()
    }

    /// The next message when `poll` has just had none; nil when the inbox is finished and empty, or the task is cancelled.
    nonisolated(nonsending) func waitForNext() async -> Message? {
        while await runs.wait(unless: { isOpen.load(ordering: .relaxed) }) {
            if let message = poll() { return message }
        }
        return nil
    }

    /// The message at the mark of the open run, or the first of the next run.
    @inline(never)
    private func pollAtMark() -> Message? {
        if position == end {
            isOpen.store(true, ordering: .relaxed)
            guard let run = runs.poll() else {
                isOpen.store(false, ordering: .relaxed)
                letGo()
                return nil
            }
            if let origin = run.origin {
                isOpen.store(false, ordering: .relaxed)
                letGo()
                count(SendLane.cost(of: run.bytes.count), of: run.port)
                return Message(origin: origin, payload: run.bytes)
            }
            open(run)
        }
        return cut()
    }

    private func open(_ run: UnreadRun) {
        chunk = run.bytes.chunk
        base = UnsafeRawPointer(run.bytes.chunk.base)
        port = run.port
        peer = run.port.peer
        position = run.bytes.start
        counted = position
        end = run.bytes.end
        mark = min(end, position &+ step)
    }

    /// Takes the next message out of the open run, counts what is due, and lets go.
    private func cut() -> Message? {
        let header = FrameHeader(readingFrom: base + position)
        let origin = MessageOrigin(peer: peer, frameType: header.type)
        let start = position &+ FrameHeader.byteCount
        position = start &+ header.payloadLength
        let payload = ByteSlice(chunk: chunk.unsafelyUnwrapped, start: start, end: position)
        guard position >= mark else {
            letGo()
            return Message(origin: origin, payload: payload)
        }
        let reader = port.unsafelyUnwrapped
        let cost = position &- counted
        if position == end {
            chunk = nil
            port = nil
            isOpen.store(false, ordering: .relaxed)
        } else {
            counted = position
            mark = min(end, position &+ step)
        }
        letGo()
        count(cost, of: reader)
        return Message(origin: origin, payload: payload)
    }

    private func count(_ bytes: Int, of port: PeerPort) {
        if port.didRead(bytes, tellAfter: tellAfter) { attention.wants(port) }
    }

    @inline(__always)
    private func take() {
        while isTaken.exchange(true, ordering: .acquiring) { sched_yield() }
    }

    @inline(__always)
    private func letGo() { isTaken.store(false, ordering: .releasing) }
}
