import CUV
import Glibc
import NighCore
import NighUV

/// A libuv TCP stream, before it is known whether it listens, connects or carries a pipe. Loop only.
class TCPSocket: UVHandle {
    /// libuv's view of it.
    @inline(__always)
    final var stream: UnsafeMutablePointer<uv_stream_t> { memory.assumingMemoryBound(to: uv_stream_t.self) }

    @inline(__always)
    final var tcp: UnsafeMutablePointer<uv_tcp_t> { memory.assumingMemoryBound(to: uv_tcp_t.self) }

    /// A stream without a socket yet: whatever is accepted into it brings one.
    init(on loop: UVEventLoop) throws(UVError) {
        let loop = loop.raw
        try super.init(UV_TCP) { uv_tcp_init(loop, $0.assumingMemoryBound(to: uv_tcp_t.self)) }
    }

    /// A stream with a socket of `family`, bound to an interface if one is named.
    init(family: Int32, interface: String?, on loop: UVEventLoop) throws(UVError) {
        let raw = loop.raw
        try super.init(UV_TCP) {
            uv_tcp_init_ex(raw, $0.assumingMemoryBound(to: uv_tcp_t.self), UInt32(family))
        }
        guard let interface else { return }
        let status = setsockopt(
            descriptor, SOL_SOCKET, SO_BINDTODEVICE, interface, socklen_t(interface.utf8.count))
        guard status == 0 else {
            let error = UVError(code: -errno)
            close()
            throw error
        }
    }

    /// The system's number for it, or -1.
    final var descriptor: Int32 {
        var descriptor: uv_os_fd_t = -1
        return uv_fileno(handle, &descriptor) == 0 ? descriptor : -1
    }

    /// This end's address.
    final var ownAddress: SocketAddress? { Self.address { uv_tcp_getsockname(tcp, $0, $1) } }

    /// The other end's address.
    final var otherAddress: SocketAddress? { Self.address { uv_tcp_getpeername(tcp, $0, $1) } }

    private static func address(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<Int32>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = Int32(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                ask($0, &size) == 0 ? SocketAddress($0) : nil
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
