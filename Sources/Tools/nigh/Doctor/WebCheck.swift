import Glibc
import NighCore
import NighTCP

/// Checks the page for guests from outside: whether it comes from each address, and whether a phone on the same Wi-Fi
/// can be expected to get it.
enum WebCheck {
    /// How long the page may take.
    private static let patience = timeval(tv_sec: 2, tv_usec: 0)
    private static let mostAddresses = 8

    /// Fetches the page at each address, as a browser would.
    static func reach(_ addresses: [TransportAddress]) async -> Finding {
        let (id, subject) = ("web.reach", "the page, fetched from here")
        let some = addresses.prefix(mostAddresses).map(\.value)
        let failed = await Task.detached { some.filter { !hasPage(at: $0) } }.value
        guard !failed.isEmpty else {
            return Finding(id, subject, .pass, "comes from each of \(some.count) addresses")
        }
        return Finding(
            id, subject, failed.count == some.count ? .fail : .warn,
            "does not come from \(failed.joined(separator: ", "))",
            advice: "allow its TCP port in this machine's firewall")
    }

    private static func hasPage(at address: String) -> Bool {
        guard let colon = address.lastIndex(of: ":"),
            let port = UInt16(address[address.index(after: colon)...]),
            let target = SocketAddress(
                numeric: String(address[..<colon].trimming { "[]".contains($0) }), port: port)
        else { return false }
        let descriptor = socket(target.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var patience = patience
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        guard target.withSockaddr({ connect(descriptor, $0, $1) }) == 0 else { return false }
        let request = Array("GET / HTTP/1.1\r\nHost: \(address)\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            return false
        }
        let wanted = Array("HTTP/1.1 200 ".utf8)
        var answer = [UInt8](repeating: 0, count: wanted.count)
        return recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL)) == wanted.count
            && answer == wanted
    }

    /// Looks for signs that an access point keeps its clients apart: this machine is on Wi-Fi, and has seen nobody
    /// there but the router. Nil if it is not on Wi-Fi.
    static func isolation() -> Finding? {
        isolation(
            neighbours: lines(of: "/proc/net/arp"), routes: lines(of: "/proc/net/route"),
            isWireless: { access("/sys/class/net/\($0)/wireless", F_OK) == 0 })
    }

    /// - Parameters:
    ///   - neighbours: the kernel's table of IPv4 neighbours, as in `/proc/net/arp`.
    ///   - routes: its table of routes, as in `/proc/net/route`.
    static func isolation(
        neighbours: [[String]], routes: [[String]], isWireless: (String) -> Bool
    ) -> Finding? {
        let (id, subject) = ("web.isolation", "devices on this Wi-Fi")
        let routers = routes.filter { $0.count > 2 && $0[1] == "00000000" && isWireless($0[0]) }
        guard let interface = routers.first?[0] else { return nil }
        let gateways = Set(routers.compactMap { dotted($0[2]) })
        // The third field has a flag for entries that are complete.
        let others = neighbours.filter {
            $0.count > 5 && $0[5] == interface && $0[2] != "0x0" && !gateways.contains($0[0])
        }
        guard others.isEmpty else {
            return Finding(id, subject, .pass, "\(others.count) seen on \(interface)")
        }
        return Finding(
            id, subject, .pass,
            "only the router is seen on \(interface). If a phone there cannot open the page, the access point keeps its "
                + "devices apart (client isolation), as guest networks do")
    }

    /// Returns an address as the kernel's table of routes writes it, in the usual form.
    private static func dotted(_ text: String) -> String? {
        UInt32(text, radix: 16).map { bits in
            (0..<4).map { "\(bits >> (8 * UInt32($0)) & 0xFF)" }.joined(separator: ".")
        }
    }

    private static func lines(of path: String) -> [[String]] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var lines: [[String]] = []
        var space = [CChar](repeating: 0, count: 512)
        while lines.count < 4_096, fgets(&space, Int32(space.count), file) != nil {
            let text = String(decoding: space.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            lines.append(text.split(whereSeparator: \.isWhitespace).map(String.init))
        }
        return lines
    }
}
