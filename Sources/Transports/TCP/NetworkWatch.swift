import CUV
import Glibc
import NighCore
import NighUV

/// The addresses of this machine. The kernel's routing socket reports when they change. Loop only.
package final class NetworkWatch {
    /// One address of an interface.
    package struct InterfaceAddress: Hashable {
        package var interface: String
        package var index: UInt32
        /// The address with port 0, and with the scope if it is link-local.
        package var address: SocketAddress
        package var isLoopback: Bool
        package var isUp: Bool
    }

    /// A change comes as several messages, for example an address after an interface. Those within this time are
    /// handled together.
    private static let quietTime = Moment.Span.milliseconds(50)
    /// How soon the addresses are read again if the kernel did not give them, or if no descriptor was left for the
    /// socket.
    private static let retryTime = Moment.Span.seconds(1)

    /// The addresses that can be used now, in the order of the interfaces.
    package var addresses: [InterfaceAddress] { assigned.filter(\.isUp) }

    /// All addresses of this machine, also those on interfaces without a carrier. A connection outlives a cable that is
    /// unplugged for a while, and ends with the address that it was made from.
    package private(set) var assigned: [InterfaceAddress]

    private let loop: UVEventLoop
    private let read: () -> [InterfaceAddress]?
    private let changed: () -> Void
    private(set) var descriptor: Int32 = -1
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?

    /// Calls `changed` after each change of `assigned`, until `stop`.
    package init(
        on loop: UVEventLoop, read: @escaping () -> [InterfaceAddress]? = readAddresses,
        changed: @escaping () -> Void
    ) {
        self.loop = loop
        self.read = read
        self.changed = changed
        assigned = []
        let isOpen = openSocket()
        let now = read()
        if let now { assigned = now }
        if !isOpen || now == nil { readAgain(after: Self.retryTime) }
    }

    /// Opens the routing socket, unless it is open. Returns false if no descriptor is left, so that it may succeed
    /// later.
    private func openSocket() -> Bool {
        guard descriptor < 0 else { return true }
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        descriptor = socket(AF_NETLINK, type, NETLINK_ROUTE)
        guard descriptor >= 0 else { return !SocketFault(errno).isShortage }
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_nl>.size))
            }
        }
        guard status == 0 else { return true }
        // If the kernel does not report changes (in some sandboxes), the addresses stay as they were at the start.
        watch = try? loop.watch(descriptor, for: .readable) { [weak self] events in
            self?.readMessages()
            // The kernel had more messages than it could keep. That is an error of the socket, and no reason to stop
            // watching.
            if events.isEmpty { self?.watch?.resume() }
        }
        return true
    }

    private func readMessages() {
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 16) { space in
            while recv(descriptor, space.baseAddress, space.count, Int32(MSG_DONTWAIT)) > 0
                || errno == ENOBUFS
            {
                errno = 0
            }
        }
        readAgain(after: Self.quietTime)
    }

    private func readAgain(after pause: Moment.Span) {
        guard timer == nil else { return }
        timer = loop.schedule(at: loop.now + pause) { [weak self] in
            guard let self else { return }
            timer = nil
            let isOpen = openSocket()
            let now = read()
            if !isOpen || now == nil { readAgain(after: Self.retryTime) }
            // The old addresses count until the new ones are known.
            guard let now else { return }
            guard now != assigned else { return }
            assigned = now
            changed()
        }
    }

    /// Stops watching.
    package func stop() {
        watch?.cancel()
        watch = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// Returns the addresses of this machine; nil if the kernel does not give them, for example because no descriptor
    /// is left.
    package static func readAddresses() -> [InterfaceAddress]? {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return nil }
        defer { freeifaddrs(first) }
        var found: [InterfaceAddress] = []
        var entry = first
        while let current = entry {
            entry = current.pointee.ifa_next
            guard let socket = current.pointee.ifa_addr, let address = SocketAddress(socket),
                let name = current.pointee.ifa_name
            else { continue }
            let index = if_nametoindex(name)
            guard index > 0 || !SocketFault(errno).isShortage else { return nil }
            found.append(
                InterfaceAddress(
                    interface: String(cString: name), index: index, address: address,
                    isLoopback: nigh_is_loopback(current) != 0, isUp: nigh_is_up(current) != 0))
        }
        return found
    }
}
