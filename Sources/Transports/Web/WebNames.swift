import NighTCP

/// The names by which browsers may reach the server.
///
/// A page of a stranger can let its own name lead to this machine, and then read the answers (DNS rebinding). The
/// browser says which name it was given, so only this machine's own names count.
struct WebNames: Equatable {
    /// The addresses on which the server listens, with their port.
    var addresses: [SocketAddress] = []
    /// The name of this machine on the local network, such as `puma.local`.
    var host: String?

    /// Whether a browser that was given this `Host` header means this server.
    func contains(_ header: String) -> Bool {
        let wanted = header.lowercased()
        return all.contains { $0 == wanted }
    }

    /// Whether a page with this origin is one of this server's. A program that is no browser sends none.
    func permits(origin: String?, at host: String) -> Bool {
        origin.map { $0.lowercased() == "http://\(host.lowercased())" } ?? true
    }

    /// The addresses of the page, without a token: the one with the name first, then those with numbers.
    var urls: [String] {
        let others = addresses.filter { !$0.isLoopback }
        let numbers = (others.isEmpty ? addresses : others).map { "http://\(Self.text($0))/" }
        guard let host, let port = addresses.first?.port else { return numbers }
        return ["http://\(Self.text(host.lowercased(), port))/"] + numbers
    }

    private var all: [String] {
        let names = [host?.lowercased(), "localhost"].compactMap(\.self)
        return addresses.map(Self.text)
            + Set(addresses.map(\.port)).flatMap { port in names.map { Self.text($0, port) } }
    }

    /// A port that browsers leave out.
    private static let usualPort: UInt16 = 80

    private static func text(_ address: SocketAddress) -> String {
        let host = address.hostDescription
        return text(address.isIPv6 ? "[\(host)]" : host, address.port)
    }

    private static func text(_ host: String, _ port: UInt16) -> String {
        port == usualPort ? host : "\(host):\(port)"
    }
}
