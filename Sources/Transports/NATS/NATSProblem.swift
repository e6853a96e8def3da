import CNATS
import Glibc
import NighCore

/// Explains failures between this client and its servers to people.
enum NATSProblem {
    private static func error(
        _ cause: NighError.Cause, _ server: ServerAddress? = nil, advice: String?
    ) -> NighError {
        NighError(
            .starting, cause, peer: server?.description, transport: NATSOptions.scheme, advice: advice)
    }

    // MARK: The library

    /// The error for a library that cannot be loaded. `reason` is the message of the loader.
    static func missing(_ reason: String) -> NighError {
        error(
            .unavailable("NATS's library is missing (\(reason))"),
            advice: "`apt-get install libnats3.4`, or libnats3.10 in Debian 13")
    }

    /// The error for a call of the library that fails for a reason that has no sentence here.
    static func library(_ message: String, _ server: ServerAddress?) -> NighError {
        error(.unavailable("libnats reports: \(message)"), server, advice: nil)
    }

    // MARK: Reaching a server

    /// The error for a name that getaddrinfo does not resolve. `status` is its result.
    static func unresolved(_ server: ServerAddress, _ status: Int32) -> NighError {
        error(
            .unavailable("the name \(server.host) has no address (\(String(cString: gai_strerror(status))))"),
            server, advice: "is the name right, and does this machine have a name server?")
    }

    /// The error for a connection that the system could not make, for the reason `number`.
    static func unreachable(_ server: ServerAddress, _ number: Int32) -> NighError {
        switch number {
        case ECONNREFUSED:
            error(
                .refused, server,
                advice: "is nats-server running there, and is \(server.port) its port?")
        case ETIMEDOUT:
            error(
                .timedOut, server,
                advice: "is the server switched on, and does no firewall drop TCP port \(server.port)?")
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL:
            error(.unreachable, server, advice: "does this machine have a network that leads there?")
        default:
            error(.system(number, String(cString: strerror(number))), server, advice: nil)
        }
    }

    /// The error for a server that takes a connection and does not greet.
    static func silentAtFirst(_ server: ServerAddress) -> NighError {
        error(
            .timedOut, server,
            advice: "it does not greet: if it has TLS with handshake_first, turn that off, "
                + "since libnats 3.4 does not know it")
    }

    /// The error for a server that never completes a connection.
    static func endless(_ server: ServerAddress) -> NighError {
        error(
            .timedOut, server,
            advice: "it greets, and then says nothing more: is it overloaded, or the network cut?")
    }

    /// The error for a port behind which something else answers.
    static func notNATS(_ server: ServerAddress) -> NighError {
        error(
            .unavailable("no NATS server answers there"), server,
            advice: "is \(server.port) the port of its clients, and not that of its cluster or its monitor?")
    }

    /// The error for a server that is about to end all its connections.
    static func leaving(_ server: ServerAddress) -> NighError {
        error(
            .unavailable("the server is about to shut down"), server,
            advice: "the connection moves to another server of its cluster, if there is one")
    }

    // MARK: Being admitted

    /// The error for a connection that libnats could not make.
    ///
    /// - Parameters:
    ///   - message: the text of `nats_GetLastError`, which begins with a place in the library's source.
    ///   - path: the file with the credentials that were sent.
    static func refusal(
        _ status: natsStatus, _ message: String, _ server: ServerAddress, credentials path: String?
    ) -> NighError {
        let words = withoutPlace(message)
        switch status {
        case NATS_CONNECTION_AUTH_FAILED: return unauthorized(server, path)
        case NATS_SSL_ERROR: return insecure(words, server)
        default: break
        }
        if let known = knownProblem(words, server, path) { return known }
        switch status {
        case NATS_TIMEOUT: return error(.timedOut, server, advice: "is the server overloaded?")
        case NATS_IO_ERROR, NATS_CONNECTION_CLOSED:
            return error(
                .reset, server, advice: "the server's log tells why: it ended the connection at once")
        default: return library(words, server)
        }
    }

    /// The error for a server that does not require encryption, which libnats 3.4 does not begin then.
    static func unencrypted(_ server: ServerAddress, isOffered: Bool) -> NighError {
        error(
            .unavailable("the server \(isOffered ? "does not require" : "offers no") encryption"), server,
            advice: isOffered
                ? "remove allow_non_tls from its configuration, since libnats 3.4 does not encrypt otherwise"
                : "write nats:// instead of tls://, or give the server a certificate")
    }

    private static func unauthorized(_ server: ServerAddress, _ path: String?) -> NighError {
        guard let path else {
            return error(
                .unavailable("the server wants credentials, and none are given"), server,
                advice: "put them into a file, and name it with credentials=FILE")
        }
        return error(
            .unavailable("the server does not accept these credentials"), server,
            advice: "compare \(ShellWord.quoted(path)) with the server's users")
    }

    private static func insecure(_ words: String, _ server: ServerAddress) -> NighError {
        func mentions(_ part: String) -> Bool { contains(words, part) }
        if mentions("ostname mismatch") || mentions("IP address mismatch") {
            return error(
                .unavailable("the server's certificate is not for \(server.expectedName)"), server,
                advice: "name the server as its certificate does: "
                    + "`openssl s_client -starttls nats` shows it with OpenSSL 3.5")
        }
        if mentions("has expired") || mentions("not yet valid") {
            return error(
                .unavailable("the server's certificate is out of date, or this machine's clock is wrong"),
                server, advice: "compare `date` with the time, then renew the certificate")
        }
        if mentions("self-signed") || mentions("self signed") || mentions("unable to get")
            || mentions("unable to verify")
        {
            return error(
                .unavailable("the server's certificate is from an authority that is not trusted here"),
                server, advice: "name the authority's certificate with ca=FILE")
        }
        if mentions("certificate required") || mentions("bad certificate") {
            return error(
                .unavailable("the server wants a certificate of this client, and there is none"), server,
                advice: "turn off verify in the server's TLS configuration, and use credentials=FILE")
        }
        return error(
            .unavailable("the connection could not be encrypted (\(words))"), server,
            advice: "the server's log tells more")
    }

    /// The error for a file of certificates that cannot be read.
    static func authorities(_ path: String, _ message: String) -> NighError {
        error(
            .invalid("ca file \(path): \(withoutPlace(message))"),
            advice: "name a readable file with certificates in PEM")
    }

    // MARK: Being connected

    /// The error for a connection that ended. `message` is the server's reason, or that of libnats.
    static func ended(
        _ message: String, _ status: natsStatus, _ server: ServerAddress, credentials path: String?
    ) -> NighError {
        // An earlier refusal by the server is not why the connection ended.
        if !contains(message, permissions), let known = knownProblem(message, server, path) { return known }
        return error(
            .linkLost, server,
            advice: "if it happens again, the server's log tells why: "
                + "\"Slow Consumer\" means that this program, or its network, reads too slowly")
    }

    /// The error for a server that the system still reaches and that does not answer.
    static func silent(_ server: ServerAddress, for span: Moment.Span) -> NighError {
        error(
            .silent, server,
            advice: "the server has not answered for \(span): is it overloaded, or the network cut?")
    }

    /// The error for a reason that servers give; nil for any other message.
    private static func knownProblem(
        _ message: String, _ server: ServerAddress, _ path: String?
    ) -> NighError? {
        func mentions(_ part: String) -> Bool { contains(message.lowercased(), part) }
        if mentions("server shutdown") {
            return error(
                .unavailable("the server was shut down"), server,
                advice: "`systemctl start nats-server` there")
        }
        if mentions("slow consumer") {
            return error(
                .unavailable("the server ended the connection, because this program reads too slowly"),
                server,
                advice: "raise max_pending in the server's configuration, or send less at once")
        }
        if mentions("authentication expired") || mentions("authentication revoked") {
            return error(
                .unavailable("the server does not accept these credentials any more"), server,
                advice: "get new ones from whoever runs the server, for \(path ?? "credentials=FILE")")
        }
        if mentions("authorization violation") || mentions("authentication timeout") {
            return unauthorized(server, path)
        }
        if mentions("maximum connections") || mentions("maximum account active connections") {
            return error(
                .unavailable("the server has as many connections as it accepts"), server,
                advice: "raise max_connections in the server's configuration")
        }
        if mentions("maximum payload") {
            return error(
                .unavailable("the server ended the connection, because a packet was too long"), server,
                advice: "give all servers of the cluster the same max_payload")
        }
        if mentions("tls required") {
            return error(
                .unavailable("the server wants an encrypted connection"), server,
                advice: "write tls:// instead of nats://")
        }
        return nil
    }

    // MARK: While a connection goes on

    /// A subject that the server does not let this client use.
    struct Refusal: Hashable, Sendable {
        var subject: String
        var isPublishing: Bool

        /// Reads `Permissions Violation for Publish to "SUBJECT"`. Nil if `message` is something else.
        init?(_ message: String) {
            guard NATSProblem.contains(message, NATSProblem.permissions) else { return nil }
            isPublishing = NATSProblem.contains(message, " for Publish")
            let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
            subject = parts.count > 1 ? String(parts[1]) : message
        }

        /// The refused action: "publish to a.b".
        var what: String { (isPublishing ? "publish to " : "subscribe to ") + subject }

        func error(_ server: ServerAddress) -> NighError {
            NATSProblem.error(
                .unavailable("the server does not let this user \(what)"), server, advice: Self.advice)
        }

        static let advice = "allow it in the permissions of this user, in the server's configuration"
    }

    private static let permissions = "Permissions Violation"

    /// The error for a packet that is longer than the server takes.
    static func tooLong(_ count: Int, _ limit: Int, _ server: ServerAddress) -> NighError {
        error(
            .messageTooLarge(size: count, limit: limit), server,
            advice: "raise max_payload in the server's configuration")
    }

    /// The error for packets that were dropped, since `limit` bytes already wait for the program.
    static func slowReader(limit: Int) -> NighError {
        error(
            .bufferFull(limit: limit),
            advice:
                "received packets were dropped: this program's event loop is too slow for what others send")
    }

    /// The error for packets that were dropped, since `limit` bytes already wait for the server.
    static func slowServer(limit: Int, _ server: ServerAddress) -> NighError {
        error(
            .bufferFull(limit: limit), server,
            advice: "packets were dropped: the server, or the network to it, is too slow for what is sent")
    }

    // MARK: Texts

    /// Returns the message without the place in the library's source: `(conn.c:123): `.
    private static func withoutPlace(_ message: String) -> String {
        guard message.first == "(", let end = message.firstIndex(of: ")") else { return message }
        return String(message[message.index(after: end)...].drop { $0 == ":" || $0 == " " })
    }

    fileprivate static func contains(_ text: String, _ part: String) -> Bool {
        let part = Array(part.utf8)
        return text.utf8.indices.contains { text.utf8[$0...].starts(with: part) }
    }
}
