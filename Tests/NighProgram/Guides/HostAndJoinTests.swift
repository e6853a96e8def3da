import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/HostAndJoin, two devices that meet.
@Suite("The program that hosts and joins", .callsPrograms) struct HostAndJoinTests {
    private let users = (0..<4).map { _ in TemporaryFolder() }

    private func run(_ role: String, _ name: String, as user: Int) throws -> Child {
        let program = try BuiltPackages.build("Examples/HostAndJoin") + "/HostAndJoin"
        return try Child(
            "/usr/bin/stdbuf", ["-oL", program, role, name, "tcp:interface=lo,mdns=embedded"],
            environment: ["XDG_DATA_HOME": users[user].path], reads: true)
    }

    @Test("shows a sorted list of hosts; a host takes one guest and is in the list no more")
    func story() throws {
        let puma = try run("host", "Puma", as: 0)
        let boar = try run("host", "Boar", as: 1)
        let guests = [try run("join", "Lynx", as: 2), try run("join", "Hare", as: 3)]
        for guest in guests { try guest.line(with: "hosts: 1 Boar, 2 Puma") }
        let seen = guests[1].lines.count
        guests[0].type("2")
        try puma.line(with: "connected to Lynx")
        try guests[0].line(with: "connected to Puma")
        try guests[1].line(exactly: "hosts: 1 Boar", after: seen)
        guests[0].type("my move")
        try puma.line(with: "Lynx: my move")
        puma.type("mine")
        try guests[0].line(with: "Puma: mine")
        // Whoever leaves, the other is told.
        guests[0].closeInput()
        try puma.line(with: "Lynx has left")
        for child in [guests[0], puma] { #expect(try child.end().status == 0) }
        for child in [guests[1], boar] {
            child.send(SIGINT)
            #expect(try child.end().status == 0)
        }
    }
}
