/// The servers that a client may connect to: those of its settings, and those that the last server has named.
struct ServerList {
    private let configured: [ServerAddress]
    private var discovered: [ServerAddress] = []
    /// The server of the last connection, which is tried last: it has just failed.
    private var last: ServerAddress?

    init(_ configured: [ServerAddress]) { self.configured = configured }

    /// Notes the other servers of the cluster, as `server` named them while it was connected.
    mutating func note(_ texts: [String], from server: ServerAddress) {
        last = server
        let known = texts.compactMap { ServerAddress($0, from: server) }
        // A server that runs alone knows of nobody. The list of an earlier one is still better than none.
        if !known.isEmpty { discovered = Array(known.prefix(NATSOptions.serverLimit)) }
    }

    /// Returns every server once, in random order, and the last one last.
    func order(using generator: inout some RandomNumberGenerator) -> [ServerAddress] {
        var servers = configured
        for server in discovered where !servers.contains(where: server.isSamePlace) { servers.append(server) }
        servers.shuffle(using: &generator)
        if let last, let index = servers.firstIndex(where: last.isSamePlace) {
            servers.append(servers.remove(at: index))
        }
        return servers
    }
}
