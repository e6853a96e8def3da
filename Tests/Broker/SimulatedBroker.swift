import NighCore
import NighTestKit

@testable import NighBroker

/// A broker in virtual time with any number of clients. It keeps the order of each publisher, loses what is under way
/// when it cuts a client off, and can lose packets one by one.
///
/// `@unchecked Sendable`: everything is on the one loop.
final class SimulatedBroker: @unchecked Sendable {
    let loop: VirtualEventLoop
    /// The limits that the server tells new connections.
    var limits = BrokerLimits(longestPacket: 1 << 20, queue: 256 << 10)
    /// How many bytes leave a client in a second.
    var bytesPerSecond = 100 << 20
    /// One packet of so many is lost, where servers of a cluster have lost each other.
    var lossOneIn = Int.max
    /// Whether each client is at a server of its own, which has lost all others.
    var isPartitioned = false
    /// The time in which a client finds another server.
    var reconnectTime = Moment.Span.milliseconds(100)
    private(set) var clients: [SimulatedBrokerClient] = []
    private(set) var published: [String: Int] = [:]
    private var random: SeededGenerator
    private var subscribers: [String: [SimulatedBrokerClient]] = [:]

    init(on loop: VirtualEventLoop, seed: UInt64 = 1) {
        self.loop = loop
        random = SeededGenerator(seed: seed)
    }

    func makeClient() -> SimulatedBrokerClient {
        let client = SimulatedBrokerClient(of: self)
        clients.append(client)
        return client
    }

    /// Makes a transport on a client of its own.
    func makeTransport() -> BrokerTransport {
        BrokerTransport(
            makeClient(), scheme: "sim", realm: "test", capabilities: Self.capabilities,
            sizes: BrokerPipes.Sizes(), seed: UInt64(clients.count), nonce: "n\(clients.count)")
    }

    private static let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 64 << 10, typicalLatency: .milliseconds(1),
        expectedConnectTime: .milliseconds(5), priority: 500)

    fileprivate func subscribe(_ client: SimulatedBrokerClient, to subject: String) {
        subscribers[Self.key(subject), default: []].append(client)
    }

    fileprivate func unsubscribe(_ client: SimulatedBrokerClient, from subject: String) {
        guard let index = subscribers[Self.key(subject)]?.firstIndex(where: { $0 === client }) else { return }
        subscribers[Self.key(subject)]?.remove(at: index)
    }

    fileprivate func forget(_ client: SimulatedBrokerClient) {
        for subject in subscribers.keys { subscribers[subject]?.removeAll { $0 === client } }
    }

    /// A subscription with a wildcard at its end is found by what stands before it.
    private static func key(_ subject: String) -> String {
        subject.hasSuffix(".*") ? parent(subject) : subject
    }
    private static func parent(_ subject: String) -> String {
        String(subject[...subject.lastIndex(of: ".")!])
    }

    fileprivate func deliver(
        _ packet: [UInt8], under subject: String, answers: String?, from publisher: SimulatedBrokerClient
    ) {
        published[subject.split(separator: ".").last.map(String.init) ?? "", default: 0] += 1
        let all = (subscribers[subject] ?? []) + (subscribers[Self.parent(subject)] ?? [])
        let others = isPartitioned ? [] : all.filter { $0 !== publisher }
        if others.isEmpty, let answers { publisher.foundNobody(answers) }
        for client in others {
            if lossOneIn < .max, random.oneIn(lossOneIn) { continue }
            client.receive(packet, under: subject, answers: answers)
        }
    }
}

/// A client of the simulated broker.
///
/// `@unchecked Sendable`: everything is on the one loop.
final class SimulatedBrokerClient: Broker, @unchecked Sendable {
    private let server: SimulatedBroker
    private weak var events: (any BrokerEvents)?
    /// Counts connections, so that nothing arrives that was on its way on an earlier one.
    private var connection = 0
    private(set) var isConnected = false
    private(set) var bytesWaiting = 0
    private var isHeldUp = false
    private var sentUntil: Moment

    init(of server: SimulatedBroker) {
        self.server = server
        sentUntil = server.loop.now
    }

    func start(on loop: any EventLoop, events: any BrokerEvents) {
        self.events = events
        connect(after: .milliseconds(1))
    }

    /// Breaks the connection. Packets on their way to and from this client are lost.
    func cut(forGood: Bool = false) {
        guard isConnected else { return }
        connection += 1
        isConnected = false
        bytesWaiting = 0
        isHeldUp = false
        sentUntil = server.loop.now
        server.forget(self)
        events?.brokerDisconnected(NighError(.conversing, .reset, transport: "sim"))
        if !forGood { connect(after: server.reconnectTime) }
    }

    /// Connects it later. Without `start` it reports nothing.
    func connect(after pause: Moment.Span) {
        perform(after: pause) { client in
            client.isConnected = true
            client.events?.brokerConnected(client.server.limits)
        }
    }

    /// Runs `work` later, if the connection is the same then.
    private func perform(
        after pause: Moment.Span, _ work: @escaping @Sendable (SimulatedBrokerClient) -> Void
    ) {
        let number = connection
        server.loop.schedule(at: server.loop.now + pause) { [self] in
            if connection == number { work(self) }
        }
    }

    func subscribe(to subject: String) { if isConnected { server.subscribe(self, to: subject) } }
    func unsubscribe(from subject: String) { server.unsubscribe(self, from: subject) }

    func publish(_ packet: [UInt8], to subject: String, answers: String?) {
        guard isConnected else { return }
        bytesWaiting += packet.count
        if bytesWaiting >= server.limits.queue { isHeldUp = true }
        let time = Int64(packet.count) * 1_000_000_000 / Int64(server.bytesPerSecond)
        sentUntil = max(sentUntil, server.loop.now) + Moment.Span(nanoseconds: time)
        perform(after: sentUntil - server.loop.now) { client in
            client.bytesWaiting -= packet.count
            client.server.deliver(packet, under: subject, answers: answers, from: client)
            guard client.isHeldUp, client.bytesWaiting <= client.server.limits.queue / 2 else { return }
            client.isHeldUp = false
            client.events?.brokerHasRoom()
        }
    }

    func mark(_ number: UInt64) {
        guard isConnected else { return }
        perform(after: max(sentUntil, server.loop.now) - server.loop.now + .milliseconds(1)) { client in
            client.events?.brokerHasReceived(mark: number)
        }
    }

    fileprivate func receive(_ packet: [UInt8], under subject: String, answers: String?) {
        perform(after: .milliseconds(1)) { client in
            client.events?.brokerReceived(ByteSlice(packet), under: subject, answers: answers)
        }
    }

    fileprivate func foundNobody(_ answers: String) {
        perform(after: .milliseconds(1)) { client in client.events?.brokerFoundNobody(answeringTo: answers) }
    }

    func diagnose() -> [Diagnosis] { [] }

    /// Published packets still leave: they are on their way already, and only the events are gone.
    func shutdown() {
        events = nil
        server.forget(self)
    }
}
