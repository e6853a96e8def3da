import NATSServers
import NighBroker
import NighCore
import NighMemory
import NighSystem
import NighTestKit
import Testing

@testable import NighNATS

/// A client under test, on a loop of its own, with what it has reported. It ends with the last reference.
///
/// `@unchecked Sendable`: the monitor guards what is recorded.
final class Client: BrokerEvents, @unchecked Sendable {
    struct Packet: Equatable {
        var bytes: [UInt8]
        var subject: String
        var answers: String?
    }

    let loop = ThreadEventLoop()
    let connection: NATSConnection
    let monitor = Monitor()
    private(set) var connections: [BrokerLimits] = []
    private(set) var disconnections: [NighError] = []
    private(set) var failures: [NighError] = []
    private(set) var packets: [Packet] = []
    private(set) var unanswered: [String] = []
    private(set) var marks: [UInt64] = []
    private(set) var rooms = 0
    private(set) var packetCount = 0
    private(set) var eventCount = 0
    /// The moments of the connections and disconnections.
    private(set) var connectedAt: [Moment] = []
    private(set) var disconnectedAt: [Moment] = []
    /// Called on the loop with every packet, which is then not kept.
    var onPacket: ((ByteSlice) -> Void)?

    init(_ options: NATSOptions) { connection = NATSConnection(options) }

    /// A client of these servers that is connected.
    convenience init(of servers: NATSServer..., credentials: String? = nil) throws {
        try self.init(of: servers, credentials: credentials)
    }

    convenience init(of servers: [NATSServer], credentials: String? = nil) throws {
        let addresses = try servers.map { try ServerAddress(parsing: $0.address) }
        self.init(NATSOptions(servers: addresses, credentials: credentials))
        start()
        guard wait(until: { !connections.isEmpty }) else {
            throw NighError(.starting, .allFailed, attempts: monitor.read { disconnections })
        }
    }

    /// A client that is started, and that nothing waits for.
    convenience init(startedFor address: String, credentials: String? = nil, authorities: String? = nil)
        throws
    {
        let servers = [try ServerAddress(parsing: address)]
        self.init(NATSOptions(servers: servers, credentials: credentials, authorities: authorities))
        start()
    }

    deinit {
        // The last reference may be one of the loop's own, and a loop cannot wait for itself.
        loop.execute { [connection, loop] in
            connection.shutdown()
            loop.shutdown()
        }
    }

    func start() { onLoop { self.connection.start(on: self.loop, events: self) } }

    /// The first report of a client that cannot connect.
    func problem() throws -> NighError {
        #expect(wait { !disconnections.isEmpty })
        return try #require(monitor.read { disconnections.first })
    }

    /// Runs `body` on the loop, and waits for it.
    @discardableResult
    func onLoop<Result>(_ body: @escaping () -> Result) -> Result {
        loop.call(body)
    }

    func publish(_ text: String, to subject: String, answers: String? = nil) {
        onLoop { self.connection.publish(Array(text.utf8), to: subject, answers: answers) }
    }

    /// Publishes so many packets of zeros at once.
    func publish(_ count: Int, of size: Int, to subject: String) {
        let packet = [UInt8](repeating: 0, count: size)
        onLoop {
            for _ in 0..<count { self.connection.publish(packet, to: subject, answers: nil) }
        }
    }

    /// Subscribes, and waits until the server knows.
    func subscribe(to subject: String) -> Bool {
        onLoop { self.connection.subscribe(to: subject) }
        return reachServer()
    }

    /// Waits until the server has everything.
    func reachServer() -> Bool {
        let mark = UInt64.random(in: 1 ... .max)
        onLoop { self.connection.mark(mark) }
        return wait { marks.contains(mark) }
    }

    func diagnosis(_ id: String) -> Diagnosis? {
        onLoop { self.connection.diagnose() }.first { $0.id == id }
    }

    func shutdown() { onLoop { self.connection.shutdown() } }

    func wait(within seconds: Int = 30, until isTrue: () -> Bool) -> Bool {
        monitor.wait(within: .seconds(seconds), until: isTrue)
    }

    // MARK: Events

    private func note(_ body: () -> Void) {
        precondition(loop.isCurrent)
        monitor.change {
            eventCount += 1
            body()
        }
    }

    func brokerConnected(_ limits: BrokerLimits) {
        note {
            connections.append(limits)
            connectedAt.append(LoopThread.now)
        }
    }

    func brokerDisconnected(_ error: NighError) {
        note {
            disconnections.append(error)
            disconnectedAt.append(LoopThread.now)
        }
    }

    func brokerReceived(_ packet: ByteSlice, under subject: String, answers: String?) {
        if let onPacket {
            packetCount += 1
            return onPacket(packet)
        }
        note { packets.append(Packet(bytes: packet.bytes, subject: subject, answers: answers)) }
    }

    func brokerFoundNobody(answeringTo answers: String) { note { unanswered.append(answers) } }
    func brokerHasReceived(mark: UInt64) { note { marks.append(mark) } }
    func brokerHasRoom() { note { rooms += 1 } }
    func brokerFailed(_ error: NighError) { note { failures.append(error) } }
}
