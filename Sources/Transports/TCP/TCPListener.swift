import CUV
import NighCore
import NighUV

/// The socket on which pipes come in. Confined to its loop; hence `@unchecked Sendable`.
final class TCPListener: TCPSocket, @unchecked Sendable {
    /// So many may wait to be accepted; the kernel may allow fewer.
    private static let backlog: Int32 = 1024
    /// So many are taken in before those that are there are read. Else a thousand that come at once would all be open before
    /// any of them could say who it is.
    private static let share = 16

    private let loop: UVEventLoop
    private let accepted: (TCPPipe) -> Void
    private let failed: (UVError) -> Void
    private var taken = 0

    /// Listens on `port`, or on a free one where that is 0, on all addresses of the machine or of one interface; with both
    /// families where the machine has both.
    static func listen(
        port: UInt16, interface: String?, on loop: UVEventLoop,
        accepted: @escaping (TCPPipe) -> Void, failed: @escaping (UVError) -> Void
    ) throws(UVError) -> TCPListener {
        func listener(_ host: SocketAddress.Host) throws(UVError) -> TCPListener {
            try TCPListener(
                SocketAddress(host, port: port), interface: interface, on: loop,
                accepted: accepted, failed: failed)
        }
        do throws(UVError) {
            return try listener(.v6(high: 0, low: 0, scope: 0))
        } catch {
            // Without IPv6 in the kernel there is no such socket, or no such address.
            guard [UV_EAFNOSUPPORT, UV_EADDRNOTAVAIL].contains(where: { $0.rawValue == error.code }) else {
                throw error
            }
            return try listener(.v4(0))
        }
    }

    private init(
        _ address: SocketAddress, interface: String?, on loop: UVEventLoop,
        accepted: @escaping (TCPPipe) -> Void, failed: @escaping (UVError) -> Void
    ) throws(UVError) {
        self.loop = loop
        self.accepted = accepted
        self.failed = failed
        try super.init(family: address.family, interface: interface, on: loop)
        var status = address.withSockaddr { socket, _ in uv_tcp_bind(tcp, socket, 0) }
        if status == 0 {
            status = uv_listen(stream, Self.backlog) { stream, status in
                guard let data = stream?.pointee.data else { return }
                UVHandle.object(of: data, as: TCPListener.self).connectionCame(status)
            }
        }
        guard status == 0 else {
            close()
            throw UVError(code: status)
        }
    }

    /// Where it listens.
    var port: UInt16 { ownAddress?.port ?? 0 }

    private func connectionCame(_ status: Int32) {
        guard !isClosed else { return }
        guard status == 0 else { return failed(UVError(code: status)) }
        taken += 1
        guard taken > Self.share else { return takeIn() }
        // libuv asks for no more until this one is taken.
        loop.execute { [weak self] in
            self?.taken = 1
            self?.takeIn()
        }
    }

    private func takeIn() {
        guard !isClosed else { return }
        do throws(UVError) {
            let pipe = try TCPPipe(acceptedOn: loop)
            let status = uv_accept(stream, pipe.stream)
            guard status == 0 else {
                pipe.finish()
                throw UVError(code: status)
            }
            pipe.becomeOpen()
            accepted(pipe)
        } catch {
            failed(error)
        }
    }
}
