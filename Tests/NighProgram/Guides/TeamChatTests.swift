import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/TeamChat, groups.
@Suite("The chat of teams", .callsPrograms) struct TeamChatTests {
    @Test("shows lines to the members of one team only, also to those who change to it")
    func teams() throws {
        let program = try BuiltPackages.build("Examples/TeamChat") + "/TeamChat"
        let users = (0..<3).map { _ in TemporaryFolder() }
        let children = try zip(users, [("Puma", "red"), ("Lynx", "red"), ("Hare", "blue")]).map {
            user, member in
            try Child(
                "/usr/bin/stdbuf", ["-oL", program, member.0, member.1, "tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path], reads: true)
        }
        let (puma, lynx, hare) = (children[0], children[1], children[2])
        try puma.line(with: #"red | ["you", "Lynx"]"#)
        try lynx.line(with: #"red | ["you", "Puma"]"#)
        puma.type("for red only")
        try lynx.line(with: "red | Puma: for red only")
        hare.type("/join red")
        try hare.line(with: "red | [", "Puma", "Lynx")
        try puma.line(with: "red | [", "Hare", "Lynx")
        puma.type("for all")
        for child in [lynx, hare] { try child.line(with: "red | Puma: for all") }
        for child in children {
            child.send(SIGINT)
            let end = try child.end()
            #expect(end.status == 0)
        }
    }
}
