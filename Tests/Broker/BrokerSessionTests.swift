import NighCore
import NighTestKit
import Testing

@testable import NighBroker

/// Sessions over the simulated broker: what they see when it loses packets and connections.
@Suite struct BrokerSessionTests {
    private let loop = VirtualEventLoop(workLimit: 20_000_000)

    /// A session that accepts everybody, and what it has seen.
    private final class Member: @unchecked Sendable {  // Confined to the one loop.
        let session: LowLevelSession
        let client: SimulatedBrokerClient
        var states: [PeerState] = []
        var numbers: [UInt32] = []

        init(_ name: String, number: Int, on broker: SimulatedBroker) {
            let transport = broker.makeTransport()
            client = broker.clients.last!
            let configuration = SessionConfiguration(
                service: "broker-test", name: DisplayName(fitting: name), role: .peer)
            session = LowLevelSession(
                configuration, identity: .ephemeral(seed: UInt64(number)), transports: [transport],
                loop: broker.loop)
            session.start(
                onEvent: { [self] event in
                    if case .invited(let invitation) = event { invitation.accept() }
                    if let peer = event.stateChange?.peer { states.append(peer.state) }
                },
                onMessage: { [self] bytes, _ in
                    bytes.withUnsafeBytes { numbers.append($0.loadUnaligned(as: UInt32.self)) }
                })
        }
    }

    private func wait(within time: Duration = .seconds(5), _ condition: @escaping () -> Bool) throws {
        #expect(try loop.run(until: condition, within: time))
    }

    private func connectedPair(on broker: SimulatedBroker) throws -> (Member, Member) {
        let puma = Member("Puma", number: 1, on: broker)
        let lynx = Member("Lynx", number: 2, on: broker)
        try wait { puma.states.last == .available && lynx.states.last == .available }
        puma.session.invite(lynx.session.id) { _ in }
        try wait { puma.states.last == .connected && lynx.states.last == .connected }
        return (puma, lynx)
    }

    private func send(_ numbers: Range<UInt32>, from sender: Member, to receiver: Member) throws {
        for number in numbers {
            var number = number
            let bytes = withUnsafeBytes(of: &number) { Array($0) + [UInt8](repeating: 7, count: 3_000) }
            while (try? sender.session.trySend(bytes, to: receiver.session.id)) == nil {
                try loop.run(for: .milliseconds(10))
            }
        }
    }

    @Test func `nothing is lost or doubled when the servers of both sides die twenty times in mid-stream`()
        throws
    {
        let broker = SimulatedBroker(on: loop)
        let (puma, lynx) = try connectedPair(on: broker)
        var longest = Duration.zero
        for round in 0..<20 as Range<UInt32> {
            try send(round * 200..<round * 200 + 200, from: puma, to: lynx)
            try loop.run(for: .milliseconds(3))
            (round % 2 == 0 ? puma : lynx).client.cut()
            let before = loop.now
            let last = round * 200 + 199
            try wait(within: .seconds(20)) { lynx.numbers.last == last }
            longest = max(longest, (loop.now - before).duration)
        }
        #expect(lynx.numbers == Array(0..<4_000))
        #expect(!puma.states.contains(.disconnected) && !lynx.states.contains(.disconnected))
        #expect(longest < .seconds(3), "the longest silence was \(longest)")
    }

    @Test func `packets that a cluster loses end links and lose no message`() throws {
        let broker = SimulatedBroker(on: loop)
        let (puma, lynx) = try connectedPair(on: broker)
        broker.lossOneIn = 400
        try send(0..<3_000, from: puma, to: lynx)
        broker.lossOneIn = .max
        try wait(within: .seconds(120)) { lynx.numbers.count >= 3_000 }
        #expect(lynx.numbers == Array(0..<3_000))
        #expect(puma.states.contains(.reconnecting))
    }

    @Test func `a conversation waits half a minute for a broker that is down, and then goes on`() throws {
        let broker = SimulatedBroker(on: loop)
        let (puma, lynx) = try connectedPair(on: broker)
        broker.reconnectTime = .seconds(25)
        puma.client.cut()
        lynx.client.cut()
        try send(0..<1, from: puma, to: lynx)
        try wait(within: .seconds(29)) { lynx.numbers == [0] }
        #expect(!puma.states.contains(.disconnected))
    }

    /// In time both give up their link, and find nobody when they ask for another one.
    @Test func `a conversation goes on soon after the servers of a cluster have found each other again`()
        throws
    {
        let broker = SimulatedBroker(on: loop)
        let (puma, lynx) = try connectedPair(on: broker)
        for span in [Duration.seconds(20), .seconds(35)] {
            broker.isPartitioned = true
            let number = UInt32(lynx.numbers.count)
            try send(number..<number + 1, from: puma, to: lynx)
            try loop.run(for: span)
            broker.isPartitioned = false
            try wait { lynx.numbers.last == number }
        }
        #expect(lynx.numbers == [0, 1])
        #expect(!puma.states.contains(.disconnected) && puma.states.contains(.reconnecting))
    }

    @Test
    func `a peer that closes its session is gone at once, and one whose connection dies after its time`()
        throws
    {
        let broker = SimulatedBroker(on: loop)
        let puma = Member("Puma", number: 1, on: broker)
        let lynx = Member("Lynx", number: 2, on: broker)
        let lion = Member("Lion", number: 3, on: broker)
        try wait { puma.states.count { $0 == .available } == 2 }
        lynx.session.close {}
        try wait(within: .seconds(1)) { puma.states.count { $0 == .unavailable } == 1 }
        lion.client.cut(forGood: true)
        try wait(within: .seconds(120)) { puma.states.count { $0 == .unavailable } == 2 }
    }
}
