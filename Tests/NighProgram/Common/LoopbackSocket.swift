import Foundation
import Testing

/// A TCP socket that has a port of 127.0.0.1, on which it does not listen unless it is told to.
final class BoundSocket {
    let port: UInt16
    let descriptor: Int32

    /// Takes `wanted`, or any port.
    init(port wanted: UInt16 = 0) throws {
        let descriptor = LoopbackSocket.make()
        self.descriptor = descriptor
        var address = LoopbackSocket.address(wanted)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    deinit { close(descriptor) }

    /// Listens at the port from now on.
    func listens() throws -> Self {
        try #require(listen(descriptor, 16) == 0)
        return self
    }

    /// Returns a port that was free a moment ago, for a listener that must keep its address after a restart. The kernel
    /// gives programs none in this range by itself, so that no other test gets it meanwhile.
    static func freePort() throws -> Int {
        let ports = (0..<100).lazy.map { _ in UInt16.random(in: 10_000..<32_000) }
        return Int(try #require(ports.first { (try? BoundSocket(port: $0)) != nil }))
    }
}

/// Runs `body` with a port of this machine at which nobody listens. A socket holds it, so that nobody else gets it
/// meanwhile.
func withClosedPort<Result>(_ body: (UInt16) throws -> Result) throws -> Result {
    let socket = try BoundSocket()
    return try withExtendedLifetime(socket) { try body(socket.port) }
}

/// One end of a TCP connection on this machine, read and written by a test, which waits for up to a minute.
final class LoopbackSocket {
    private let descriptor: Int32

    /// Connects to a port of 127.0.0.1.
    init(to port: UInt16) throws {
        descriptor = Self.make()
        var address = Self.address(port)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        setTimeout()
        try #require(status == 0, "\(errno)")
    }

    /// Accepts a connection to a listening socket.
    init(acceptedBy listener: BoundSocket) throws {
        var one = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&one, 1, 60_000)
        descriptor = accept(listener.descriptor, nil, nil)
        setTimeout()
        try #require(descriptor >= 0, "\(errno)")
    }

    deinit { close(descriptor) }

    fileprivate static func make() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    fileprivate static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        return address
    }

    private func setTimeout() {
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    func write(_ text: String) { _ = Foundation.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

    /// Ends writing.
    func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads up to the end; nil if the connection is reset.
    func readAll() -> String? {
        var all: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { return count == 0 ? String(decoding: all, as: UTF8.self) : nil }
            all += bytes[..<count]
        }
    }

    /// The next `count` characters.
    func read(_ count: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: count)
        let count = recv(descriptor, &bytes, count, Int32(MSG_WAITALL))
        return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    }
}
