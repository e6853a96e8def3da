import Dispatch
import NighCore
import NighSystem
import Synchronization

/// Sends messages one way, as fast as they go.
///
/// The sender sends in bursts. Some are under way at first. Each time the receiver has taken a whole burst, the next
/// one is started. So the sender is never refused, nobody polls, and queues stay as short as in a program that keeps
/// up.
struct Stream {
    let sender: Scenario.Sender
    let receiver: Scenario.Receiver
    let loops: SessionGroup.Loops
    let size: Int
    var receiverCount = 1
    var security = SessionSecurity.none

    private static let burstsUnderWay = 3
    private static let bytesInBurst = 32 << 10
    private static let mostMessagesInBurst = 512

    private var burst: Int { min(Self.mostMessagesInBurst, max(1, Self.bytesInBurst / size)) }

    func measure(warmUp: Int, until: Meter.Until) async throws -> Measurement {
        let meter = Meter(step: burst * receiverCount, warmUp: warmUp, until: until)
        let handler: MessageHandler = { _, _ in meter.count() }
        let group = try await SessionGroup.connect(
            on: loops, receivers: receiverCount, messageSize: size, security: security,
            handlers: .init(
                atReceivers: receiver == .handler ? handler : nil,
                onInterruption: meter.fail))
        let bursts = Bursts(
            from: group.sender, to: group.receivers.map(\.id), size: size, count: burst,
            isReliable: sender != .unreliable)
        let reader = read(from: group.receivers[0], into: meter)
        let stop = begin(bursts, meter: meter, on: group)
        let measurement = try await meter.measurement
        await stop()
        await group.close(reader: reader)
        return measurement
    }

    /// Starts the reader of the messages, unless the handler takes them.
    private func read(from session: Session, into meter: Meter) -> Task<Void, Never>? {
        switch receiver {
        case .handler: return nil
        case .poll:
            Poller(session: session, meter: meter).begin()
            return nil
        case .loopTask:
            let messages = session.messages
            return Task(executorPreference: session.loop) {
                while await messages.next() != nil { meter.count() }
            }
        case .task:
            let messages = session.messages
            return Task {
                while await messages.next() != nil { meter.count() }
            }
        }
    }

    /// Starts the sender. Returns a closure that ends it.
    private func begin(_ bursts: Bursts, meter: Meter, on group: SessionGroup) -> () async -> Void {
        switch sender {
        case .loop, .unreliable:
            let loop = group.sender.loop
            meter.onEachStep { loop.execute(bursts.send) }
            for _ in 0..<Self.burstsUnderWay { loop.execute(bursts.send) }
            return {}
        case .thread:
            let thread = SendingThread(bursts.send)
            meter.onEachStep { thread.runOnce() }
            for _ in 0..<Self.burstsUnderWay { thread.runOnce() }
            return { thread.join() }
        case .task:
            let task = Task { await bursts.sendUntilCancelled() }
            return {
                task.cancel()
                await task.value
            }
        }
    }
}

/// Sends a burst of messages on each call of `send`. The closure is made once.
final class Bursts: Sendable {
    let send: @Sendable () -> Void
    private let sender: Session
    private let peers: [PeerID]
    private let payload: ByteSlice

    init(from sender: Session, to peers: [PeerID], size: Int, count: Int, isReliable: Bool) {
        let payload = ByteSlice([UInt8](repeating: 0x6e, count: size))
        let reliability = isReliable ? Reliability.reliable : .unreliable
        self.sender = sender
        self.peers = peers
        self.payload = payload
        if peers.count == 1 {
            let peer = peers[0]
            send = {
                for _ in 0..<count { Self.demand { try sender.trySend(payload, to: peer, reliability) } }
            }
        } else {
            send = {
                for _ in 0..<count { Self.demand { try sender.trySend(payload, to: peers, reliability) } }
            }
        }
    }

    /// Stops the program if a send is refused, because it would not measure the scenario.
    @inline(__always)
    static func demand(_ send: () throws -> Void) {
        do { try send() } catch { fatalError("a message was refused: \(error)") }
    }

    /// Sends as `Nigh.Peer.send(bytes:)` does.
    func sendUntilCancelled() async {
        let bytes = payload.bytes
        while !Task.isCancelled {
            do { try await sender.send(bytes, to: peers[0]) } catch { return }
        }
    }
}

/// A thread that runs a piece of work once for each call of `runOnce`.
final class SendingThread: Sendable {
    private let turns = DispatchSemaphore(value: 0)
    private let isStopping = Atomic<Bool>(false)
    private let thread = LoopThread()

    init(_ work: @escaping @Sendable () -> Void) {
        thread.startOrStopProgram { [self] in
            while true {
                turns.wait()
                if isStopping.load(ordering: .relaxed) { return }
                work()
            }
        }
    }

    func runOnce() { turns.signal() }

    /// Ends the thread and waits for it.
    func join() {
        isStopping.store(true, ordering: .relaxed)
        turns.signal()
        thread.join()
    }
}

/// Reads all waiting messages in every turn of the loop.
///
/// `@unchecked Sendable`: touched on the loop only.
final class Poller: @unchecked Sendable {
    private let session: Session
    private let meter: Meter
    private var work: @Sendable () -> Void = {}

    init(session: Session, meter: Meter) {
        self.session = session
        self.meter = meter
    }

    func begin() {
        work = { [self] in turn() }
        session.loop.execute(work)
    }

    private func turn() {
        while session.messages.poll() != nil { meter.count() }
        if meter.isDone {
            work = {}
        } else {
            session.loop.execute(work)
        }
    }
}
