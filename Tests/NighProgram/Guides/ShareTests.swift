import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/Share, which the guide "Getting started" ends with.
@Suite("The program that shares lines and files", .callsPrograms) struct ShareTests {
    @Test("passes on a line and a file, reports a file that it cannot send, and ends in good order")
    func shares() throws {
        let program = try BuiltPackages.build("Examples/Share") + "/Share"
        let users = (0..<2).map { _ in TemporaryFolder() }
        let letter = users[0].file("letter.txt", "a letter")
        let children = try zip(users, ["Puma", "Lynx"]).map { user, name in
            // Received files go into the current folder.
            try Child(
                "/usr/bin/env",
                ["-C", user.path, "stdbuf", "-oL", program, name, "tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path + "/.data"], reads: true)
        }
        let (puma, lynx) = (children[0], children[1])
        try puma.line(with: "Lynx is here")
        try lynx.line(with: "Puma is here")
        puma.type("good morning")
        try lynx.line(with: "Puma: good morning")
        puma.type("/send nowhere.txt")
        try puma.line(with: "nowhere.txt")
        puma.type("/send \(letter)")
        try lynx.line(with: "letter.txt is here")
        try puma.line(with: "Lynx has")
        #expect(TemporaryFolder.text(of: users[1].path + "/letter.txt") == "a letter")
        puma.closeInput()
        #expect(try puma.end().status == 0)
        try lynx.line(with: "Puma is gone")
        lynx.send(SIGINT)
        #expect(try lynx.end().status == 0)
    }
}
