import NighTCP

/// Which addresses of this machine belong to a local network, so that guests are served there.
enum LocalNetwork {
    /// The beginnings of the names of interfaces that lead to virtual machines and tunnels, where no phone is.
    private static let virtual = [
        "docker", "veth", "br-", "virbr", "vnet", "tailscale", "tun", "tap", "wg", "zt",
    ]

    /// The addresses to listen on, of all that this machine has: the private ones, and the loopback address. An
    /// interface that somebody has named is used whatever it is called.
    static func addresses(
        among all: [NetworkWatch.InterfaceAddress], interface: String?
    ) -> [NetworkWatch.InterfaceAddress] {
        all.filter { own in
            if own.isLoopback { return own.address.isLoopback }
            if let interface, own.interface != interface { return false }
            guard own.address.isPrivate else { return false }
            return interface != nil || !virtual.contains { own.interface.hasPrefix($0) }
        }
    }
}

extension SocketAddress {
    /// Whether it is an address that only a local network knows (RFC 1918, RFC 4193).
    var isPrivate: Bool {
        switch host {
        case .v4(let bits): bits >> 24 == 10 || bits >> 20 == 0xAC1 || bits >> 16 == 0xC0A8
        case .v6(let high, _, _): high >> 57 == 0xFC >> 1
        }
    }
}
