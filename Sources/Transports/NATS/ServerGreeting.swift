import Glibc
import NighCore
import NighSystem

/// The line with which a NATS server greets every connection, before anything is encrypted: `INFO {…}`.
///
/// It is read over a connection of its own before libnats makes one, because libnats reports neither the server's
/// version nor why a server could not be reached.
struct ServerGreeting: Hashable, Sendable {
    /// The version of the server, such as `2.9.10`.
    var version: String
    /// Whether the server wants an encrypted connection.
    var requiresTLS: Bool
    /// Whether the server offers an encrypted connection.
    var offersTLS: Bool
    /// Whether the server is about to end all its connections.
    var isLeaving: Bool

    /// Greetings are longer the more servers a cluster has, some 25 bytes for each.
    private static let longest = 64 << 10

    /// Parses the greeting. Nil if it is none.
    init?(_ line: some Collection<UInt8>) {
        let text = String(decoding: line, as: UTF8.self)
        guard text.hasPrefix("INFO ") else { return nil }
        let fields = Self.fields(of: text.dropFirst(5))
        // The ports for the other servers of a cluster greet as well, but number no clients.
        guard let version = fields["version"], fields["client_id"] != nil else { return nil }
        self.version = String(version.prefix(32))
        requiresTLS = fields["tls_required"] == "true"
        offersTLS = requiresTLS || fields["tls_available"] == "true"
        isLeaving = fields["ldm"] == "true"
    }

    /// Returns the strings, numbers and truth values of a JSON object. Its arrays and objects are skipped.
    private static func fields(of json: Substring) -> [Substring: Substring] {
        var fields: [Substring: Substring] = [:]
        var depth = 0
        var key: Substring?
        var index = json.startIndex
        func isPlain(_ character: Character) -> Bool {
            !",:{}[]\"".contains(character) && !character.isWhitespace
        }
        while index < json.endIndex {
            var token: Substring?
            switch json[index] {
            case "{", "[": depth += 1
            case "}", "]": depth -= 1
            case ",": key = nil
            case "\"":
                let start = json.index(after: index)
                var end = start
                while end < json.endIndex, json[end] != "\"" {
                    if json[end] == "\\" { end = json.index(after: end) }
                    if end < json.endIndex { end = json.index(after: end) }
                }
                guard end < json.endIndex else { return [:] }
                token = json[start..<end]
                index = end
            case let character where isPlain(character):
                let end = json[index...].firstIndex { !isPlain($0) } ?? json.endIndex
                token = json[index..<end]
                index = json.index(before: end)
            default: break
            }
            if let token, depth == 1 {
                if let name = key { fields[name] = token } else { key = token }
            }
            if index < json.endIndex { index = json.index(after: index) }
        }
        return fields
    }

    // MARK: Reading it

    /// Connects to `server` and reads its greeting, within `timeout`. Blocks.
    static func read(from server: ServerAddress, within timeout: Moment.Span) throws(NighError)
        -> ServerGreeting
    {
        let deadline = LoopThread.now + timeout
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(server.host, String(server.port), &hints, &list)
        guard status == 0, let list else { throw NATSProblem.unresolved(server, status) }
        defer { freeaddrinfo(list) }
        var failure = NATSProblem.unreachable(server, EHOSTUNREACH)
        var next: UnsafeMutablePointer<addrinfo>? = list
        while let address = next {
            do throws(NighError) {
                return try read(at: address.pointee, of: server, until: deadline)
            } catch {
                failure = error
            }
            next = address.pointee.ai_next
        }
        throw failure
    }

    private static func read(
        at address: addrinfo, of server: ServerAddress, until deadline: Moment
    ) throws(NighError) -> ServerGreeting {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = socket(address.ai_family, kind, 0)
        guard socket >= 0 else { throw NATSProblem.unreachable(server, errno) }
        defer { close(socket) }
        if connect(socket, address.ai_addr, address.ai_addrlen) != 0 {
            guard errno == EINPROGRESS else { throw NATSProblem.unreachable(server, errno) }
            guard isReady(socket, POLLOUT, deadline) else { throw NATSProblem.unreachable(server, ETIMEDOUT) }
            var number: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &size)
            guard number == 0 else { throw NATSProblem.unreachable(server, number) }
        }
        var bytes = [UInt8](repeating: 0, count: longest)
        var count = 0
        while true {
            guard isReady(socket, POLLIN, deadline) else { throw NATSProblem.silentAtFirst(server) }
            let got = bytes.withUnsafeMutableBytes {
                recv(socket, $0.baseAddress?.advanced(by: count), longest - count, 0)
            }
            if got < 0, errno == EINTR || errno == EAGAIN { continue }
            guard got > 0 else { throw NATSProblem.notNATS(server) }
            let received = bytes[count..<count + got]
            count += got
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                guard let greeting = ServerGreeting(bytes[..<end]) else { throw NATSProblem.notNATS(server) }
                return greeting
            }
            guard count < longest else { throw NATSProblem.notNATS(server) }
        }
    }

    private static func isReady(_ socket: Int32, _ event: Int32, _ deadline: Moment) -> Bool {
        while true {
            let left = (deadline - LoopThread.now).nanoseconds / 1_000_000
            guard left > 0 else { return false }
            var wanted = pollfd(fd: socket, events: Int16(event), revents: 0)
            if poll(&wanted, 1, Int32(clamping: left)) > 0 { return true }
        }
    }
}
