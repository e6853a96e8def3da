import COpenSSL
import NighCore

/// An answer of the server, with the headers that restrict a page to its purpose.
enum HTTPAnswer {
    /// The beginning of an answer with a file of the page, and the bytes of the file in the form that the browser can
    /// read.
    static func file(
        _ file: WebPage.File, compressed: Bool, closes: Bool
    ) -> (head: [UInt8], body: ByteSlice) {
        let short = compressed ? file.compressed : nil
        let body = short ?? file.bytes
        let head = bytes(
            "200 OK",
            ["Content-Type: \(file.type)", "Content-Length: \(body.count)"]
                + (short == nil ? [] : ["Content-Encoding: gzip"]) + page
                + (closes ? ["Connection: close"] : []))
        return (head, body)
    }

    /// A refusal, behind which the connection is closed.
    static func refusal(_ fault: HTTPFault) -> [UInt8] {
        let words = "\(fault.rawValue) \(fault.reason)"
        var headers = [
            "Content-Type: text/plain; charset=utf-8", "Content-Length: \(words.utf8.count + 1)",
            "Connection: close",
        ]
        if fault == .methodNotAllowed { headers.append("Allow: GET") }
        if fault == .upgradeRequired { headers.append("Upgrade: websocket") }
        return bytes(words, headers + page) + Array("\(words)\n".utf8)
    }

    /// The answer that makes the connection a WebSocket.
    static func upgrade(key: String) -> [UInt8] {
        bytes(
            "101 Switching Protocols",
            [
                "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(accepting(key))",
                "Sec-WebSocket-Protocol: \(WebTransport.subprotocol)",
            ])
    }

    /// The page may load its own files and talk to this server, and nothing else. Nobody keeps it or shows it inside
    /// another page, and it does not say where it comes from.
    private static let page = [
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
            + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
        "Cross-Origin-Resource-Policy: same-origin",
    ]

    private static func bytes(_ status: String, _ headers: [String]) -> [UInt8] {
        Array((["HTTP/1.1 \(status)"] + headers + ["", ""]).joined(separator: "\r\n").utf8)
    }

    /// The proof that the server has read the key (RFC 6455, 4.2.2).
    static func accepting(_ key: String) -> String {
        let input = Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
        let hash = [UInt8](unsafeUninitializedCapacity: 20) { hash, count in
            let done = EVP_Digest(input, input.count, hash.baseAddress, nil, EVP_sha1(), nil)
            precondition(done == 1, "libcrypto has no SHA-1")
            count = 20
        }
        // 20 bytes become 28 characters and a zero.
        let text = [UInt8](unsafeUninitializedCapacity: 29) { text, count in
            count = Int(EVP_EncodeBlock(text.baseAddress, hash, 20))
        }
        return String(decoding: text, as: UTF8.self)
    }
}
