/// A request of a browser: the request line and the headers. Bodies are not accepted.
package struct HTTPRequest: Equatable {
    /// The path, without a query.
    package let path: String
    /// The values of the headers, by name in lower case. Values of one name are joined by commas.
    package let headers: [String: String]

    /// Whether the browser wants to use the connection for nothing else.
    var closes: Bool { has("close", in: "connection") }

    /// Whether the comma-separated list in a header has `word`, in upper or lower case.
    func has(_ word: String, in header: String) -> Bool {
        headers[header]?.split(separator: ",").contains { $0.trimmed.lowercased() == word } ?? false
    }
}

/// Why a request is not answered with a page. The number is the status of HTTP.
package enum HTTPFault: Int, Error {
    case badRequest = 400
    case forbidden = 403
    case notFound = 404
    case methodNotAllowed = 405
    case upgradeRequired = 426
    case headersTooLarge = 431
    case versionNotSupported = 505

    /// The words of the status line.
    var reason: String {
        switch self {
        case .badRequest: "Bad Request"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .upgradeRequired: "Upgrade Required"
        case .headersTooLarge: "Request Header Fields Too Large"
        case .versionNotSupported: "HTTP Version Not Supported"
        }
    }
}

/// Cuts the bytes of a connection into requests. It keeps to the strict form of RFC 9112, and refuses anything
/// ambiguous.
package struct HTTPRequestReader {
    /// The most bytes of a request line and its headers together.
    package static let longestRequest = 8_192
    private static let mostHeaders = 64

    private var bytes: [UInt8] = []
    /// How many bytes at the front hold no end of a request.
    private var searched = 0

    /// Creates a reader at the beginning of a connection.
    package init() {}

    /// Takes the next bytes. Those behind a request are kept, up to the length of one more.
    package mutating func append(_ new: UnsafeRawBufferPointer) throws(HTTPFault) {
        guard bytes.count + new.count <= 2 * Self.longestRequest else { throw .headersTooLarge }
        bytes += new
    }

    /// Returns the next request, or nil if it is not there yet.
    package mutating func next() throws(HTTPFault) -> HTTPRequest? {
        guard let end = endOfHeaders() else {
            guard bytes.count <= Self.longestRequest else { throw .headersTooLarge }
            return nil
        }
        guard end <= Self.longestRequest else { throw .headersTooLarge }
        let request = try Self.request(in: bytes[..<end])
        bytes.removeFirst(end)
        searched = 0
        return request
    }

    /// Takes out the bytes behind the last request.
    mutating func takeRest() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }

    /// The position behind the empty line that ends the headers.
    private mutating func endOfHeaders() -> Int? {
        var index = max(searched - 3, 0)
        while index + 4 <= bytes.count {
            if bytes[index..<index + 4] == [0x0D, 0x0A, 0x0D, 0x0A] { return index + 4 }
            index += 1
        }
        searched = bytes.count
        return nil
    }

    private static func request(in bytes: ArraySlice<UInt8>) throws(HTTPFault) -> HTTPRequest {
        // Only printable characters may come, so nobody sees another end of a line than this reader does.
        guard bytes.allSatisfy({ (0x20...0x7E).contains($0) || [0x09, 0x0A, 0x0D].contains($0) }) else {
            throw .badRequest
        }
        let text = String(decoding: bytes.dropLast(4), as: UTF8.self)
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
        guard let first = lines.popFirst(), !text.utf8.hasBareLineEnd, lines.count <= mostHeaders else {
            throw .badRequest
        }
        let path = try path(of: first)
        var headers: [String: String] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: ":"), colon > line.startIndex,
                line[..<colon].utf8.allSatisfy(\.isTokenCharacter)
            else { throw .badRequest }
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].trimmed
            if let earlier = headers[name] {
                guard !single.contains(name) else { throw .badRequest }
                headers[name] = "\(earlier),\(value)"
            } else {
                headers[name] = String(value)
            }
        }
        guard headers["host"] != nil, headers["transfer-encoding"] == nil,
            headers["content-length"].map({ $0 == "0" }) ?? true
        else { throw .badRequest }
        return HTTPRequest(path: path, headers: headers)
    }

    /// The headers that may come only once, because decisions depend on them.
    private static let single: Set<String> = [
        "host", "origin", "content-length", "sec-websocket-key", "sec-websocket-version",
    ]

    private static func path(of line: Substring) throws(HTTPFault) -> String {
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.allSatisfy(\.isTokenCharacter), !parts[0].isEmpty,
            parts[1].hasPrefix("/"), parts[2].hasPrefix("HTTP/")
        else { throw .badRequest }
        guard parts[2] == "HTTP/1.1" else { throw .versionNotSupported }
        guard parts[0] == "GET" else { throw .methodNotAllowed }
        return String(parts[1].prefix { $0 != "?" })
    }
}

extension StringProtocol {
    /// The text without blanks and tabs at its ends.
    fileprivate var trimmed: Substring {
        var text = Substring(self)
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}

extension Sequence<UInt8> {
    /// Whether there is a carriage return or a line feed that is not part of a pair.
    fileprivate var hasBareLineEnd: Bool {
        var before: UInt8 = 0
        for byte in self {
            if (byte == 0x0A) != (before == 0x0D) { return true }
            before = byte
        }
        return before == 0x0D
    }
}

extension UInt8 {
    /// Whether the character may be in the name of a method or header.
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
