import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/DropFolder, files that go to every device.
@Suite("The drop folder", .callsPrograms) struct DropFolderTests {
    @Test("sends what is put into it, and ends in good order")
    func files() throws {
        let program = try BuiltPackages.build("Examples/DropFolder") + "/DropFolder"
        let users = (0..<2).map { _ in TemporaryFolder() }
        _ = users[0].file("letter.txt", "a letter")
        let children = try users.map { user in
            try Child(
                "/usr/bin/stdbuf", ["-oL", program, user.path, "tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path + "/.data"], reads: true)
        }
        try children[1].line(with: "received \(users[1].path)/from others/letter.txt")
        #expect(TemporaryFolder.text(of: users[1].path + "/from others/letter.txt") == "a letter")
        for child in children {
            child.send(SIGINT)
            #expect(try child.end().status == 0)
        }
    }
}
