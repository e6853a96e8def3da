import CBenchmark
import Glibc
import NighLoop

/// Sessions that connect to a host, and answer each of its messages with one byte.
///
/// `@unchecked Sendable`: touched on the loop only, once it runs.
final class CrowdGuests: @unchecked Sendable {
    /// How many call the host at a time.
    private static let callsAtOnce = 16

    private let loop = UVEventLoop()
    private let sessions: [LowLevelSession]
    private let address: TransportAddress
    private var called = 0

    init(_ count: Int, of port: Int, _ security: SessionSecurity) {
        address = TransportAddress(scheme: "tcp", value: "127.0.0.1:\(port)")
        let loop = loop
        sessions = (0..<count).map { _ in
            LowLevelSession(
                CrowdProgram.configuration(.client, peers: 1, security), identity: .ephemeral(),
                transports: [CrowdProgram.transport()], loop: loop)
        }
    }

    /// Runs until the host closes this program's input.
    func run() {
        loop.execute { [self] in
            for session in sessions {
                session.start(
                    onEvent: { _ in },
                    onMessage: { _, origin in
                        // A host that has gone takes no answer.
                        try? session.trySend([1], to: origin.peer)
                    })
            }
            for _ in 0..<Self.callsAtOnce { callNext() }
        }
        benchmark_wait_for_other_side()
        exit(0)
    }

    private func callNext() {
        guard called < sessions.count else { return }
        called += 1
        call(sessions[called - 1])
    }

    private func call(_ session: LowLevelSession) {
        session.invite(at: address) { [self] result in
            switch result {
            case .success: callNext()
            case .failure: loop.schedule(at: loop.now + .milliseconds(100)) { [self] in call(session) }
            }
        }
    }
}
