import Glibc
import NighUV

/// A UDP socket that sends to all mDNS programs on one interface, over one IP version.
///
/// Confined to the loop.
final class MulticastSocket {
    /// The messages that the socket receives.
    enum Role {
        /// Everything that is sent to the group on that interface, including by this host. The socket is bound to the
        /// group's address, and not only to the port, so it takes nothing away from other mDNS programs on this host.
        case listening
        /// Answers to this socket only, which RFC 6762 calls legacy unicast.
        case querying
    }

    static let port: UInt16 = 5_353
    private static let group4: [UInt8] = [224, 0, 0, 251]
    private static let group6: [UInt8] = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFB]

    let interface: NetworkInterface
    let version: Int
    /// The `errno` of the last attempt to send; nil if it succeeded.
    private(set) var failure: Int32?

    private let descriptor: Int32
    private var watch: DescriptorWatch?

    /// Nil if such a socket cannot be made, which says nothing about multicast.
    init?(
        _ role: Role, on interface: NetworkInterface, version: Int, loop: UVEventLoop,
        received: @escaping ([UInt8]) -> Void
    ) {
        self.interface = interface
        self.version = version
        let family = version == 4 ? AF_INET : AF_INET6
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { return nil }
        guard version == 4 ? prepare4(role) : prepare6(role),
            let watch = try? loop.watch(descriptor, for: .readable, { [unowned self] _ in receive(received) })
        else {
            Glibc.close(descriptor)
            return nil
        }
        self.watch = watch
    }

    /// Makes a socket for each interface and IP version that can have one.
    static func all(
        _ role: Role, interface wanted: String?, loop: UVEventLoop,
        received: @escaping (_ index: Int, _ bytes: [UInt8]) -> Void
    ) -> [MulticastSocket] {
        let interfaces = NetworkInterface.usable(named: wanted) ?? []
        let outer = interfaces.filter { !$0.isLoopback }
        var sockets: [MulticastSocket] = []
        for interface in (outer.isEmpty ? interfaces : outer).prefix(maximumInterfaces) {
            for (version, length) in [(4, 4), (6, 16)]
            where interface.addresses.contains(where: { $0.bytes.count == length }) {
                let index = sockets.count
                let socket = MulticastSocket(role, on: interface, version: version, loop: loop) {
                    received(index, $0)
                }
                if let socket { sockets.append(socket) }
            }
        }
        return sockets
    }

    /// The most interfaces that are used.
    static let maximumInterfaces = 16

    deinit { close() }

    func close() {
        guard let watch else { return }
        watch.cancel()
        self.watch = nil
        Glibc.close(descriptor)
    }

    func send(_ bytes: [UInt8]) {
        guard watch != nil else { return }
        let sent = withAddress { address, length in
            bytes.withUnsafeBytes { sendto(descriptor, $0.baseAddress, $0.count, 0, address, length) }
        }
        failure = sent < 0 ? errno : nil
    }

    private func receive(_ received: ([UInt8]) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 9_000)
        // Bounded, so that a flood does not hold the loop.
        for _ in 0..<64 {
            guard watch != nil else { return }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count >= 0 else { return }
            received(Array(buffer[..<count]))
        }
    }

    private func set(_ level: Int32, _ option: Int32, _ value: some Any) -> Bool {
        withUnsafeBytes(of: value) {
            setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) == 0
        }
    }

    private func bindToGroup() -> Bool {
        // All mDNS programs on a host share the port in this way.
        set(SOL_SOCKET, SO_REUSEADDR, Int32(1)) && withAddress { bind(descriptor, $0, $1) } == 0
    }

    private func prepare4(_ role: Role) -> Bool {
        var request = ip_mreqn()
        withUnsafeMutableBytes(of: &request.imr_multiaddr) { $0.copyBytes(from: Self.group4) }
        request.imr_ifindex = interface.index
        let level = Int32(IPPROTO_IP)
        let canSend = set(level, IP_MULTICAST_TTL, Int32(255)) && set(level, IP_MULTICAST_IF, request)
        guard canSend, role == .listening else { return canSend }
        return bindToGroup() && set(level, IP_MULTICAST_ALL, Int32(0))
            && set(level, IP_ADD_MEMBERSHIP, request)
    }

    private func prepare6(_ role: Role) -> Bool {
        var request = ipv6_mreq()
        withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { $0.copyBytes(from: Self.group6) }
        request.ipv6mr_interface = UInt32(interface.index)
        let level = Int32(IPPROTO_IPV6)
        let canSend =
            set(level, IPV6_V6ONLY, Int32(1)) && set(level, IPV6_MULTICAST_HOPS, Int32(255))
            && set(level, IPV6_MULTICAST_IF, interface.index)
        guard canSend, role == .listening else { return canSend }
        return bindToGroup() && set(level, IPV6_JOIN_GROUP, request)
    }

    /// Passes the group's address to a system call.
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
