import CBenchmark
import Dispatch
import NighLoop

/// Idle peers: one session with many peers on one side, and as many sessions in one process on the other. When
/// mirrored, the one session calls, so that both ends of a conversation can be measured where there are many.
///
/// `@unchecked Sendable`: touched on the loop only, once it runs.
final class IdlePeers: @unchecked Sendable {
    private let setting: BenchmarkSetting
    private let isMirrored: Bool
    private let end = DispatchSemaphore(value: 0)
    private let payload: UnsafePointer<UInt8>
    private var sessions: [LowLevelSession] = []
    private var residentBefore: UInt64 = 0
    private var ports: [String] = []
    private var received = 0

    init(_ setting: BenchmarkSetting, isMirrored: Bool) {
        self.setting = setting
        self.isMirrored = isMirrored
        payload = UnsafePointer(benchmark_payload(setting.size, 0))
    }

    func run() {
        let serves = setting.options.serves
        let count = serves == isMirrored ? setting.peers : 1
        residentBefore = benchmark_resident()
        sessions = (0..<count).map { _ in setting.session(serves ? .server : .client) }
        if serves {
            for session in sessions { listen(session) }
            benchmark_wait_for_other_side()
        } else {
            setting.loop.execute { [self] in callNext() }
            end.wait()
        }
    }

    // MARK: The sessions that are called

    private func listen(_ session: LowLevelSession) {
        setting.accept(
            with: session,
            onMessage: { [self] bytes, origin in
                bytes.withUnsafeBytes { bytes in
                    BenchmarkSetting.demand { () throws(NighError) in
                        try session.trySend(bytes, to: origin.peer)
                    }
                }
                countMessage()
            },
            listening: { [self] port in
                ports.append(port)
                if ports.count == sessions.count { benchmark_report_port(ports.joined(separator: ",")) }
            })
    }

    // MARK: The sessions that call

    /// Calls the next peer, and sends it a message.
    private func callNext() {
        let index = received
        guard index < setting.peers else { return }
        let session = sessions[isMirrored ? 0 : index]
        let onConnected: @Sendable (PeerID) -> Void = { [self] peer in
            let bytes = UnsafeRawBufferPointer(start: payload, count: setting.size)
            BenchmarkSetting.demand { () throws(NighError) in try session.trySend(bytes, to: peer) }
        }
        if isMirrored, index > 0 {
            session.invite(at: setting.address(index)) { result in
                onConnected(BenchmarkSetting.demand { () throws(NighError) in try result.get() })
            }
        } else {
            setting.call(
                with: session, index: 0,
                onMessage: { [self] _, _ in
                    countMessage()
                    callNext()
                }, connected: onConnected)
        }
    }

    private func countMessage() {
        received += 1
        guard received == setting.peers else { return }
        // The loop must not be blocked: it has acknowledgements to send and to receive.
        setting.loop.schedule(at: setting.loop.now + .milliseconds(500)) { [self] in
            benchmark_report("resident", (benchmark_resident() - residentBefore) / UInt64(setting.peers))
            end.signal()
        }
    }
}
