import Dispatch
import Glibc
import NighTestKit

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// A connection to a server as a browser has it, or somebody who pretends to be one. Its calls block for up to 20 s.
///
/// `@unchecked Sendable`: one thread reads, and one sends.
final class Browser: @unchecked Sendable {
    /// An answer of the server.
    struct Answer {
        var status = 0
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    struct Frame: Equatable {
        let operation: UInt8
        let payload: [UInt8]

        static func close(_ code: WebSocketCode) -> Frame {
            Frame(operation: 8, payload: [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)])
        }
    }

    let descriptor: Int32
    let port: UInt16
    private let server: Server?
    private var unread: [UInt8] = []

    /// Connects from an address of the loopback interface: 127.0.0.1 with a last byte of its own. Keeps `server`.
    init(_ port: UInt16, from source: UInt32 = 1, of server: Server? = nil) {
        self.port = port
        self.server = server
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        var yes: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &yes, socklen_t(MemoryLayout<Int32>.size))
        let own = SocketAddress(.v4(0x7F00_0000 | source), port: 0)
        _ = own.withSockaddr { bind(descriptor, $0, $1) }
        let status = SocketAddress(.v4(0x7F00_0001), port: port).withSockaddr { connect(descriptor, $0, $1) }
        precondition(status == 0, "could not connect: \(errno)")
    }

    deinit { close(descriptor) }

    /// Closes the connection with a reset.
    func reset() {
        var abort = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &abort, socklen_t(MemoryLayout<linger>.size))
        // The other end must see it now, and the number is given back at the end.
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        dup2(nothing, descriptor)
        close(nothing)
    }

    // MARK: Bytes

    /// Writes all of `bytes`, or as much as the server takes.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Int {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        return bytes.count - rest.count
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Runs `send` on a thread of its own while `body` runs on this one, and waits for both.
    func sending<Result>(
        _ send: @escaping @Sendable (Browser) -> Void, during body: () throws -> Result
    ) rethrows -> Result {
        let work = DispatchWorkItem { [self] in send(self) }
        DispatchQueue(label: "browser").async(execute: work)
        defer { work.wait() }
        return try body()
    }

    /// Reads more. Returns false at the end.
    private func readMore() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        unread += bytes.prefix(count)
        return true
    }

    /// Reads exactly so many bytes, or fewer at the end.
    func read(_ count: Int) -> [UInt8] {
        while unread.count < count, readMore() {}
        defer { unread.removeFirst(min(count, unread.count)) }
        return Array(unread.prefix(count))
    }

    /// Waits for the next byte or the end. Returns whether it was the end.
    var isAtEnd: Bool { unread.isEmpty && !readMore() }

    // MARK: HTTP

    var name: String { "127.0.0.1:\(port)" }

    func request(_ path: String, _ headers: [String] = [], host: String? = nil) -> Answer? {
        send(requestText(path, headers, host: host))
        return readAnswer()
    }

    func requestText(_ path: String, _ headers: [String] = [], host: String? = nil) -> String {
        (["GET \(path) HTTP/1.1", "Host: \(host ?? name)"] + headers + ["", ""]).joined(separator: "\r\n")
    }

    func readAnswer() -> Answer? {
        let end = Array("\r\n\r\n".utf8)
        var head: [UInt8] = []
        while head.suffix(4) != end[...] {
            let byte = read(1)
            guard !byte.isEmpty else { return nil }
            head += byte
        }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        var answer = Answer()
        answer.status =
            lines.first.flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Int($0) } ?? 0
        for line in lines.dropFirst() {
            let parts = line.split(separator: ": ", maxSplits: 1)
            answer.headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1]) : ""
        }
        answer.body = read(answer.headers["content-length"].flatMap { Int($0) } ?? 0)
        return answer
    }

    static let upgradeHeaders = [
        "Upgrade: websocket", "Connection: keep-alive, Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: nigh.1",
    ]

    @discardableResult
    func upgrade(host: String? = nil, origin: String? = nil, without left: String? = nil) -> Answer? {
        let headers = Self.upgradeHeaders.filter { line in left.map { !line.hasPrefix($0) } ?? true }
        return request("/nigh", headers + ["Origin: \(origin ?? "http://\(name)")"], host: host)
    }

    // MARK: The WebSocket

    func sendFrame(_ operation: UInt8, _ payload: [UInt8], isLast: Bool = true) {
        send(BrowserFrames.frame(operation, payload, isLast: isLast))
    }

    /// Sends bytes in messages of at most 64 KiB.
    func sendBytes(_ bytes: [UInt8]) {
        for start in stride(from: 0, to: bytes.count, by: 65_536) {
            sendFrame(2, Array(bytes[start..<min(bytes.count, start + 65_536)]))
        }
    }

    func readFrame() -> Frame? {
        let start = read(2)
        guard start.count == 2, start[1] & 0x80 == 0 else { return nil }
        let longer = [126: 2, 127: 8][start[1]] ?? 0
        let count = longer == 0 ? Int(start[1]) : read(longer).reduce(0) { $0 << 8 | Int($1) }
        return Frame(operation: start[0] & 0x0F, payload: read(count))
    }

    /// Reads so many bytes of binary messages.
    func readBytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count, let frame = readFrame(), frame.operation == 2 { bytes += frame.payload }
        return bytes
    }

    /// Whether the server closes the WebSocket with this code, and then the connection.
    func isClosed(with code: WebSocketCode) -> Bool { readFrame() == .close(code) && isAtEnd }

    static func key(_ number: Int) -> [UInt8] {
        [UInt8(number >> 8), UInt8(number & 0xFF)] + [UInt8](repeating: 3, count: 30)
    }

    /// Says who it is. Returns the bytes of the answer.
    func enter(_ key: Int, _ token: [UInt8]? = nil) -> [UInt8] {
        sendFrame(2, [1] + Self.key(key) + (token ?? []))
        return readFrame()?.payload ?? []
    }
}
