import NighCore

/// The address of a NATS server: `nats://HOST:PORT`, or `tls://HOST:PORT` if the connection must be encrypted.
package struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    /// The port on which NATS servers listen unless they are told otherwise.
    static let usualPort: UInt16 = 4_222

    /// A name or a number, without the brackets of IPv6.
    package let host: String
    /// The port of the server.
    package let port: UInt16
    /// Whether the connection must be encrypted.
    package let isEncrypted: Bool
    /// The name that the server's certificate must have, if it is not the host.
    var certificateName: String?

    /// Parses an address. The scheme and the port may be left out.
    package init(parsing text: String) throws(NighError) {
        var rest = text[...]
        var isEncrypted = false
        for (scheme, encrypts) in [("nats://", false), ("tls://", true)] where rest.hasPrefix(scheme) {
            rest = rest.dropFirst(scheme.count)
            isEncrypted = encrypts
        }
        guard !rest.contains("@") else {
            throw Self.invalid(
                // The address is not repeated: it has a password in it.
                "server address with credentials in it",
                "others can read command lines: put the credentials into a file, and name it with credentials=FILE"
            )
        }
        guard !rest.contains("/") else { throw Self.invalid("server \"\(text)\"", Self.advice) }
        let (host, port) = try Self.hostAndPort(rest, in: text)
        self.host = host
        self.port = port
        self.isEncrypted = isEncrypted
    }

    /// Parses the address of another server of the cluster, as a server gives it: `HOST:PORT`, with a scheme or
    /// without.
    ///
    /// - Parameter origin: the server that says so. The other one is encrypted if this one is. If it is named by
    ///   number, its certificate must have the same name, since a cluster usually shares one.
    init?(_ text: String, from origin: ServerAddress) {
        let bare = text.split(separator: "/").last ?? ""
        guard let (host, port) = try? Self.hostAndPort(bare, in: text) else { return nil }
        self.host = host
        self.port = port
        isEncrypted = origin.isEncrypted
        certificateName = Self.isNumber(host) ? origin.expectedName : nil
    }

    /// The name or number that the server's certificate must have.
    var expectedName: String { certificateName ?? host }

    /// Whether the host is this machine, so that no network carries the messages.
    var isOfThisMachine: Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || (host.hasPrefix("127.") && Self.isNumber(host))
    }

    /// Whether `other` is at the same host and port.
    func isSamePlace(as other: ServerAddress) -> Bool { host == other.host && port == other.port }

    /// The address as people write it.
    package var description: String {
        let written = host.contains(":") ? "[\(host)]" : host
        return "\(isEncrypted ? "tls" : "nats")://\(written):\(port)"
    }

    private static let advice =
        "write nats://HOST:PORT, or tls://HOST:PORT if the connection must be encrypted"

    private static func isNumber(_ host: String) -> Bool {
        host.contains(":") || host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (48...57).contains($0) }
    }

    private static func hostAndPort(
        _ text: Substring, in whole: String
    ) throws(NighError) -> (String, UInt16) {
        var host = text
        var port: Substring?
        if let end = text.lastIndex(of: "]"), text.first == "[" {
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if !rest.isEmpty {
                guard rest.first == ":" else { throw invalid("server \"\(whole)\"", advice) }
                port = rest.dropFirst()
            }
        } else if let colon = text.firstIndex(of: ":") {
            guard text.lastIndex(of: ":") == colon else {
                throw invalid("server \"\(whole)\"", "an IPv6 address stands in brackets: [\(text)]:4222")
            }
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        }
        let isHost = !host.isEmpty && host.utf8.count <= 253 && host.allSatisfy(Self.isOfHost)
        guard isHost else { throw invalid("server \"\(whole)\"", advice) }
        guard let port else { return (String(host), usualPort) }
        guard let number = UInt16(port), number != 0, port.utf8.allSatisfy({ (48...57).contains($0) }) else {
            throw invalid("port in server \"\(whole)\"", "a port is a number from 1 to 65535")
        }
        return (String(host), number)
    }

    private static func isOfHost(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || "-_.:%".contains(character)
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: NATSOptions.scheme, advice: advice)
    }
}
