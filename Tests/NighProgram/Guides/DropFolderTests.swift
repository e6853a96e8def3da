import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/DropFolder, files that go to every device.
@Suite("The drop folder", .callsPrograms) struct DropFolderTests {
    @Test("sends what is put into it, and ends in good order, over TCP")
    func tcp() throws { try exchange(over: "tcp:interface=lo,mdns=embedded") }

    @Test("sends what is put into it over a transport from a plugin folder")
    func plugin() throws {
        let unix = try UnixPlugin()
        let plugins = TemporaryFolder()
        try unix.install(to: "\(plugins.path)/unix.so")
        try exchange(over: unix.spec, plugins: plugins.path)
    }

    private func exchange(over transports: String, plugins: String? = nil) throws {
        let program = try BuiltPackages.build("Examples/DropFolder") + "/DropFolder"
        let users = (0..<2).map { _ in TemporaryFolder() }
        _ = users[0].file("letter.txt", "a letter")
        let children = try users.map { user in
            try Child(
                "/usr/bin/stdbuf", ["-oL", program, user.path, transports],
                environment: [
                    "XDG_DATA_HOME": user.path + "/.data", "NIGH_PLUGIN_PATH": plugins ?? "/nonexistent",
                ], reads: true)
        }
        try children[1].line(with: "received \(users[1].path)/from others/letter.txt")
        #expect(TemporaryFolder.text(of: users[1].path + "/from others/letter.txt") == "a letter")
        for child in children {
            child.send(SIGINT)
            #expect(try child.end().status == 0)
        }
    }
}
