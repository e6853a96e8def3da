import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests the ports for packets beside TCP connections, over loopback.
struct UDPPortTests {
    /// A port, and the packets that it receives.
    ///
    /// `@unchecked Sendable`: the monitor guards what came; the port is used on its loop.
    private final class Port: DatagramHandler, @unchecked Sendable {
        private let transport: RecordedTransport
        private(set) var port: UDPPort!
        private(set) var packets: [[UInt8]] = []
        /// Called with each packet. Set on the loop.
        var received: () -> Void = {}

        /// Opens the port beside `pipe`.
        init(_ transport: RecordedTransport, _ pipe: PipeRecorder, prefix: UInt64?) throws {
            self.transport = transport
            transport.call { [self] _ in
                port = pipe.pipe.openDatagrams() as? UDPPort
                port?.start(handler: self, prefix: prefix)
            }
            try #require(port != nil)
        }

        func datagramPort(
            _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer,
            from source: DatagramSource
        ) {
            transport.recorder.monitor.change { packets.append(Array(packet)) }
            received()
        }

        /// Sends `text` behind `prefix` to a place of the other end of its pipe.
        func send(_ prefix: UInt64, _ text: String, to place: [UInt8] = []) throws {
            let packet = Self.packet(prefix, text)
            let outcome = transport.call { [self] _ in
                port.source(of: place).map { place in
                    packet.withUnsafeBytes { port.send($0, to: place) }
                }
            }
            #expect(outcome == .sent)
        }

        static func packet(_ prefix: UInt64, _ text: String) -> [UInt8] {
            withUnsafeBytes(of: prefix.bigEndian, Array.init) + Array(text.utf8)
        }

        func close() { transport.call { [self] _ in port.close() } }

        /// Expects that these are the packets once the last of them has come, without their first eight bytes.
        func expect(_ texts: String...) throws {
            func received() -> [String] { packets.map { String(decoding: $0.dropFirst(8), as: UTF8.self) } }
            try #require(transport.wait { _ in received().last == texts.last })
            #expect(received() == texts)
        }
    }

    /// Connections from `guest` to `host`, and the TCP port of `host`.
    private struct Pair {
        let host: RecordedTransport
        let guest: RecordedTransport
        let number: UInt16

        /// Makes a connection to each of these names of this machine. Another program may have the UDP port with the
        /// number of a TCP port. Then this makes other ones, until the UDP ports are free at both ends.
        init(_ names: [String] = ["127.0.0.1", "127.0.0.1"]) throws {
            for _ in 0..<20 {
                let (host, guest) = (RecordedTransport(), RecordedTransport())
                host.advertise()
                let number = try host.port()
                // One after the other, so that both have them in the same order.
                for (index, name) in names.enumerated() {
                    guest.dial("tcp://\(name):\(number)")
                    try #require(guest.wait { $0.pipes.count == index + 1 })
                    try #require(host.wait { $0.pipes.count == index + 1 })
                }
                let dialling = guest.dialled.map {
                    UInt16($0.pipe.localAddress?.value.split(separator: ":").last ?? "") ?? 0
                }
                let isFree = ([number] + dialling).allSatisfy { PlainUDPSocket(at: $0) != nil }
                guard isFree else { continue }
                (self.host, self.guest, self.number) = (host, guest, number)
                return
            }
            throw Room.Silence(message: "the UDP ports are never free")
        }

        func hostPort(_ pipe: Int, prefix: UInt64?) throws -> Port {
            try Port(host, host.inbound[pipe], prefix: prefix)
        }

        func guestPort(_ pipe: Int, prefix: UInt64?) throws -> Port {
            try Port(guest, guest.dialled[pipe], prefix: prefix)
        }
    }

    @Test func `Accepted connections share the socket at the port of their listener`() throws {
        let pair = try Pair()
        let first = try pair.hostPort(0, prefix: 1)
        let second = try pair.hostPort(1, prefix: 2)
        let dialled = try pair.guestPort(0, prefix: 3)
        #expect(first.port.socket === second.port.socket && first.port.socket.number == pair.number)
        for port in [first, second, dialled] { #expect(port.port.place.isEmpty) }
        // A packet belongs to the port with its prefix, wherever it comes from.
        try dialled.send(1, "to the first")
        try dialled.send(2, "to the second")
        try first.expect("to the first")
        try second.expect("to the second")
        try first.send(3, "back")
        try dialled.expect("back")
        // The socket outlives the first of its ports, and not the last one.
        first.close()
        #expect(PlainUDPSocket(at: pair.number) == nil)
        try dialled.send(1, "to nobody")
        try dialled.send(7, "to an unknown prefix")
        try dialled.send(2, "again")
        try second.expect("to the second", "again")
        #expect(first.packets.count == 1)
        pair.host.call { [pipe = pair.host.inbound[1]] _ in pipe.pipe.close(.now) }
        // A program that is being started elsewhere may hold the socket for another moment.
        #expect(pair.host.wait { _ in PlainUDPSocket(at: pair.number) != nil })
    }

    @Test func `A port without a prefix gets the packets of the other end of its pipe, and no others`() throws
    {
        let pair = try Pair()
        let first = try pair.hostPort(0, prefix: nil)
        let second = try pair.hostPort(1, prefix: nil)
        let dialled = try pair.guestPort(0, prefix: nil)
        let other = try pair.guestPort(1, prefix: nil)
        try dialled.send(1, "first")
        try other.send(1, "second")
        try first.expect("first")
        try second.expect("second")
        try first.send(5, "back")
        try second.send(5, "back to the other")
        try dialled.expect("back")
        try other.expect("back to the other")
    }

    @Test func `A port has a socket of its own while another program has the port of the listener`() throws {
        let pair = try Pair()
        var taken = PlainUDPSocket(at: pair.number)
        try #require(taken != nil)
        let first = try pair.hostPort(0, prefix: 1)
        let dialled = try pair.guestPort(0, prefix: 2)
        #expect(first.port.place.count == 2)
        try dialled.send(1, "here", to: first.port.place)
        try first.expect("here")
        try first.send(2, "back", to: dialled.port.place)
        try dialled.expect("back")
        taken = nil
        let second = try pair.hostPort(1, prefix: 3)
        #expect(second.port.place.isEmpty && second.port.socket !== first.port.socket)
    }

    /// The pipe may belong to another session on the same loop. Its unread bytes are read so that it ends without a
    /// reset.
    @Test func `Packets that have come together stay whole while the first one's handler ends a pipe`() throws
    {
        let pair = try Pair()
        let port = try pair.hostPort(0, prefix: 1)
        let other = PlainSocket(connectedTo: pair.number)
        try #require(pair.host.wait { $0.pipes.count == 3 })
        let sender = try #require(PlainUDPSocket(at: 0))
        pair.host.call { [number = pair.number, ended = pair.host.inbound[2]] _ in
            port.received = {
                other.write([UInt8](repeating: 0xFF, count: 20_000))
                var unread: Int32 = 1
                while unread > 0 { _ = ioctl(other.descriptor, UInt(TIOCOUTQ), &unread) }
                ended.pipe.close(.afterWriting)
                (ended.pipe as? SocketPipe)?.finish()
                port.received = {}
            }
            for text in ["first", "second"] { sender.send(Port.packet(1, text), to: number) }
        }
        try port.expect("first", "second")
    }

    @Test func `Packets beside a connection go through the interface that is asked for`() throws {
        let listener = PlainSocket()
        listener.listen()
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        for (interface, isThere) in [("lo", true), ("nowhere0", false)] {
            let socket = PlainSocket(connectedTo: listener.port)
            let hasPort = loop.call {
                let connection = try? TCPConnection(dup(socket.descriptor), by: interface, on: loop)
                defer { connection?.pipe.finish() }
                return connection?.pipe.openDatagrams() != nil
            }
            #expect(hasPort == isThere)
        }
    }

    /// The port has no prefix, so it takes packets of the address that it dialled only.
    @Test(arguments: ["127.0.0.5", "[::1]"])
    func `Packets leave from the address to which the connection was made`(name: String) throws {
        let pair = try Pair([name])
        let port = try pair.hostPort(0, prefix: 1)
        let dialled = try pair.guestPort(0, prefix: nil)
        try dialled.send(1, "out")
        try port.expect("out")
        try port.send(2, "back")
        try dialled.expect("back")
    }
}
