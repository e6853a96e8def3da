import NighCore
import NighWeb

/// The requests of browsers. However they are cut they are the same, and no accepted one means anything else to a
/// reader that looks for lines alone.
enum HTTPTarget {
    private static let valid = [
        "GET / HTTP/1.1\r\nHost: puma.local:8080\r\nAccept: */*\r\n\r\n",
        "GET /style.css?v=2 HTTP/1.1\r\nHost: [fd00::5]\r\nConnection: keep-alive\r\nX:\r\n\r\n",
        "GET /nigh HTTP/1.1\r\nHost: 192.168.1.5:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Origin: http://192.168.1.5:8080\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: nigh.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    ]
    private static let pieces = [
        "\r\n", "\n", "\r", "\r\n\r\n", ":", " ", "\t", "\0", "\u{7F}", "é", "Host: b\r\n", "host:c\r\n",
        "\r\n x",
        "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n", "GET ", "POST ", "HTTP/1.0", "HTTP/1.1",
        "//", "?",
        "Origin: null\r\n", "X-\u{1}: y\r\n", ",", String(repeating: "a", count: 4_096),
    ]

    private struct Outcome: Equatable {
        var requests: [HTTPRequest] = []
        var fault: HTTPFault?
    }

    /// Returns how many requests were accepted.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        var text = ""
        for _ in 0...mutator.number(below: 3) { text += mutator.pick(valid) }
        if !mutator.oneIn(8) { for _ in 0...mutator.number(below: 4) { mutator.change(&text, with: pieces) } }
        // The reader bounds the bytes that come at once, so a longer input would be refused in one piece only.
        let bytes = Array(text.utf8.prefix(2 * HTTPRequestReader.longestRequest))
        let whole = read([ByteSlice(bytes)])
        let cut = read(mutator.cut(bytes))
        if whole != cut { throw Finding("\(whole) in one piece, \(cut) in several") }
        try compare(whole, with: bytes)
        return whole.requests.count
    }

    private static func read(_ slices: [ByteSlice]) -> Outcome {
        var reader = HTTPRequestReader()
        var outcome = Outcome()
        do throws(HTTPFault) {
            for slice in slices {
                try slice.withUnsafeBytes { bytes throws(HTTPFault) in try reader.append(bytes) }
                while let request = try reader.next() { outcome.requests.append(request) }
            }
        } catch {
            outcome.fault = error
        }
        return outcome
    }

    /// Compares the accepted requests with what lines that end in a line feed, with or without a carriage return, say.
    private static func compare(_ outcome: Outcome, with bytes: [UInt8]) throws {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }[...]
        for request in outcome.requests {
            guard let first = lines.popFirst(), first.hasPrefix("GET \(request.path)"),
                request.path.hasPrefix("/"),
                first.hasSuffix(" HTTP/1.1")
            else { throw Finding("the request line is read as \(request.path)") }
            var hosts = 0
            while let line = lines.popFirst(), !line.isEmpty {
                let name = line.prefix { $0 != ":" }.lowercased()
                if line.first == " " || line.first == "\t" { throw Finding("a folded line is accepted") }
                guard let value = request.headers[name] else { throw Finding("the header \(name) is lost") }
                guard ["host", "origin"].contains(name) else { continue }
                if name == "host" { hosts += 1 }
                let said = line.drop { $0 != ":" }.dropFirst().filter { $0 != " " && $0 != "\t" }
                if said != value.filter({ $0 != " " && $0 != "\t" }) {
                    throw Finding("\(name) is read as \(value)")
                }
            }
            if hosts != 1 { throw Finding("a request with \(hosts) hosts is accepted") }
            if request.headers["transfer-encoding"] != nil { throw Finding("a body is accepted") }
        }
    }
}
