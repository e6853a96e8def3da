import NATSServers
import NighBroker
import NighCore
import NighSystem
import NighTestKit
import Testing

@testable import NighNATS

/// Two clients of one server.
@Suite(.serialized) struct PublishingTests {
    private let server: NATSServer
    private let sender: Client
    private let receiver: Client

    init() throws {
        server = try NATSServer()
        (sender, receiver) = (try Client(of: server), try Client(of: server))
    }

    @Test(
        "What one client publishes reaches the other in order, with its subject and the subject for answers",
        arguments: NATSServer.Version.allCases)
    func order(_ version: NATSServer.Version) throws {
        let server = try NATSServer(version)
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        #expect(receiver.subscribe(to: "nigh.one") && receiver.subscribe(to: "nigh.all.>"))
        for number in 0..<100 { sender.publish("\(number)", to: "nigh.one", answers: "nigh.answers") }
        sender.publish("wild", to: "nigh.all.of.them")
        sender.publish("", to: "nigh.one")
        #expect(receiver.wait { receiver.packets.count == 102 })
        var expected = (0..<100).map {
            Client.Packet(bytes: Array("\($0)".utf8), subject: "nigh.one", answers: "nigh.answers")
        }
        expected.append(Client.Packet(bytes: [], subject: "nigh.one", answers: nil))
        let wild = Client.Packet(bytes: Array("wild".utf8), subject: "nigh.all.of.them", answers: nil)
        receiver.monitor.read {
            #expect(receiver.packets.filter { $0.subject == "nigh.one" } == expected)
            #expect(receiver.packets.filter { $0.subject != "nigh.one" } == [wild])
        }
        // Whoever asks under a subject that nobody reads is told so at once.
        #expect(sender.subscribe(to: "nigh.answers.*"))
        sender.publish("anybody?", to: "nigh.nobody", answers: "nigh.answers.7")
        #expect(sender.wait(within: 5) { sender.unanswered == ["nigh.answers.7"] })
    }

    @Test func `Of packets that come at once, those of the earliest subscription are delivered first`() {
        let subjects = (0..<20).map { "nigh.\($0)" }
        for subject in subjects { #expect(receiver.subscribe(to: subject)) }
        sender.onLoop { [sender] in
            for subject in subjects { sender.connection.publish([1], to: subject, answers: nil) }
        }
        #expect(receiver.wait { receiver.packets.count == subjects.count })
        #expect(receiver.monitor.read { receiver.packets.map(\.subject) } == subjects)
    }

    @Test
    func `A client does not receive what it publishes itself, or anything under a subject that it has left`()
    {
        #expect(receiver.subscribe(to: "nigh.one") && receiver.subscribe(to: "nigh.two"))
        receiver.publish("mine", to: "nigh.two")
        receiver.onLoop { [receiver] in receiver.connection.unsubscribe(from: "nigh.one") }
        #expect(receiver.reachServer() && receiver.reachServer())
        sender.publish("1", to: "nigh.one")
        sender.publish("2", to: "nigh.two")
        #expect(receiver.wait { !receiver.packets.isEmpty })
        #expect(receiver.monitor.read { receiver.packets.map(\.bytes) } == [Array("2".utf8)])
    }

    @Test func `Marks come back in order, each after what was published before it`() {
        #expect(receiver.subscribe(to: "nigh.one"))
        sender.onLoop { [sender] in
            for number in 0..<50 {
                sender.connection.publish([UInt8](repeating: 1, count: 10_000), to: "nigh.one", answers: nil)
                sender.connection.mark(UInt64(number))
            }
        }
        #expect(sender.wait { sender.marks == Array(0..<50) })
        // The server has everything, so it needs no more of the sender to deliver it.
        sender.shutdown()
        #expect(receiver.wait { receiver.packets.count == 50 })
    }

    @Test
    func `The longest packet that the server takes is known, and a longer one is refused with its size`()
        throws
    {
        let server = try NATSServer(.debian, "max_payload: 4096")
        let client = try Client(of: server)
        #expect(client.monitor.read { client.connections.map(\.longestPacket) } == [4_096])
        client.publish(1, of: 4_097, to: "a")
        #expect(client.wait { !client.failures.isEmpty })
        client.monitor.read {
            #expect(client.failures.map(\.cause) == [.messageTooLarge(size: 4_097, limit: 4_096)])
            #expect(client.failures.first?.advice?.contains("max_payload") == true)
            #expect(client.disconnections.isEmpty)
        }
        let line = client.diagnosis("payload")
        #expect(line?.verdict == .warn && line?.finding == "packets of up to 4096 bytes")
    }

    @Test func `A burst of 100,000 packets comes to the loop in order and complete`() {
        let count = 100_000
        var next: UInt64 = 0
        var faults = 0
        receiver.onPacket = { [unowned receiver] packet in
            let number = packet.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
            if number != next { faults += 1 }
            next = number + 1
            if next == count { receiver.monitor.change {} }
        }
        #expect(receiver.subscribe(to: "nigh.one"))
        sender.onLoop { [sender] in
            for number in 0..<UInt64(count) {
                let bytes = withUnsafeBytes(of: number) { Array($0) }
                sender.connection.publish(bytes, to: "nigh.one", answers: nil)
            }
        }
        #expect(receiver.wait(within: 60) { receiver.packetCount == count })
        let isComplete = receiver.onLoop { [receiver] in receiver.packetCount == count }
        #expect(isComplete && faults == 0)
    }

    @Test func `A client that publishes more than the server takes at once learns when there is room again`()
    {
        let limit = sender.monitor.read { sender.connections.first?.queue ?? 0 }
        #expect(limit > 0)
        let waiting = sender.onLoop { [sender] in
            for _ in 0..<200 {
                sender.connection.publish([UInt8](repeating: 0, count: 65_536), to: "a", answers: nil)
            }
            return sender.connection.bytesWaiting
        }
        #expect(waiting > limit)
        #expect(sender.wait { sender.rooms == 1 })
        let left = { [sender] in sender.onLoop { sender.connection.bytesWaiting } }
        #expect(left() <= limit / 2)
        #expect(sender.reachServer())
        #expect(left() == 0)
    }

    @Test func `What is published just before the shutdown still leaves`() {
        #expect(receiver.subscribe(to: "nigh.bye"))
        sender.onLoop { [sender] in
            for _ in 0..<20 {
                sender.connection.publish([UInt8](repeating: 0, count: 65_536), to: "nigh.bye", answers: nil)
            }
            sender.connection.shutdown()
        }
        #expect(receiver.wait { receiver.packets.count == 20 })
    }

    /// `Benchmarks` compares a client with bare libnats.
    @Test
    func `320 MiB in packets of 64 KiB arrive within 20 s, and half of the round trips take at most 20 ms`() {
        // In parts that stay below what makes a server slow down a sender: two are on their way.
        let (rounds, inARound) = (20, 250)
        receiver.onPacket = { [unowned receiver, sender] _ in
            guard receiver.packetCount % inARound == 0 else { return }
            if receiver.packetCount == rounds * inARound { return receiver.monitor.change {} }
            guard receiver.packetCount <= (rounds - 2) * inARound else { return }
            sender.loop.execute { sender.publish(inARound, of: 65_536, to: "nigh.bulk") }
        }
        #expect(receiver.subscribe(to: "nigh.bulk"))
        sender.publish(2 * inARound, of: 65_536, to: "nigh.bulk")
        #expect(receiver.wait(within: 20) { receiver.packetCount == rounds * inARound })

        receiver.onPacket = { [unowned receiver] packet in
            receiver.connection.publish(packet.bytes, to: "nigh.back", answers: nil)
        }
        #expect(receiver.subscribe(to: "nigh.there") && sender.subscribe(to: "nigh.back"))
        var spans: [Moment.Span] = []
        var start = LoopThread.now
        sender.onPacket = { [unowned sender] packet in
            spans.append(LoopThread.now - start)
            if spans.count == 2_000 { return sender.monitor.change {} }
            start = LoopThread.now
            sender.connection.publish(packet.bytes, to: "nigh.there", answers: nil)
        }
        sender.publish("ping", to: "nigh.there")
        #expect(sender.wait(within: 60) { sender.packetCount == 2_000 })
        spans.sort()
        #expect(spans[1_000] < .milliseconds(20))
    }
}
