import ChildPrograms
import Foundation
import Testing

/// A `nigh host` on the loopback interface that discovery does not show, and its address.
final class HostInTests {
    static let transport = "tcp:interface=lo,mdns=off"

    let user: NighUser
    let child: Child
    let address: String

    /// Starts a host, at `port` if it is given, and waits until it listens.
    init(of user: NighUser = NighUser(), port: Int? = nil, _ arguments: String...) throws {
        self.user = user
        let transport = Self.transport + (port.map { ",port=\($0)" } ?? "")
        child = try user.start(["host", "-t", transport, "--json-lines"] + arguments)
        let line = try child.line(with: "\"listening\"")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        address = try #require((object?["addresses"] as? [String])?.first)
    }

    var port: Int { get throws { try #require(Int(address.split(separator: ":").last ?? "")) } }

    /// Ends the host as Ctrl-C does.
    func end() throws -> NighCall {
        child.send(SIGINT)
        return try NighCall(finishing: child)
    }
}
