import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Packets between the ports beside TCP connections, over loopback.
@Suite("Ports for packets beside TCP connections") struct UDPPortTests {
    /// A port that remembers its packets. `@unchecked Sendable`: the monitor guards what came; the port is used on its
    /// loop.
    private final class Port: DatagramHandler, @unchecked Sendable {
        let port: UDPPort
        private let neighbour: Neighbour
        private(set) var packets: [[UInt8]] = []
        /// Called with each packet. Set on the loop.
        var received: () -> Void = {}

        /// Opens the port of the pipe that `pipe` picks.
        init(
            _ neighbour: Neighbour, prefix: UInt64?, _ pipe: @escaping @Sendable (Neighbour) -> any Pipe
        ) throws {
            self.neighbour = neighbour
            port = try #require(neighbour.call { UncheckedBox(pipe($0).openDatagrams() as? UDPPort) }.value)
            neighbour.call { _ in self.port.start(handler: self, prefix: prefix) }
        }

        func datagramPort(
            _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer,
            from source: DatagramSource
        ) {
            neighbour.monitor.change { packets.append(Array(packet)) }
            received()
        }

        /// Sends `text` behind `prefix` to a place of the other end of its pipe.
        func send(_ prefix: UInt64, _ text: String, to place: [UInt8] = []) throws {
            let packet = withUnsafeBytes(of: prefix.bigEndian, Array.init) + Array(text.utf8)
            let outcome = neighbour.call { _ in
                self.port.source(of: place).map { place in
                    packet.withUnsafeBytes { self.port.send($0, to: place) }
                }
            }
            #expect(outcome == .sent)
        }

        func close() { neighbour.call { _ in self.port.close() } }

        /// The packets that have come once the last of them ends with `end`, without their first eight bytes.
        func texts(until end: String) throws -> [String] {
            func texts(_ packets: [[UInt8]]) -> [String] {
                packets.map { String(decoding: $0.dropFirst(8), as: UTF8.self) }
            }
            try #require(neighbour.wait { _ in texts(self.packets).last == end })
            return texts(packets)
        }
    }

    private struct UncheckedBox: @unchecked Sendable {
        let value: UDPPort?

        init(_ value: UDPPort?) { self.value = value }
    }

    /// Two connections from `guest` to `host`, and the TCP port of `host`. Another program may have the UDP port with
    /// the number of a TCP port. Then this makes another pair, until the UDP ports are free at both ends.
    private func pair(_ hosts: [String] = ["127.0.0.1", "127.0.0.1"]) throws -> (
        host: Neighbour, guest: Neighbour, number: UInt16
    ) {
        var attempts = 0
        while true {
            let (host, guest) = (Neighbour(), Neighbour())
            host.advertise()
            try #require(host.wait { !$0.listening.isEmpty })
            let number = try portNumber(of: host.listening[0])
            // One after the other, so that both have them in the same order.
            for (index, name) in hosts.enumerated() {
                guest.dial("tcp://\(name):\(number)")
                try #require(guest.wait { $0.dialled.count == index + 1 })
                try #require(host.wait { $0.inbound.count == index + 1 })
            }
            let dialling = try guest.dialled.map { try portNumber(of: $0.localAddress) }
            if ([number] + dialling).allSatisfy(isFree) { return (host, guest, number) }
            host.shutdown()
            guest.shutdown()
            attempts += 1
            try #require(attempts < 20)
        }
    }

    private func portNumber(of address: TransportAddress?) throws -> UInt16 {
        try #require(UInt16(address?.value.split(separator: ":").last ?? ""))
    }

    /// Whether no program has the UDP port with this number.
    private func isFree(_ number: UInt16) -> Bool {
        guard let descriptor = plainSocket(at: number) else { return false }
        close(descriptor)
        return true
    }

    /// A plain UDP socket at a port of all addresses; nil if somebody else has it. Closed by the caller.
    private func plainSocket(at number: UInt16) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let address = SocketAddress(.v4(0), port: number)
        if address.withSockaddr({ bind(descriptor, $0, $1) }) == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    @Test("Accepted connections share the socket at the port of their listener")
    func shared() throws {
        let (host, guest, number) = try pair()
        let first = try Port(host, prefix: 1) { $0.inbound[0] }
        let second = try Port(host, prefix: 2) { $0.inbound[1] }
        let dialled = try Port(guest, prefix: 3) { $0.dialled[0] }
        #expect(first.port.socket === second.port.socket && first.port.socket.number == number)
        #expect(first.port.place.isEmpty && second.port.place.isEmpty && dialled.port.place.isEmpty)
        // A packet belongs to the port with its prefix, wherever it comes from.
        try dialled.send(1, "to the first")
        try dialled.send(2, "to the second")
        #expect(try first.texts(until: "to the first").count == 1)
        #expect(try second.texts(until: "to the second").count == 1)
        try first.send(3, "back")
        #expect(try dialled.texts(until: "back").count == 1)
        // The socket outlives the first of its ports, and not the last one.
        first.close()
        #expect(plainSocket(at: number) == nil)
        try dialled.send(1, "to nobody")
        try dialled.send(2, "again")
        #expect(try second.texts(until: "again").count == 2)
        #expect(first.packets.count == 1)
        host.call { $0.inbound[1].close(.now) }
        var freed: Int32?
        // A program that is being started elsewhere may hold the socket for another moment.
        try #require(
            host.wait { _ in
                freed = plainSocket(at: number)
                return freed != nil
            })
        Glibc.close(try #require(freed))
        host.shutdown()
        guest.shutdown()
    }

    @Test("A packet with an unknown prefix is dropped, also if it comes from the other end of a pipe")
    func unknownPrefix() throws {
        let (host, guest, _) = try pair()
        let port = try Port(host, prefix: 1) { $0.inbound[0] }
        let dialled = try Port(guest, prefix: 2) { $0.dialled[0] }
        try dialled.send(7, "to nobody")
        try dialled.send(1, "known")
        #expect(try port.texts(until: "known") == ["known"])
        host.shutdown()
        guest.shutdown()
    }

    @Test("A port without a prefix gets the packets of the other end of its pipe, and no others")
    func withoutPrefix() throws {
        let (host, guest, _) = try pair()
        let first = try Port(host, prefix: nil) { $0.inbound[0] }
        let second = try Port(host, prefix: nil) { $0.inbound[1] }
        let dialled = try Port(guest, prefix: nil) { $0.dialled[0] }
        let other = try Port(guest, prefix: nil) { $0.dialled[1] }
        try dialled.send(1, "first")
        try other.send(1, "second")
        #expect(try first.texts(until: "first").count == 1)
        #expect(try second.texts(until: "second").count == 1)
        try first.send(5, "back")
        try second.send(5, "back to the other")
        #expect(try dialled.texts(until: "back") == ["back"])
        #expect(try other.texts(until: "back to the other") == ["back to the other"])
        host.shutdown()
        guest.shutdown()
    }

    @Test("A port has a socket of its own while another program has the port of the listener")
    func taken() throws {
        let (host, guest, number) = try pair()
        let taken = try #require(plainSocket(at: number))
        let first = try Port(host, prefix: 1) { $0.inbound[0] }
        let dialled = try Port(guest, prefix: 2) { $0.dialled[0] }
        #expect(first.port.place.count == 2)
        try dialled.send(1, "here", to: first.port.place)
        #expect(try first.texts(until: "here").count == 1)
        try first.send(2, "back", to: dialled.port.place)
        #expect(try dialled.texts(until: "back").count == 1)
        Glibc.close(taken)
        let second = try Port(host, prefix: 3) { $0.inbound[1] }
        #expect(second.port.place.isEmpty && second.port.socket !== first.port.socket)
        host.shutdown()
        guest.shutdown()
    }

    /// The pipe may belong to another session on the same loop. Its unread bytes are read so that it ends without a
    /// reset.
    @Test("Packets that have come together stay whole while the first one's handler ends a pipe")
    func endedPipe() throws {
        let (host, guest, number) = try pair()
        let port = try Port(host, prefix: 1) { $0.inbound[0] }
        let other = PlainSocket(connectedTo: number)
        try #require(host.wait { $0.inbound.count == 3 })
        let sender = try #require(plainSocket(at: 0))
        defer { close(sender) }
        host.call { host in
            port.received = {
                other.write([UInt8](repeating: 0xFF, count: 20_000))
                var unread: Int32 = 1
                while unread > 0 { _ = ioctl(other.descriptor, UInt(TIOCOUTQ), &unread) }
                host.inbound[2].close(.afterWriting)
                (host.inbound[2] as? SocketPipe)?.finish()
                port.received = {}
            }
            for text in ["first", "second"] {
                let packet = withUnsafeBytes(of: UInt64(1).bigEndian, Array.init) + Array(text.utf8)
                let sent = SocketAddress(.v4(0x7F00_0001), port: number).withSockaddr {
                    sendto(sender, packet, packet.count, 0, $0, $1)
                }
                #expect(sent == packet.count)
            }
        }
        #expect(try port.texts(until: "second") == ["first", "second"])
        host.shutdown()
        guest.shutdown()
    }

    @Test("Packets beside a connection go through the interface that is asked for")
    func oneInterface() throws {
        let listener = PlainSocket()
        listener.listen()
        let neighbour = Neighbour()
        for (interface, isThere) in [("lo", true), ("nowhere0", false)] {
            let socket = PlainSocket(connectedTo: listener.port)
            let hasPort = neighbour.call { neighbour in
                let connection = try? TCPConnection(
                    dup(socket.descriptor), by: interface, on: neighbour.loop)
                defer { connection?.pipe.finish() }
                return connection?.pipe.openDatagrams() != nil
            }
            #expect(hasPort == isThere)
        }
        neighbour.shutdown()
    }

    /// The port has no prefix, so it takes packets of the address that it dialled only.
    @Test(
        "Packets leave from the address to which the connection was made",
        arguments: ["127.0.0.5", "[::1]"])
    func localAddress(_ name: String) throws {
        let (host, guest, _) = try pair([name])
        let port = try Port(host, prefix: 1) { $0.inbound[0] }
        let dialled = try Port(guest, prefix: nil) { $0.dialled[0] }
        try dialled.send(1, "out")
        #expect(try port.texts(until: "out").count == 1)
        try port.send(2, "back")
        #expect(try dialled.texts(until: "back").count == 1)
        host.shutdown()
        guest.shutdown()
    }
}
