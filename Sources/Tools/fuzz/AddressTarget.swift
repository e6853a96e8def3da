import NighCore
import NighTCP

/// Addresses as people write them and as others send them. An accepted address must mean the same when it is written
/// again.
enum AddressTarget {
    private static let peer = SessionHarness.identities[0].peerID
    private static let valid = [
        "tcp://192.168.1.5:4000", "tcp://[fe80::1%lo]:4000", "tcp://[fe80::1%7]:1", "tcp://[::1]:65535",
        "tcp://example.org:80", "tcp://example.org.:80", "tcp://\(peer).mdns",
        "tcp:host=example.org,port=4000",
        "tcp:port=4000,host=[fe80::1%1]", "tcp://[::ffff:10.0.0.1]:4", "tcp:host=::1,port=1",
        "tcp://küche.local:2",
        "tcp://10.0.0.1.mdns:5",
    ]
    private static let pieces = [
        ":", "[", "]", "%", "=", ",", ".", "..", "/", "\0", "+", "-", "0", "::", "tcp://", "host=", "port=",
        ".mdns",
        "65536", "99999999999999999999", "e\u{301}", "\u{200D}", " ", "\n", "a",
    ]

    static func run(_ mutator: inout Mutator) throws {
        var text = mutator.pick(valid)
        if !mutator.oneIn(8) { for _ in 0...mutator.number(below: 4) { mutator.change(&text, with: pieces) } }
        guard let address = TransportAddress(text) else { return }
        let destination: TCPDestination
        do throws(NighError) {
            destination = try TCPDestination(address)
        } catch {
            if valid.contains(text) { throw Finding("\(text) is not understood: \(error)") }
            if "\(error)".utf8.count > 3 * text.utf8.count + 300 { throw Finding("a long error for \(text)") }
            return
        }
        if text.utf8.contains(0) {
            throw Finding("the text after a zero is not read: \(text.debugDescription)")
        }
        switch destination {
        case .found(let id):
            if TCPDestination.address(of: id) != address { throw Finding("\(text) is \(id)") }
        case .number(let number):
            if number.port == 0 || number.lacksScope { throw Finding("\(text) cannot be dialled") }
            try check(text, destination, "tcp://\(number)")
        case .name(let name, let port):
            guard port != 0, (1...253).contains(name.utf8.count),
                !name.contains(where: { " :/%[],=".contains($0) })
            else { throw Finding("\(name.debugDescription) is not a name") }
            try check(text, destination, "tcp://\(name):\(port)")
        }
        if text.contains("+") { throw Finding("a number with a sign: \(text.debugDescription)") }
    }

    private static func check(_ text: String, _ destination: TCPDestination, _ again: String) throws {
        let read = TransportAddress(again).flatMap { try? TCPDestination($0) }
        if read != destination { throw Finding("\(text.debugDescription), written as \(again), differs") }
    }
}
