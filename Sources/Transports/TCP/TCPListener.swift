import Glibc
import NighCore
import NighUV

/// The socket that accepts inbound pipes. Loop only.
final class TCPListener {
    /// How many connections may wait to be accepted. The kernel may allow fewer.
    private static let backlog: Int32 = 1024

    private let listener: SocketListener
    /// The port on which it listens.
    let port: UInt16

    /// Listens on `port`, or on a free one if that is 0, on all addresses of the machine or of one interface. It uses
    /// both IP versions if the machine has both.
    static func listen(
        port: UInt16, interface: String?, on loop: UVEventLoop,
        accepted: @escaping (TCPConnection) -> Void, failed: @escaping (SocketFault) -> Void
    ) throws(SocketFault) -> TCPListener {
        func listener(_ host: SocketAddress.Host) throws(SocketFault) -> TCPListener {
            try TCPListener(
                SocketAddress(host, port: port), interface: interface, on: loop,
                accepted: accepted, failed: failed)
        }
        do throws(SocketFault) {
            return try listener(.v6(high: 0, low: 0, scope: 0))
        } catch {
            // A kernel without IPv6 has no such socket, or no such address.
            guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.number) else { throw error }
            return try listener(.v4(0))
        }
    }

    private init(
        _ address: SocketAddress, interface: String?, on loop: UVEventLoop,
        accepted: @escaping (TCPConnection) -> Void, failed: @escaping (SocketFault) -> Void
    ) throws(SocketFault) {
        let descriptor = try TCPSocket.make(family: address.family, interface: interface)
        do throws(SocketFault) {
            // An earlier listener may have left connections, and this socket accepts IPv4 as well.
            TCPSocket.set(SO_REUSEADDR, of: SOL_SOCKET, to: 1, on: descriptor)
            TCPSocket.set(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6), to: 0, on: descriptor)
            let status = address.withSockaddr { bind(descriptor, $0, $1) }
            guard status == 0, Glibc.listen(descriptor, Self.backlog) == 0 else { throw SocketFault(errno) }
            port = TCPSocket.address(getsockname, descriptor)?.port ?? 0
            listener = try SocketListener(
                descriptor: descriptor, on: loop,
                accepted: {
                    guard let connection = try? TCPConnection($0, by: interface, on: loop) else { return }
                    accepted(connection)
                },
                failed: failed)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Stops listening. Accepted pipes stay open.
    func close() { listener.close() }
}
