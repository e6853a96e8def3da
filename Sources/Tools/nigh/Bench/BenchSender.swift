import Nigh
import NighCore

/// Sends one run's messages as fast as they go, on the session's loop: a warm-up, a mark, what is measured, and an end.
///
/// It keeps no more under way than the other side takes in half a second, or 512 KiB where that is more: enough to fill every
/// buffer there is on the way, and no more, so that a slow link is done soon after the run's time is over.
///
/// `@unchecked Sendable`: touched on the session's loop alone.
final class BenchSender: @unchecked Sendable {
    private let session: Session
    private let loop: UVEventLoop
    private let peer: PeerID
    private let payload: BenchPayload
    private let size: Int
    private let isLarge: Bool
    /// The payloads one behind the other, where they are copied.
    private let small: ByteSlice
    private let warmUp: Moment.Span
    private let measured: Moment.Span
    private let whenFailed: @Sendable (NighError) -> Void

    // What is touched for each message is not checked for overlapping access at run time, which would cost as much as sending.
    @exclusivity(unchecked) private var messages = 0
    @exclusivity(unchecked) private var mayBeSent: Int
    private var mark: (messages: Int, at: Moment)?
    /// What was sent between mark and end; nil before the end.
    private(set) var ended: BenchCount?
    private var begunAt: Moment?
    private var task: Task<Void, Never>?
    private var waiting: CheckedContinuation<Void, Never>?
    private var isCancelled = false

    /// So much is sent before others on the loop have their turn.
    private static let bytesInTurn = 256 << 10
    /// From here on messages are not copied by the session.
    private static let leastLarge = 12 << 10
    private static let leastUnderWay = 512 << 10
    /// Where the other side takes so much in half a second, the session's own bounds are the narrower ones.
    private static let unboundedFrom = 8.0 * 1_048_576
    /// The clock is looked at after so many messages at the latest.
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

    /// All that was handed to the session so far, warm-up included.
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

    /// Sends nothing any more. On the loop.
    func cancel() {
        isCancelled = true
        task?.cancel()
        goOn()
    }

    /// The other side has so much of it.
    func reported(_ received: BenchAmount) {
        guard mayBeSent != .max, let begunAt else { return }
        let seconds = Double(max((loop.now - begunAt).nanoseconds, 1)) / 1e9
        let inHalfASecond = Double(received.bytes) / seconds / 2
        if inHalfASecond >= Self.unboundedFrom {
            mayBeSent = .max
        } else {
            let underWay = max(Int(inHalfASecond), Self.leastUnderWay) / size
            mayBeSent = max(mayBeSent, Int(clamping: received.messages) + max(underWay, 1))
        }
        goOn()
    }

    private func goOn() {
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

    /// Sends the mark and the end when it is their time; true after the end.
    private func passMilestones() async throws(NighError) -> Bool {
        guard let begunAt else { return true }
        guard let mark else {
            if loop.now >= begunAt + warmUp {
                try await session.send(payload.mark, to: peer, on: .bulk)
                self.mark = (messages, loop.now)
            }
            return false
        }
        // Of what takes longer than the run's time, one message is measured all the same.
        guard messages > mark.messages, loop.now >= mark.at + measured else { return false }
        let end = BenchCount(messages - mark.messages, of: size, in: loop.now - mark.at)
        ended = end
        try await session.send(payload.end(end), to: peer, on: .bulk)
        return true
    }

    private func sendInTurn() async throws(NighError) {
        if messages >= mayBeSent { return await withCheckedContinuation { waiting = $0 } }
        do throws(NighError) {
            try trySendInTurn()
        } catch {
            guard case .bufferFull = error.cause else { throw error }
            try await session.send(payload.slices[messages & (BenchPayload.variety - 1)], to: peer, on: .bulk)
            messages &+= 1
        }
    }

    /// As many as there is room for, and others can wait for. Nothing is waited for here, and nothing allocated.
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
            // All of them side by side, so that they stay where they are meanwhile.
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
