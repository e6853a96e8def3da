import CUV
import Glibc
import NighCore
import NighUV

/// A pipe over TCP, and the addresses of its two ends.
struct TCPConnection {
    let pipe: SocketPipe
    let own: SocketAddress?
    let other: SocketAddress?
    private let interface: String?

    /// Takes over a connected socket, and closes it on failure. Small messages are sent without delay. Packets go
    /// through the same interface as the connection, if one is named.
    init(_ descriptor: Int32, by interface: String?, on loop: UVEventLoop) throws(NighError) {
        let (own, other) = TCPSocket.ends(of: descriptor)
        try self.init(descriptor, from: own, to: other, by: interface, on: loop)
    }

    /// Takes a connected socket whose ends are known.
    init(
        _ descriptor: Int32, from own: SocketAddress?, to other: SocketAddress?, by interface: String?,
        on loop: UVEventLoop
    ) throws(NighError) {
        TCPSocket.set(TCP_NODELAY, of: Int32(IPPROTO_TCP), to: 1, on: descriptor)
        self.own = own
        self.other = other
        self.interface = interface
        do throws(NighError) {
            pipe = try SocketPipe(
                descriptor: descriptor, scheme: TCPTransport.schemeName,
                localAddress: own?.transportAddress, remoteAddress: other?.transportAddress, on: loop)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        if let own, let other {
            pipe.makeDatagramPort = { UDPPort.alone(from: own, to: other, by: interface, on: loop) }
        }
    }

    /// Has the packets of an accepted connection go through the socket that all connections to its port share. If there
    /// can be none, they go through a socket of their own.
    func sharePackets(through sockets: UDPSockets, on loop: UVEventLoop) {
        guard let own, let other else { return }
        pipe.makeDatagramPort = { [weak sockets, interface] in
            guard let shared = sockets?.socket(at: own.port), shared.isIPv6 || !own.isIPv6 else {
                return UDPPort.alone(from: own, to: other, by: interface, on: loop)
            }
            return UDPPort(shared, from: own, to: other)
        }
    }
}

extension SocketAddress {
    /// The address in the form that sessions use.
    var transportAddress: TransportAddress {
        TransportAddress(scheme: TCPTransport.schemeName, value: description)
    }
}
