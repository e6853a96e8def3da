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

    @Test func `A reader reads the path and the headers`() {
        let text =
            "GET /game.js?x=1?y HTTP/1.1\r\nHost: a\r\nAccept:\t text/html \r\naccept: */*\r\nX:\r\n\r\n"
        let headers = ["host": "a", "accept": "text/html,*/*", "x": ""]
        #expect(Self.read(text) == .requests([HTTPRequest(path: "/game.js", headers: headers)]))
        // A request without a body may say so.
        let empty = HTTPRequest(path: "/", headers: ["host": "puma.local:8080", "content-length": "0"])
        #expect(Self.read(Self.request(Self.host, "Content-Length: 0")) == .requests([empty]))
    }

    @Test func `Requests cut at any place are the same requests`() {
        let text = Array("\(Self.request(Self.host))GET /a HTTP/1.1\r\nHost: b\r\nOrigin: c\r\n\r\n".utf8)
        let whole = Outcome.requests([
            Self.simple, HTTPRequest(path: "/a", headers: ["host": "b", "origin": "c"]),
        ])
        for place in 0...text.count {
            #expect(Self.read([Array(text[..<place]), Array(text[place...])]) == whole, "\(place)")
        }
        #expect(Self.read(text.map { [$0] }) == whole)
    }

    @Test(arguments: 0..<50)
    func `A request cut at random places is understood or refused as in one piece`(seed: UInt64) {
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

    /// Each breaks a request: first lines, then header lines of a request that is right without them, then whole texts.
    @Test(
        arguments: [
            "GET  / HTTP/1.1", "GET /  HTTP/1.1", " GET / HTTP/1.1", "GET / HTTP/1.1 ", "GET /a b HTTP/1.1",
            "GET\t/ HTTP/1.1", "GET /\u{1B} HTTP/1.1", "GET /é HTTP/1.1", "\r\nGET / HTTP/1.1",
            "GET http://a/ HTTP/1.1", "GET * HTTP/1.1", "GET / http/1.1", "(GET) / HTTP/1.1",
        ].map { "\($0)\r\nHost: a\r\n\r\n" }
            + [
                " folded", "\tfolded", "Host: a", "hOST: b", ": a", "Ho(st: a", "X : a", "X\nY: b", "X\rY: b",
                "X: \u{0}a", "X: \u{7F}", "X: é", "Origin: a\r\nOrigin: b", "X: y\r",
                "Sec-WebSocket-Key: a\r\nSec-WebSocket-Key: b",
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 8", "Content-Length: 1",
                "Content-Length: 0\r\nContent-Length: 0", "Content-Length: +0", "Transfer-Encoding: chunked",
                "Transfer-Encoding: identity",
            ].map { request(host, $0) }
            + [
                "GET / HTTP/1.1\nHost: a\n\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                "GET / HTTP/1.1\r\nX: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET /\r\n\r\n", "\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n",
            ])
    func `A request that two readers could understand differently is refused`(text: String) {
        #expect(Self.read(text) == .fault(.badRequest, after: []))
    }

    @Test(arguments: ["POST", "HEAD", "OPTIONS", "CONNECT", "get", "PRI"])
    func `Other methods are not allowed`(method: String) {
        let text = "\(method) / HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(Self.read(text) == .fault(.methodNotAllowed, after: []))
        // A valid request before a wrong one is read.
        #expect(Self.read(Self.request(Self.host) + text) == .fault(.methodNotAllowed, after: [Self.simple]))
    }

    @Test(arguments: ["HTTP/1.0", "HTTP/2.0", "HTTP/1.10", "HTTP/", "HTTP/1.1x"])
    func `Other versions are not spoken`(version: String) {
        #expect(Self.read("GET / \(version)\r\nHost: a\r\n\r\n") == .fault(.versionNotSupported, after: []))
    }

    /// A request with this many headers.
    private static func request(headers count: Int) -> String {
        "GET / HTTP/1.1\r\n\(host)\r\n" + (1..<count).map { "x\($0): y\r\n" }.joined() + "\r\n"
    }

    /// A request of this many bytes.
    private static func request(bytes count: Int) -> String {
        request(host, "X: " + String(repeating: "a", count: count - request(host, "X: ").utf8.count))
    }

    @Test(arguments: [
        (request(headers: 64), request(headers: 65), HTTPFault.badRequest),
        (request(bytes: 8_192), request(bytes: 8_193), .headersTooLarge),
    ])
    func `A request has at most 64 headers and 8,192 bytes`(most: String, tooMuch: String, fault: HTTPFault) {
        guard case .requests(let requests) = Self.read(most), requests.count == 1 else {
            return _ = Issue.record("the largest request is refused")
        }
        #expect(Self.read(tooMuch) == .fault(fault, after: []))
        #expect(Self.read(tooMuch.utf8.map { [$0] }) == .fault(fault, after: []))
    }

    @Test(arguments: [1, 100, 5_000])
    func `A request without an end is refused before it takes 16 KiB`(pieceLength: Int) {
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

    @Test func `Pipelined requests are read one by one, and the rest is what follows the last`() throws {
        var reader = HTTPRequestReader()
        let text = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n\u{2}rest"
        try Array(text.utf8).withUnsafeBytes { try reader.append($0) }
        let paths = [try reader.next(), try reader.next(), try reader.next()].map { $0?.path }
        #expect(paths == ["/a", "/b", nil])
        let rests = [reader.takeRest(), reader.takeRest()]
        #expect(rests == [[2] + Array("rest".utf8), []])
    }

    @Test func `Words in a list are found whatever their case and the blanks around them`() {
        let request = HTTPRequest(
            path: "/", headers: ["connection": "keep-alive,\t UPGRADE ,x", "upgrade": "a b"])
        #expect(request.has("upgrade", in: "connection") && request.has("keep-alive", in: "connection"))
        #expect(!request.has("close", in: "connection") && !request.closes)
        #expect(!request.has("a", in: "upgrade") && !request.has("a", in: "host"))
    }
}
