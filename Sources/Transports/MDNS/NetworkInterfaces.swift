import Glibc
import NighUV

/// A network interface of this host, in its current state.
struct NetworkInterface: Hashable, Sendable {
    let index: Int32
    let name: String
    let isLoopback: Bool
    let addresses: [HostAddress]

    /// The index of `lo`, the only interface on which loopback addresses are trusted.
    static var loopbackIndex: Int32 { Int32(clamping: if_nametoindex("lo")) }

    /// The interfaces that are up and can carry mDNS, which excludes point-to-point ones; nil if the kernel does not
    /// list them, for example because no descriptor is left.
    static func usable(named wanted: String? = nil) -> [NetworkInterface]? {
        var found: [Int32: (name: String, isLoopback: Bool, addresses: [HostAddress])] = [:]
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let flags = Int32(bitPattern: entry.ifa_flags)
            let isLoopback = flags & Int32(IFF_LOOPBACK) != 0
            let name = String(cString: entry.ifa_name)
            guard wanted == nil || wanted == name, flags & Int32(IFF_UP) != 0,
                isLoopback || flags & Int32(IFF_MULTICAST) != 0,
                flags & Int32(IFF_POINTOPOINT) == 0
            else { continue }
            let index = Int32(clamping: if_nametoindex(name))
            guard index > 0 || !SocketFault(errno).isShortage else { return nil }
            guard index > 0, let address = address(entry.ifa_addr, index) else { continue }
            found[index, default: (name, isLoopback, [])].addresses.append(address)
        }
        return found.map {
            NetworkInterface(
                index: $0.key, name: $0.value.name, isLoopback: $0.value.isLoopback,
                addresses: $0.value.addresses)
        }.sorted { $0.index < $1.index }
    }

    private static func address(_ pointer: UnsafeMutablePointer<sockaddr>?, _ index: Int32) -> HostAddress? {
        guard let pointer else { return nil }
        switch Int32(pointer.pointee.sa_family) {
        case AF_INET:
            let bytes = pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin_addr) { Array($0) }
            }
            return HostAddress(bytes: bytes, interface: index)
        case AF_INET6:
            let bytes = pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin6_addr) { Array($0) }
            }
            return HostAddress(bytes: bytes, interface: index)
        default:
            return nil
        }
    }
}
