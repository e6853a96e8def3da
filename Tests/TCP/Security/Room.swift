import Glibc
import NighCore
import NighMemory
import NighTCP
import NighTestKit
import NighUV

/// Sessions over real TCP on loopback that call each other by address. They are closed with the last reference.
///
/// `@unchecked Sendable`: used only by the thread of the test; monitors guard what sessions report.
final class Room: @unchecked Sendable {
    struct Silence: Error {
        let message: String
    }

    private var probes: [SessionProbe] = []
    private var loops: [UVEventLoop] = []

    deinit {
        for probe in probes { probe.session.loop.call { probe.session.crash() } }
        for loop in loops { loop.shutdown() }
    }

    /// Creates a session that listens and accepts every invitation.
    func join(
        _ name: String, role: SessionRole = .server, identity: Identity = .ephemeral(),
        knowing addresses: [TransportAddress] = [], adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionProbe {
        var configuration = SessionConfiguration(
            service: "tests", name: DisplayName(fitting: name), role: role)
        configuration.timings = .patient
        configuration.timings.firstRetry = .milliseconds(20)
        configuration.timings.longestRetry = .milliseconds(100)
        adjust(&configuration)
        let loop = UVEventLoop()
        loops.append(loop)
        let options = TCPOptions(interface: "lo", discovery: .off, knownAddresses: addresses)
        let transport = FaultyTransport(TCPTransport(options))
        let session = Session(configuration, identity: identity, transports: [transport], loop: loop)
        let probe = SessionProbe(number: probes.count + 1, session: session, faults: transport.control)
        probes.append(probe)
        probe.start(reading: .handler, accepting: true)
        try wait("\(name) listens", probe) { role == .client || !$0.listening.isEmpty }
        return probe
    }

    func wait(_ what: String, _ probe: SessionProbe, _ isTrue: (SessionProbe) -> Bool) throws {
        if !probe.wait(isTrue) { throw Silence(message: "timed out waiting for: \(what)") }
    }

    /// Makes `caller` invite the session that answers at that port.
    func call(
        _ caller: SessionProbe, port: UInt16, context: [UInt8] = []
    ) throws -> Result<PeerID, NighError> {
        let address = TransportAddress(scheme: "tcp", value: "127.0.0.1:\(port)")
        return try waitForReply { completion in
            caller.session.invite(at: address, context: context, completion: completion)
        }
    }

    func invite(_ caller: SessionProbe, _ peer: PeerID) throws -> Result<PeerID, NighError> {
        try waitForReply { caller.session.invite(peer, completion: $0) }
    }

    func statistics(_ probe: SessionProbe) throws -> SessionStatistics {
        try waitForReply { probe.session.statistics(completion: $0) }
    }

    /// Polls a session on its loop until the condition holds.
    func wait(
        _ what: String, inside probe: SessionProbe, _ isTrue: @escaping @Sendable (Session) -> Bool
    ) throws {
        for _ in 0..<4_000 {
            if probe.session.loop.call({ isTrue(probe.session) }) { return }
            usleep(5_000)
        }
        throw Silence(message: "timed out waiting for: \(what)")
    }

    /// Makes both send each other messages, and waits until all have arrived.
    func exchangeMessages(_ one: SessionProbe, _ other: SessionProbe) throws {
        let before = (one.texts.count, other.texts.count)
        for number in 0..<10 {
            try one.session.trySend(Array("from one \(number)".utf8), to: other.id)
            try other.session.trySend(Array("from other \(number)".utf8), to: one.id)
        }
        try wait("messages", one) { $0.texts.count == before.0 + 10 }
        try wait("messages", other) { $0.texts.count == before.1 + 10 }
    }
}

extension SessionProbe {
    /// The port on which the session listens.
    var port: UInt16 { UInt16(listening.first?.value.split(separator: ":").last ?? "") ?? 0 }
}
