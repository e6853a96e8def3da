import Foundation
import Testing

/// One end of a TCP connection on this machine, read and written by a test, which waits for up to a minute.
final class LoopbackSocket {
    private let descriptor: Int32

    /// Connects to a port of 127.0.0.1.
    init(to port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
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

    private func setTimeout() {
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    func write(_ text: String) { _ = Foundation.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

    /// Ends writing.
    func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes the socket with a reset.
    func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        // The number stays taken, so that nothing else is closed at the end.
        let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        dup2(other, descriptor)
        close(other)
    }

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

extension BoundSocket {
    /// Listens at the port from now on.
    func listens() throws -> Self {
        try #require(listen(descriptor, 16) == 0)
        return self
    }
}
