import NighCore
import NighUV

/// The UDP sockets that the accepted connections of a transport share: one for each TCP port, with the same number.
///
/// A socket is opened with the first port for packets, and closed with the last one. Loop only.
final class UDPSockets {
    private let interface: String?
    private let loop: UVEventLoop
    private var sockets: [UInt16: UDPSocket] = [:]

    init(interface: String?, on loop: UVEventLoop) {
        self.interface = interface
        self.loop = loop
    }

    /// Returns the socket with this number; nil if another program has it.
    func socket(at port: UInt16) -> UDPSocket? {
        if let socket = sockets[port] { return socket }
        let anywhere = [
            SocketAddress(.v6(high: 0, low: 0, scope: 0), port: port), SocketAddress(.v4(0), port: port),
        ]
        // As TCP listens: for both IP versions, and without IPv6 for one.
        for address in anywhere {
            guard let socket = try? UDPSocket(boundTo: address, interface: interface, on: loop) else {
                continue
            }
            socket.didClose = { [weak self] in self?.sockets[port] = nil }
            sockets[port] = socket
            return socket
        }
        return nil
    }
}
