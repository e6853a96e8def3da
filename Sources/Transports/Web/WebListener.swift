import CUV
import Glibc
import NighCore
import NighTCP
import NighUV

/// The sockets that accept browsers: one for each address of a local network, with the same port. Loop only.
final class WebListener {
    /// The backlog of `tcp`, too. Beyond it, the system drops a phone's attempt, which then takes a second longer.
    private static let backlog: Int32 = 1024

    private var listeners: [SocketListener] = []
    /// The addresses on which it listens.
    private(set) var addresses: [SocketAddress] = []
    /// The port on which it listens.
    let port: UInt16

    /// Listens on all of `hosts`, at least one. If `port` is 0, the system chooses it for the first.
    init(
        _ hosts: [SocketAddress.Host], port: UInt16, on loop: UVEventLoop,
        accepted: @escaping (Int32) -> Void, failed: @escaping (SocketFault) -> Void
    ) throws(SocketFault) {
        var chosen = port
        for host in hosts {
            let (descriptor, address) = try Self.socket(SocketAddress(host, port: chosen))
            do throws(SocketFault) {
                listeners.append(
                    try SocketListener(descriptor: descriptor, on: loop, accepted: accepted, failed: failed))
            } catch {
                Glibc.close(descriptor)
                throw error
            }
            addresses.append(address)
            chosen = address.port
        }
        self.port = chosen
    }

    /// Makes a socket that listens on `address`. Returns the address with the port that it has.
    private static func socket(_ address: SocketAddress) throws(SocketFault) -> (Int32, SocketAddress) {
        let descriptor = try TCPSocket.make(family: address.family, interface: nil)
        TCPSocket.set(SO_REUSEADDR, of: SOL_SOCKET, to: 1, on: descriptor)
        if address.isIPv6 { TCPSocket.set(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6), to: 1, on: descriptor) }
        let status = address.withSockaddr { bind(descriptor, $0, $1) }
        guard status == 0, Glibc.listen(descriptor, backlog) == 0,
            let bound = TCPSocket.address(getsockname, descriptor)
        else {
            let fault = SocketFault(errno)
            Glibc.close(descriptor)
            throw fault
        }
        return (descriptor, bound)
    }

    /// Stops listening. Accepted connections stay open.
    func close() {
        for listener in listeners { listener.close() }
        listeners = []
    }
}

extension SocketFault {
    /// The error of listening on `port`.
    func listenError(port: UInt16) -> NighError {
        let advice: String? =
            switch number {
            case EADDRINUSE: "port \(port) is in use: choose another with port=, or leave it out"
            case EACCES where port < 1024: "ports below 1024 are for root: choose another"
            default: advice
            }
        return error(.advertising, transport: WebTransport.schemeName, advice: advice)
    }
}
