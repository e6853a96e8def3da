import NighLoop
import NighCore

/// Sends one run's messages as fast as possible, on the session's loop: a warm-up, a mark, the measured messages, and
/// an end.
///
/// It keeps at most as much under way as the other side receives in half a second, or 512 KiB if that is more. That is
/// enough to fill every buffer on the path, and no more, so that a slow link is done soon after the run's time is over.
///
/// `@unchecked Sendable`: used on the session's loop only.
final class BenchSender: @unchecked Sendable {
    private let session: Session
    private let loop: UVEventLoop
    private let peer: PeerID
    private let payload: BenchPayload
    private let size: Int
    private let isLarge: Bool
    /// The payloads one after the other, if the session copies them.
    private let small: ByteSlice
    private let warmUp: Moment.Span
    private let measured: Moment.Span
    private let whenFailed: @Sendable (NighError) -> Void

    private var messages = 0
    private var mayBeSent: Int
    private var mark: (messages: Int, at: Moment)?
    /// The amount sent between mark and end; nil before the end.
    private(set) var ended: BenchCount?
    private var begunAt: Moment?
    private var task: Task<Void, Never>?
    private var waiting: CheckedContinuation<Void, Never>?
    private var isCancelled = false

    /// The number of bytes that are sent before other work on the loop has its turn.
    private static let bytesInTurn = 256 << 10
    /// From this size on, the session does not copy messages.
    private static let leastLarge = 12 << 10
    private static let leastUnderWay = 512 << 10
    /// If the other side receives this many bytes in half a second, this class sets no limit, because the session's own
    /// limits are lower.
    private static let unboundedFrom = 8.0 * 1_048_576
    /// The maximum number of messages between two looks at the clock.
    private static let mostMessagesInTurn = 4_096

    init(
        _ order: BenchOrder, session: Session, loop: UVEventLoop, to peer: PeerID,
        whenFailed: @escaping @Sendable (NighError) -> Void
    ) {
        self.session = session
        self.loop = loop
        self.peer = peer
        self.whenFailed = whenFailed
        size = Int(order.size)
        isLarge = size >= Self.leastLarge
        payload = BenchPayload(run: order.run, size: size)
        small = ByteSlice(isLarge ? [] : payload.slices.flatMap(\.bytes))
        warmUp = .milliseconds(Int64(order.warmUp))
        measured = .milliseconds(Int64(order.measured))
        mayBeSent = max(1, Self.leastUnderWay / size)
    }

    /// Everything that was passed to the session so far, including the warm-up.
    var amount: BenchAmount { BenchAmount(messages, of: size) }

    func begin() {
        begunAt = loop.now
        task = Task(executorPreference: loop) { [self] in
            do throws(NighError) {
                try await send()
            } catch {
                if !isCancelled { whenFailed(error) }
            }
        }
    }

    /// Stops sending. Loop only.
    func cancel() {
        isCancelled = true
        task?.cancel()
        resume()
    }

    /// Takes the amount that the other side reports as received. It counts at most what was sent.
    func reported(_ received: BenchAmount) {
        guard mayBeSent != .max, let begunAt else { return }
        let seconds = Double(max((loop.now - begunAt).nanoseconds, 1)) / 1e9
        let inHalfASecond = Double(received.bytes) / seconds / 2
        if inHalfASecond >= Self.unboundedFrom {
            mayBeSent = .max
        } else {
            let underWay = max(Int(inHalfASecond), Self.leastUnderWay) / size
            let arrived = min(Int(clamping: received.messages), messages)
            mayBeSent = max(mayBeSent, arrived + max(underWay, 1))
        }
        resume()
    }

    private func resume() {
        waiting?.resume()
        waiting = nil
    }

    private func send() async throws(NighError) {
        while !isCancelled {
            if try await passMilestones() { return }
            try await sendInTurn()
            await Task.yield()
        }
    }

    /// Sends the mark and the end when they are due. Returns true after the end.
    private func passMilestones() async throws(NighError) -> Bool {
        guard let begunAt else { return true }
        guard let mark else {
            if loop.now >= begunAt + warmUp {
                try await session.send(payload.mark, to: peer, on: .bulk)
                self.mark = (messages, loop.now)
            }
            return false
        }
        // At least one message is measured, even if it takes longer than the run's time.
        guard messages > mark.messages, loop.now >= mark.at + measured else { return false }
        let end = BenchCount(messages - mark.messages, of: size, in: loop.now - mark.at)
        ended = end
        try await session.send(payload.end(end), to: peer, on: .bulk)
        return true
    }

    private func sendInTurn() async throws(NighError) {
        if messages >= mayBeSent {
            return await withCheckedContinuation { continuation in
                // More may be sent by the time this is called.
                guard messages >= mayBeSent else { return continuation.resume() }
                waiting = continuation
            }
        }
        do throws(NighError) {
            try trySendInTurn()
        } catch {
            guard case .bufferFull = error.cause else { throw error }
            try await session.send(payload.slices[messages & (BenchPayload.variety - 1)], to: peer, on: .bulk)
            messages &+= 1
        }
    }

    /// Sends as many messages as there is room for, up to the limit of one turn. Neither waits nor allocates.
    private func trySendInTurn() throws(NighError) {
        let (session, peer) = (session, peer)
        let slices = payload.slices
        let last = min(mayBeSent, messages + min(max(Self.bytesInTurn / size, 1), Self.mostMessagesInTurn))
        if isLarge {
            while messages < last {
                try session.trySend(slices[messages & (BenchPayload.variety - 1)], to: peer, .reliable(.bulk))
                messages &+= 1
            }
        } else {
            // All payloads lie in one buffer, whose address stays valid during the loop.
            try small.withUnsafeBytes { bytes throws(NighError) in
                while messages < last {
                    let begin = (messages & (BenchPayload.variety &- 1)) &* size
                    try session.trySend(
                        UnsafeRawBufferPointer(rebasing: bytes[begin..<begin &+ size]), to: peer,
                        .reliable(.bulk))
                    messages &+= 1
                }
            }
        }
    }
}
