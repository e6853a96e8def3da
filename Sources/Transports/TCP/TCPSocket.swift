import CUV
import Glibc
import NighCore
import NighUV

/// A libuv TCP stream, before it is known whether it connects or carries a pipe. Loop only.
class TCPSocket: UVHandle {
    /// libuv's view of it.
    @inline(__always)
    final var stream: UnsafeMutablePointer<uv_stream_t> { memory.assumingMemoryBound(to: uv_stream_t.self) }

    @inline(__always)
    final var tcp: UnsafeMutablePointer<uv_tcp_t> { memory.assumingMemoryBound(to: uv_tcp_t.self) }

    /// A stream over a socket, which is closed where that fails.
    init(_ descriptor: Int32, on loop: UVEventLoop) throws(UVError) {
        let loop = loop.raw
        try super.init(UV_TCP) { uv_tcp_init(loop, $0.assumingMemoryBound(to: uv_tcp_t.self)) }
        let status = uv_tcp_open(tcp, descriptor)
        guard status != 0 else { return }
        close()
        Glibc.close(descriptor)
        throw UVError(code: status)
    }

    /// A new socket of `family`, bound to an interface if one is named.
    static func make(family: Int32, interface: String?) throws(UVError) -> Int32 {
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(family, Int32(kind), 0)
        guard descriptor >= 0 else { throw UVError(code: -errno) }
        guard let interface else { return descriptor }
        let size = socklen_t(interface.utf8.count)
        guard setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, interface, size) != 0 else {
            return descriptor
        }
        let error = UVError(code: -errno)
        Glibc.close(descriptor)
        throw error
    }

    /// Sets an option that can only fail where it means nothing.
    static func set(_ option: Int32, of level: Int32, to value: Int32, on descriptor: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The system's number for it, or -1.
    final var descriptor: Int32 {
        var descriptor: uv_os_fd_t = -1
        return uv_fileno(handle, &descriptor) == 0 ? descriptor : -1
    }

    /// This end's address.
    final var ownAddress: SocketAddress? { Self.address(getsockname, descriptor) }

    /// The other end's address.
    final var otherAddress: SocketAddress? { Self.address(getpeername, descriptor) }

    /// What the system says of one end of a socket.
    static func address(
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32,
        _ descriptor: Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                ask(descriptor, $0, &size) == 0 ? SocketAddress($0) : nil
            }
        }
    }
}

extension SocketAddress {
    /// As the session knows addresses.
    var transportAddress: TransportAddress {
        TransportAddress(scheme: TCPTransport.schemeName, value: description)
    }
}
