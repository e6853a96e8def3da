import CBenchmark
import Nigh

/// What arrives on one connection, checked and counted; the tally is shared by all connections of this process.
///
/// `@unchecked Sendable`: touched by whoever takes the messages, one at a time.
final class Receipt: @unchecked Sendable {
    private let tally: UnsafeMutablePointer<benchmark_tally>
    @exclusivity(unchecked) private var receipt = benchmark_receipt()

    init(size: Int, tally: UnsafeMutablePointer<benchmark_tally>) {
        self.tally = tally
        receipt.size = size
    }

    /// True when it was the last one of all connections.
    @inline(__always)
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        benchmark_receive(&receipt, tally, bytes.bytes, bytes.count)
    }

    static func tally(peers: Int) -> UnsafeMutablePointer<benchmark_tally> {
        let tally = UnsafeMutablePointer<benchmark_tally>.allocate(capacity: 1)
        tally.initialize(to: benchmark_tally())
        tally.pointee.peers = Int32(peers)
        return tally
    }
}

/// Receives a stream, and answers its end.
///
/// Constant but for what `Receipt` counts; hence `@unchecked Sendable`.
final class StreamReceiver: @unchecked Sendable {
    private let setting: Setting
    private let session: Session
    private let tally = Receipt.tally(peers: 1)
    private let receipt: Receipt

    init(_ setting: Setting) {
        self.setting = setting
        session = setting.session(.server)
        receipt = Receipt(size: setting.size, tally: tally)
    }

    func serve() {
        let handler: MessageHandler = { [self, receipt] bytes, origin in
            if bytes.withUnsafeBytes({ receipt.take($0) }) { finish(origin.peer) }
        }
        setting.accept(with: session, onMessage: setting.door == .handler ? handler : nil)
        setting.read(session) { [self, receipt] message in
            if message.payload.withUnsafeBytes({ receipt.take($0) }) { finish(message.peer) }
        }
        benchmark_wait_for_other_side()
    }

    private func finish(_ peer: PeerID) {
        benchmark_tally_report(tally)
        Setting.demand { () throws(NighError) in try session.trySend([1], to: peer) }
    }
}

/// Sends to all peers for as long as the command line says, waiting wherever one has no room.
///
/// `@unchecked Sendable`: sent from one task; the report comes after all was sent.
final class Sending: @unchecked Sendable {
    /// So much is sent before others on the loop have their turn.
    private static let bytesInTurn = 256 << 10

    private let setting: Setting
    private let session: Session
    private let outgoing: Outgoing
    @exclusivity(unchecked) private var supply = benchmark_supply()

    init(_ setting: Setting, _ session: Session) {
        self.setting = setting
        self.session = session
        outgoing = Outgoing(session, size: setting.size)
    }

    func begin(to peers: [PeerID]) {
        var options = setting.options
        benchmark_supply_begin(&supply, &options)
        switch setting.door {
        case .handler, .inbox: Task(executorPreference: setting.loop) { await self.send(to: peers) }
        case .pool: Task { await self.send(to: peers) }
        }
    }

    func report() { benchmark_supply_report(&supply) }

    private func send(to peers: [PeerID]) async {
        do {
            if peers.count == 1 { try await send(to: peers[0]) } else { try await broadcast(to: peers) }
        } catch {
            Setting.fail("\(error)")
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

/// Sends a stream until the receiver has answered its end.
final class StreamSender: Sendable {
    private let setting: Setting
    private let session: Session
    private let sending: Sending
    private let end = End()

    init(_ setting: Setting) {
        self.setting = setting
        session = setting.session(.client)
        sending = Sending(setting, session)
    }

    func connect() {
        setting.call(with: session, onMessage: { [end] _, _ in end.reach() }) { [sending] peer in
            sending.begin(to: [peer])
        }
        end.wait()
        sending.report()
    }
}
