import CBenchmark
import Dispatch
import NighLoop

/// Checks and counts the messages of one connection. All connections of this process share the tally.
///
/// `@unchecked Sendable`: only the code that takes the messages touches it, one message at a time.
final class ReceiptChecker: @unchecked Sendable {
    private let tally: UnsafeMutablePointer<benchmark_tally>
    @exclusivity(unchecked) private var receipt = benchmark_receipt()

    init(size: Int, tally: UnsafeMutablePointer<benchmark_tally>) {
        self.tally = tally
        receipt.size = size
    }

    /// Returns true if it was the last message of all connections.
    @inline(__always)
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        benchmark_receive(&receipt, tally, bytes.bytes, bytes.count)
    }

    static func tally(peers: Int) -> UnsafeMutablePointer<benchmark_tally> {
        let tally = UnsafeMutablePointer<benchmark_tally>.allocate(capacity: 1)
        tally.initialize(to: benchmark_tally())
        tally.pointee.peers = Int32(peers)
        return tally
    }
}

/// Takes the messages of each connection, and answers the last one. In a stream there is one session, which is called.
/// In a broadcast there are many in one process, on one loop, each connected with the publisher.
///
/// `@unchecked Sendable`: touched on the loop only, except the counts of `ReceiptChecker`.
final class StreamReceiver: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let end = DispatchSemaphore(value: 0)
    private let tally: UnsafeMutablePointer<benchmark_tally>
    private let sessions: [LowLevelSession]

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        let serves = setting.options.serves
        let count = serves ? 1 : setting.peers
        tally = ReceiptChecker.tally(peers: count)
        sessions = (0..<count).map { _ in setting.session(serves ? .server : .client) }
    }

    func run() {
        begin(0)
        if !setting.options.serves { end.wait() }
        benchmark_wait_for_other_side()
    }

    /// Connects the sessions one after the other, so that no invitation waits behind a thousand others.
    private func begin(_ index: Int) {
        guard index < sessions.count else { return }
        let session = sessions[index]
        let checker = ReceiptChecker(size: setting.size, tally: tally)
        let handler: MessageHandler = { [self] bytes, origin in
            if bytes.withUnsafeBytes({ checker.receive($0) }) { finish(origin.peer, at: session) }
        }
        let onMessage = setting.reading == .handler ? handler : nil
        if setting.options.serves {
            setting.accept(with: session, onMessage: onMessage)
        } else {
            setting.call(with: session, onMessage: onMessage) { [self] _ in begin(index + 1) }
        }
        setting.read(session) { [self] peer, bytes in
            if checker.receive(bytes) { finish(peer, at: session) }
        }
    }

    private func finish(_ peer: PeerID, at session: LowLevelSession) {
        benchmark_tally_report(tally)
        BenchmarkSetting.demand { () throws(NighError) in try session.trySend([1], to: peer) }
        end.signal()
    }
}

/// Sends to all peers for as long as the command line says, and waits wherever one has no room. Ends when the last
/// message is answered. In a stream it sends to the one peer that it calls; in a broadcast, to all peers that call it.
///
/// `@unchecked Sendable`: the peers are gathered on the loop, and one task sends everything. The report comes after
/// that.
final class StreamSender: @unchecked Sendable {
    /// How many bytes are sent before other work on the loop has its turn.
    private static let bytesInTurn = 256 << 10

    private let setting: BenchmarkSetting
    private let session: LowLevelSession
    private let outgoing: Outgoing
    private let end = DispatchSemaphore(value: 0)
    private var peers: [PeerID] = []
    @exclusivity(unchecked) private var supply = benchmark_supply()

    init(_ setting: BenchmarkSetting) {
        self.setting = setting
        session = setting.session(setting.options.serves ? .server : .client)
        outgoing = Outgoing(session, size: setting.size)
    }

    func run() {
        let onMessage: MessageHandler = { [end] _, _ in end.signal() }
        let connected: @Sendable (PeerID) -> Void = { [self] peer in
            peers.append(peer)
            if peers.count == (setting.options.serves ? setting.peers : 1) { begin(to: peers) }
        }
        if setting.options.serves {
            setting.accept(with: session, onMessage: onMessage, connected: connected)
        } else {
            setting.call(with: session, onMessage: onMessage, connected: connected)
        }
        end.wait()
        benchmark_supply_report(&supply)
        if setting.options.serves { benchmark_wait_for_other_side() }
    }

    private func begin(to peers: [PeerID]) {
        var options = setting.options
        benchmark_supply_begin(&supply, &options)
        switch setting.reading {
        case .handler, .inbox: Task(executorPreference: setting.loop) { await self.send(to: peers) }
        case .pool: Task { await self.send(to: peers) }
        }
    }

    private func send(to peers: [PeerID]) async {
        do {
            if peers.count == 1 { try await send(to: peers[0]) } else { try await broadcast(to: peers) }
        } catch {
            BenchmarkSetting.fail("\(error)")
        }
    }

    private func send(to peer: PeerID) async throws(NighError) {
        var sent = 0
        while let payload = benchmark_supply_next(&supply) {
            do throws(NighError) {
                try outgoing.tryPost(payload, to: peer)
            } catch {
                guard case .bufferFull = error.cause else { throw error }
                try await session.send(outgoing.slice(payload), to: peer)
            }
            sent += setting.size
            if sent >= Self.bytesInTurn {
                sent = 0
                await Task.yield()
            }
        }
    }

    private func broadcast(to peers: [PeerID]) async throws {
        var sent = 0
        while let payload = benchmark_supply_next(&supply) {
            let slice = outgoing.slice(payload)
            do throws(PartialSendError) {
                try session.trySend(slice, to: peers)
            } catch {
                for (peer, reason) in error.failures {
                    guard case .bufferFull = reason.cause else { throw reason }
                    try await session.send(slice, to: peer)
                }
            }
            sent += setting.size
            if sent >= Self.bytesInTurn {
                sent = 0
                await Task.yield()
            }
        }
    }
}
