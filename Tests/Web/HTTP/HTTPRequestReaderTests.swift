import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("A reader of HTTP requests") struct HTTPRequestReaderTests {
    private enum Outcome: Equatable {
        case requests([HTTPRequest])
        case fault(HTTPFault, after: [HTTPRequest])
    }

    /// Reads `pieces` one after the other, as a connection does.
    private static func read(_ pieces: [[UInt8]]) -> Outcome {
        var reader = HTTPRequestReader()
        var requests: [HTTPRequest] = []
        do throws(HTTPFault) {
            for piece in pieces {
                try ByteSlice(piece).withUnsafeBytes { bytes throws(HTTPFault) in try reader.append(bytes) }
                while let request = try reader.next() { requests.append(request) }
            }
        } catch {
            return .fault(error, after: requests)
        }
        return .requests(requests)
    }

    private static func read(_ text: String) -> Outcome { read([Array(text.utf8)]) }

    private static func request(_ headers: String...) -> String {
        (["GET / HTTP/1.1"] + headers + ["", ""]).joined(separator: "\r\n")
    }

    private static let host = "Host: puma.local:8080"
    private static let simple = HTTPRequest(path: "/", headers: ["host": "puma.local:8080"])

    @Test("it reads the path and the headers")
    func reads() {
        let text =
            "GET /game.js?x=1?y HTTP/1.1\r\nHost: a\r\nAccept:\t text/html \r\naccept: */*\r\nX:\r\n\r\n"
        #expect(
            Self.read(text)
                == .requests([
                    HTTPRequest(
                        path: "/game.js", headers: ["host": "a", "accept": "text/html,*/*", "x": ""])
                ]))
    }

    @Test("requests cut at any place are the same requests")
    func anyCut() {
        let text = Array("\(Self.request(Self.host))GET /a HTTP/1.1\r\nHost: b\r\nOrigin: c\r\n\r\n".utf8)
        let whole = Self.read([text])
        #expect(
            whole
                == .requests([Self.simple, HTTPRequest(path: "/a", headers: ["host": "b", "origin": "c"])]))
        for place in 0...text.count {
            #expect(Self.read([Array(text[..<place]), Array(text[place...])]) == whole, "\(place)")
        }
        #expect(Self.read(text.map { [$0] }) == whole)
    }

    @Test(
        "a request cut at random places is understood or refused as it would be in one piece",
        arguments: 0..<50)
    func randomCuts(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let parts = [
            "GET / HTTP/1.1\r\n", "Host: a\r\n", "X: y\r\n", "\r\n", "\r", "\n", " ", "\0", "é", ":",
        ]
        let text = (0..<12).map { _ in parts[Int(random.next() % UInt64(parts.count))] }.joined()
        let bytes = Array((Self.request(Self.host) + text).utf8)
        var (pieces, rest) = ([[UInt8]](), bytes[...])
        while !rest.isEmpty {
            let count = Int.random(in: 1...min(9, rest.count), using: &random)
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        #expect(Self.read(pieces) == Self.read([bytes]))
    }

    @Test(
        "what two readers could understand differently is refused",
        arguments: [
            "GET / HTTP/1.1\nHost: a\n\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\tfolded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nX: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\r\nHo(st: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Key: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 8\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \u{0}a\r\n\r\n", "GET / HTTP/1.1\r\nHost: \u{7F}\r\n\r\n",
            "GET /\u{1B} HTTP/1.1\r\nHost: a\r\n\r\n", "GET /é HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: é\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / http/1.1\r\nHost: a\r\n\r\n", "GET /\r\n\r\n", "\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n",
            "(GET) / HTTP/1.1\r\nHost: a\r\n\r\n",
        ])
    func refuses(text: String) {
        #expect(Self.read(text) == .fault(.badRequest, after: []))
    }

    @Test("a request without a body may say so")
    func noBody() {
        let expected = HTTPRequest(path: "/", headers: ["host": "puma.local:8080", "content-length": "0"])
        #expect(Self.read(Self.request(Self.host, "Content-Length: 0")) == .requests([expected]))
    }

    @Test("other methods are not allowed", arguments: ["POST", "HEAD", "OPTIONS", "CONNECT", "get", "PRI"])
    func methods(method: String) {
        #expect(Self.read("\(method) / HTTP/1.1\r\nHost: a\r\n\r\n") == .fault(.methodNotAllowed, after: []))
    }

    @Test(
        "other versions are not spoken",
        arguments: ["HTTP/1.0", "HTTP/2.0", "HTTP/1.10", "HTTP/", "HTTP/1.1x"])
    func versions(version: String) {
        #expect(Self.read("GET / \(version)\r\nHost: a\r\n\r\n") == .fault(.versionNotSupported, after: []))
    }

    @Test("a request has at most 64 headers")
    func headerCount() {
        func request(_ count: Int) -> String {
            Self.request(Self.host).replacing("\r\n\r\n", with: "\r\n")
                + (1..<count).map { "x\($0): y\r\n" }.joined() + "\r\n"
        }
        guard case .requests(let requests) = Self.read(request(64)) else {
            Issue.record("64 headers are refused")
            return
        }
        #expect(requests.first?.headers.count == 64)
        #expect(Self.read(request(65)) == .fault(.badRequest, after: []))
    }

    /// A request of so many bytes.
    private static func request(ofLength length: Int) -> String {
        let short = request(host, "X: ")
        return request(host, "X: " + String(repeating: "a", count: length - short.utf8.count))
    }

    @Test("a request has at most 8,192 bytes")
    func longest() {
        guard case .requests(let requests) = Self.read(Self.request(ofLength: 8_192)) else {
            Issue.record("8,192 bytes are refused")
            return
        }
        #expect(requests.count == 1)
        #expect(Self.read(Self.request(ofLength: 8_193)) == .fault(.headersTooLarge, after: []))
        let pieces = Self.request(ofLength: 8_193).utf8.map { [$0] }
        #expect(Self.read(pieces) == .fault(.headersTooLarge, after: []))
    }

    @Test("what has no end is refused before it takes 16 KiB", arguments: [1, 100, 5_000])
    func bounded(pieceLength: Int) {
        var reader = HTTPRequestReader()
        let piece = [UInt8](repeating: UInt8(ascii: "a"), count: pieceLength)
        var taken = 0
        #expect(throws: HTTPFault.headersTooLarge) {
            while taken < 1 << 20 {
                try piece.withUnsafeBytes { try reader.append($0) }
                taken += pieceLength
                _ = try reader.next()
            }
        }
        #expect(taken <= 2 * HTTPRequestReader.longestRequest)
    }

    @Test("pipelined requests are read one after the other, and the rest is what follows the last")
    func pipelined() throws {
        var reader = HTTPRequestReader()
        let text = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n\u{2}rest"
        try Array(text.utf8).withUnsafeBytes { try reader.append($0) }
        let paths = [try reader.next(), try reader.next(), try reader.next()].map { $0?.path }
        #expect(paths == ["/a", "/b", nil])
        let rest = reader.takeRest()
        let more = reader.takeRest()
        #expect(rest == [2] + Array("rest".utf8) && more == [])
    }

    @Test("a valid request before a wrong one is read")
    func validBeforeWrong() {
        let text = Self.request(Self.host) + "POST / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(Self.read(text) == .fault(.methodNotAllowed, after: [Self.simple]))
    }

    @Test("words in a list are found whatever their case and the blanks around them")
    func lists() {
        let request = HTTPRequest(
            path: "/", headers: ["connection": "keep-alive,\t UPGRADE ,x", "upgrade": "a b"])
        #expect(request.has("upgrade", in: "connection") && request.has("keep-alive", in: "connection"))
        #expect(!request.has("close", in: "connection") && !request.closes)
        #expect(!request.has("a", in: "upgrade") && !request.has("a", in: "host"))
    }
}
