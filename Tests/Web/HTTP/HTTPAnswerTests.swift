import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("An answer of the server") struct HTTPAnswerTests {
    private static func lines(_ bytes: [UInt8]) -> [String] {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test func `An upgrade names the protocol and proves as RFC 6455 says that the key was read`() {
        #expect(HTTPAnswer.accepting("x3JJHMbDL1EzLkh9GBhXDw==") == "HSmrc0sMlYUkAGmm5OPpG2HaGWk=")
        #expect(
            Self.lines(HTTPAnswer.upgrade(key: "dGhlIHNhbXBsZSBub25jZQ==")) == [
                "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Protocol: nigh.1", "",
                "",
            ])
    }

    @Test func `A page may load its own files and talk to its server, and nothing else`() {
        let file = WebPage.File(type: "text/css", bytes: ByteSlice([1, 2, 3]))
        let lines = Self.lines(HTTPAnswer.file(file, compressed: false, closes: false).head)
        #expect(lines.first == "HTTP/1.1 200 OK" && lines.suffix(2) == ["", ""])
        for header in [
            "Content-Type: text/css", "Content-Length: 3", "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer", "Cache-Control: no-store",
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
                + "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                + "frame-ancestors 'none'",
        ] {
            #expect(lines.contains(header))
        }
        #expect(!lines.contains("Connection: close"))
        #expect(
            Self.lines(HTTPAnswer.file(file, compressed: false, closes: true).head).contains(
                "Connection: close"))
        // Nothing lets other origins read an answer.
        #expect(!lines.contains { $0.lowercased().hasPrefix("access-control-") })
    }

    @Test func `A refusal says the length of its words, and closes the connection`() {
        for fault in [
            HTTPFault.badRequest, .forbidden, .notFound, .methodNotAllowed, .upgradeRequired,
            .headersTooLarge, .versionNotSupported,
        ] {
            let lines = Self.lines(HTTPAnswer.refusal(fault))
            let words = "\(fault.rawValue) \(fault.reason)"
            #expect(lines.first == "HTTP/1.1 \(words)" && lines.last == "\(words)\n")
            #expect(lines.contains("Connection: close"))
            #expect(lines.contains("Content-Length: \(words.utf8.count + 1)"))
            #expect(lines.contains("Allow: GET") == (fault == .methodNotAllowed))
            #expect(lines.contains("Upgrade: websocket") == (fault == .upgradeRequired))
        }
    }

    @Test func `A file goes compressed to browsers that can read it, if it is shorter`() {
        let long = WebPage.File(type: "text/css", bytes: ByteSlice([UInt8](repeating: 65, count: 10_000)))
        let (head, body) = HTTPAnswer.file(long, compressed: true, closes: false)
        let lines = Self.lines(head)
        #expect(lines.contains("Content-Encoding: gzip") && lines.contains("Content-Length: \(body.count)"))
        #expect(body.count < 100 && body.bytes.prefix(2) == [0x1F, 0x8B])
        #expect(HTTPAnswer.file(long, compressed: false, closes: false).body.count == 10_000)
        let short = WebPage.File(type: "text/css", bytes: ByteSlice([1]))
        #expect(HTTPAnswer.file(short, compressed: true, closes: false).body.bytes == [1])
    }
}
