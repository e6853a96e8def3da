import Foundation
import Testing

/// Runs `body` with a port of this machine at which nobody listens. A socket holds it, so that nobody else gets it
/// meanwhile.
func withClosedPort<Result>(_ body: (UInt16) throws -> Result) throws -> Result {
    let socket = try BoundSocket()
    return try withExtendedLifetime(socket) { try body(socket.port) }
}

/// A TCP socket that has a port of 127.0.0.1, on which it does not listen yet.
final class BoundSocket {
    let port: UInt16
    let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        self.descriptor = descriptor
        port = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    deinit { close(descriptor) }
}
