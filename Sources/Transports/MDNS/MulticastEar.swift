import Glibc
import NighUV

/// A socket that says something to all mDNS speakers on one interface, over one IP version, and hears whether it comes back.
///
/// The kernel hands what a host says by multicast to its own sockets too, through the same rules for sending and receiving. A
/// firewall that drops mDNS either way leaves this deaf. The socket is bound to the group's address, not the port alone:
/// so it takes nothing away from whoever else on this host speaks mDNS.
///
/// Confined to the loop.
final class MulticastEar {
    static let port: UInt16 = 5_353
    private static let group4: [UInt8] = [224, 0, 0, 251]
    private static let group6: [UInt8] = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFB]

    let interface: NetworkInterface
    let version: Int
    private(set) var hasHeard = false
    /// The number of the error with which saying something failed last.
    private(set) var failure: Int32?

    private let descriptor: Int32
    private let words: [UInt8]
    private var watch: DescriptorWatch?

    /// Nil when there can be no such socket, which says nothing about multicast.
    init?(
        _ interface: NetworkInterface, version: Int, saying words: [UInt8], on loop: UVEventLoop,
        heard: @escaping () -> Void
    ) {
        self.interface = interface
        self.version = version
        self.words = words
        let family = version == 4 ? AF_INET : AF_INET6
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { return nil }
        guard version == 4 ? join4() : join6(),
            let watch = try? loop.watch(descriptor, for: .readable, { [unowned self] _ in listen(heard) })
        else {
            Glibc.close(descriptor)
            return nil
        }
        self.watch = watch
    }

    deinit { close() }

    func close() {
        guard let watch else { return }
        watch.cancel()
        self.watch = nil
        Glibc.close(descriptor)
    }

    /// Says it once.
    func speak() {
        guard watch != nil else { return }
        let sent = withAddress { address, length in
            words.withUnsafeBytes { sendto(descriptor, $0.baseAddress, $0.count, 0, address, length) }
        }
        failure = sent < 0 ? errno : nil
    }

    private func listen(_ heard: () -> Void) {
        var buffer = [UInt8](repeating: 0, count: 9_000)
        // A bound: a flood must not hold the loop.
        for _ in 0..<64 {
            guard watch != nil else { return }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count >= 0 else { return }
            guard !hasHeard, buffer[..<count].elementsEqual(words) else { continue }
            hasHeard = true
            return heard()
        }
    }

    private func set(_ level: Int32, _ option: Int32, _ value: some Any) -> Bool {
        withUnsafeBytes(of: value) {
            setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) == 0
        }
    }

    private func bindToGroup() -> Bool {
        // Everybody who speaks mDNS on a host shares the port in this way.
        set(SOL_SOCKET, SO_REUSEADDR, Int32(1)) && withAddress { bind(descriptor, $0, $1) } == 0
    }

    private func join4() -> Bool {
        var request = ip_mreqn()
        withUnsafeMutableBytes(of: &request.imr_multiaddr) { $0.copyBytes(from: Self.group4) }
        request.imr_ifindex = interface.index
        let level = Int32(IPPROTO_IP)
        return bindToGroup() && set(level, IP_MULTICAST_ALL, Int32(0))
            && set(level, IP_MULTICAST_TTL, Int32(255))
            && set(level, IP_MULTICAST_IF, request) && set(level, IP_ADD_MEMBERSHIP, request)
    }

    private func join6() -> Bool {
        var request = ipv6_mreq()
        withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { $0.copyBytes(from: Self.group6) }
        request.ipv6mr_interface = UInt32(interface.index)
        let level = Int32(IPPROTO_IPV6)
        return set(level, IPV6_V6ONLY, Int32(1)) && bindToGroup()
            && set(level, IPV6_MULTICAST_HOPS, Int32(255))
            && set(level, IPV6_MULTICAST_IF, interface.index) && set(level, IPV6_JOIN_GROUP, request)
    }

    /// Hands the group's address to a call of the operating system.
    private func withAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        func call<Address>(_ address: Address) -> Result {
            withUnsafePointer(to: address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<Address>.size))
                }
            }
        }
        if version == 4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = Self.port.bigEndian
            withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: Self.group4) }
            return call(address)
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = Self.port.bigEndian
        address.sin6_scope_id = UInt32(interface.index)
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: Self.group6) }
        return call(address)
    }
}
