import CUV
import Glibc
import NighCore
import NighUV

/// The calls that TCP makes for the system's sockets. The sockets are non-blocking, and closed at exec.
package enum TCPSocket {
    /// Creates a socket of `family`, for a stream unless another `kind` is given, bound to an interface if one is
    /// named.
    package static func make(
        family: Int32, kind: __socket_type = SOCK_STREAM, interface: String?
    ) throws(SocketFault) -> Int32 {
        let flags = SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(family, Int32(kind.rawValue | flags), 0)
        guard descriptor >= 0 else { throw SocketFault(errno) }
        guard let interface else { return descriptor }
        let size = socklen_t(interface.utf8.count)
        guard setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, interface, size) != 0 else {
            return descriptor
        }
        let fault = SocketFault(errno)
        Glibc.close(descriptor)
        throw fault
    }

    /// Sets an option. It can only fail where the option means nothing, so failures are ignored.
    package static func set(_ option: Int32, of level: Int32, to value: Int32, on descriptor: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Returns the addresses of this end of a connected socket, and of the other one.
    package static func ends(of descriptor: Int32) -> (own: SocketAddress?, other: SocketAddress?) {
        (address(getsockname, descriptor), address(getpeername, descriptor))
    }

    /// Returns the address of one end of a socket, for which `query` is `getsockname` or `getpeername`.
    package static func address(
        _ query: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32,
        _ descriptor: Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                query(descriptor, $0, &size) == 0 ? SocketAddress($0) : nil
            }
        }
    }
}
