import NATSServers
import NighBroker
import NighCore
import NighTestKit
import Testing

@testable import NighNATS

@Suite(.serialized) struct PublishingTests {
    @Test(
        "What one client publishes reaches the other in order, with its subject and the subject for answers",
        arguments: NATSServer.Version.allCases)
    func order(_ version: NATSServer.Version) throws {
        let server = try NATSServer(version)
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { for client in [sender, receiver] { client.shutdown() } }
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
    }

    @Test("A client does not receive what it publishes itself")
    func noEcho() throws {
        let server = try NATSServer()
        let client = try Client(of: server)
        defer { client.shutdown() }
        #expect(client.subscribe(to: "nigh.one"))
        client.publish("mine", to: "nigh.one")
        #expect(client.reachServer() && client.reachServer())
        #expect(client.monitor.read { client.packets.isEmpty })
    }

    @Test(
        "Whoever asks under a subject that nobody reads is told so at once",
        arguments: NATSServer.Version.allCases)
    func nobody(_ version: NATSServer.Version) throws {
        let server = try NATSServer(version)
        let client = try Client(of: server)
        defer { client.shutdown() }
        #expect(client.subscribe(to: "nigh.answers.*"))
        client.publish("anybody?", to: "nigh.nobody", answers: "nigh.answers.7")
        #expect(client.wait(within: 5) { client.unanswered == ["nigh.answers.7"] })
    }

    @Test("After an unsubscription nothing more comes under that subject")
    func unsubscription() throws {
        let server = try NATSServer()
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { for client in [sender, receiver] { client.shutdown() } }
        #expect(receiver.subscribe(to: "nigh.one") && receiver.subscribe(to: "nigh.two"))
        receiver.onLoop { receiver.connection.unsubscribe(from: "nigh.one") }
        #expect(receiver.reachServer())
        sender.publish("1", to: "nigh.one")
        sender.publish("2", to: "nigh.two")
        #expect(receiver.wait { !receiver.packets.isEmpty })
        #expect(receiver.monitor.read { receiver.packets.map(\.subject) } == ["nigh.two"])
    }

    @Test("Marks come back in order, each after what was published before it")
    func marks() throws {
        let server = try NATSServer()
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { for client in [sender, receiver] { client.shutdown() } }
        #expect(receiver.subscribe(to: "nigh.one"))
        sender.onLoop {
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

    @Test("The longest packet that the server takes is known, and a longer one is refused with its size")
    func maximumPayload() throws {
        let server = try NATSServer(.debian, "max_payload: 4096")
        let client = try Client(of: server)
        defer { client.shutdown() }
        #expect(client.monitor.read { client.connections.map(\.longestPacket) } == [4_096])
        client.onLoop {
            client.connection.publish([UInt8](repeating: 0, count: 4_097), to: "a", answers: nil)
        }
        #expect(client.wait { !client.failures.isEmpty })
        client.monitor.read {
            #expect(client.failures.map(\.cause) == [.messageTooLarge(size: 4_097, limit: 4_096)])
            #expect(client.failures.first?.advice?.contains("max_payload") == true)
            #expect(client.disconnections.isEmpty)
        }
        let line = client.diagnosis("payload")
        #expect(line?.verdict == .warn && line?.finding == "packets of up to 4096 bytes")
    }

    @Test("A burst of 100,000 packets comes to the loop in order and complete")
    func burst() throws {
        let server = try NATSServer()
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { for client in [sender, receiver] { client.shutdown() } }
        let count = 100_000
        var next: UInt64 = 0
        var faults = 0
        receiver.onPacket = { packet in
            let number = packet.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
            if number != next { faults += 1 }
            next = number + 1
            if next == count { receiver.monitor.change {} }
        }
        #expect(receiver.subscribe(to: "nigh.one"))
        let start = LoopThread.now
        sender.onLoop {
            for number in 0..<UInt64(count) {
                let bytes = withUnsafeBytes(of: number) { Array($0) }
                sender.connection.publish(bytes, to: "nigh.one", answers: nil)
            }
        }
        #expect(receiver.wait(within: 60) { receiver.packetCount == count })
        print("100,000 packets of 8 bytes took \(LoopThread.now - start)")
        #expect(receiver.onLoop { receiver.packetCount } == count)
        #expect(faults == 0)
    }

    @Test("A client that publishes more than the server takes at once learns when there is room again")
    func room() throws {
        let server = try NATSServer()
        let client = try Client(of: server)
        defer { client.shutdown() }
        let limit = client.monitor.read { client.connections.first?.queue ?? 0 }
        #expect(limit > 0)
        let waiting = client.onLoop {
            for _ in 0..<200 {
                client.connection.publish([UInt8](repeating: 0, count: 65_536), to: "a", answers: nil)
            }
            return client.connection.bytesWaiting
        }
        #expect(waiting > limit)
        #expect(client.wait { client.rooms == 1 })
        #expect(client.onLoop { client.connection.bytesWaiting } <= limit / 2)
        #expect(client.reachServer())
        #expect(client.onLoop { client.connection.bytesWaiting } == 0)
    }

    @Test("What is published just before the shutdown still leaves")
    func lastWords() throws {
        let server = try NATSServer()
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { receiver.shutdown() }
        #expect(receiver.subscribe(to: "nigh.bye"))
        sender.onLoop {
            for _ in 0..<20 {
                sender.connection.publish([UInt8](repeating: 0, count: 65_536), to: "nigh.bye", answers: nil)
            }
            sender.connection.shutdown()
        }
        #expect(receiver.wait { receiver.packets.count == 20 })
    }
}
