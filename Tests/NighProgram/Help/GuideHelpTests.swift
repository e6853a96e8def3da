import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh help GUIDE`: the guides in a terminal and in a browser.
@Suite(.callsPrograms) struct GuideHelpTests {
    private let user = NighUser()

    @Test("Every guide is listed, and is shown as plain text that fits the terminal's width")
    func guides() throws {
        let folder = try #require(GuideFolder("\(BuiltPackages.root)/docs", site: ""))
        #expect(folder.guides.count > 10)
        let list = try user.run("help", "guides")
        #expect(list.status == 0 && list.lines.count == folder.guides.count)
        for guide in folder.guides {
            #expect(
                list.lines.contains { $0.contains("nigh help \(guide.name)") && $0.hasSuffix(guide.title) })
            let call = try user.run("help", guide.name)
            #expect(call.status == 0 && call.errors.isEmpty && call.lines.first == guide.title)
            let prose = call.lines.filter { !$0.hasPrefix("    ") && $0.contains(" ") }
            #expect(prose.allSatisfy { $0.count <= 80 }, "\(guide.name): \(prose.filter { $0.count > 80 })")
            #expect(!call.lines.contains { $0.contains("](") || $0.contains("\u{1B}") }, "\(guide.name)")
        }
    }

    @Test("A code shows its section and nothing else, in whatever case it is typed")
    func code() throws {
        let call = try user.run("help", "n17")
        #expect(call.status == 0)
        #expect(call.lines.first?.hasPrefix("N17: ") == true)
        #expect(!call.lines.contains { $0.hasPrefix("N18") } && call.lines.count > 5)
    }

    @Test("Headings, lists, tables, code, links and pictures are turned into lines of text")
    func text() {
        let markdown = """
            # Title

            A [link over
            two](a.md) lines and **strong** words.

            - first `item`
              goes on

            | name | meaning | more |
            | --- | --- | --- |
            | `a` | one | two |

            ```sh
            nigh  doctor
            ```

            ![A picture](x.svg)
            """
        let lines = GuideText.lines(of: markdown, width: 24).map { $0.text(colours: false) }
        #expect(
            lines == [
                "Title", "", "A link over two lines", "and strong words.", "", "- first `item` goes on", "",
                "  `a`",
                "      meaning: one", "      more: two", "", "    nigh  doctor", "", "[picture: A picture]",
            ])
    }

    @Test("The guides and pages of an installed program are those beside it")
    func installed() throws {
        let place = TemporaryFolder()
        let share = "\(place.path)/share/doc/nigh"
        for folder in ["\(place.path)/bin", "\(share)/guides", "\(share)/html"] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try "# Only here\n\nA text.\n".write(
            toFile: "\(share)/guides/own.md", atomically: true, encoding: .utf8)
        try "<h1>Nigh</h1>".write(toFile: "\(share)/html/index.html", atomically: true, encoding: .utf8)
        // Another process copies it: a file that this one writes may be open in a child, and then cannot be run.
        let copy = try Child(
            "/usr/bin/env", ["cp", BuiltPrograms.path(of: "nigh"), "\(place.path)/bin/nigh"])
        #expect(try copy.end().status == 0)
        func nigh(_ arguments: String..., environment: [String: String] = [:]) throws -> NighCall {
            var variables = user.environment
            variables["LD_LIBRARY_PATH"] = BuiltPrograms.path(of: "")
            for (name, value) in environment { variables[name] = value }
            return try NighCall(
                finishing: Child("\(place.path)/bin/nigh", arguments, environment: variables))
        }
        #expect(try nigh("help", "own").lines == ["Only here", "", "A text."])

        // Without a screen it names the page; with one, it calls the desktop's program for that.
        let address = "file://\(share)/html/guides/own.html"
        let screenless = try nigh(
            "help", "--open", "own", environment: ["DISPLAY": "", "PATH": place.path])
        #expect(screenless.status == 0 && screenless.lines == [address])
        let opener = "\(place.path)/bin/xdg-open"
        // Another process writes it, for the same reason.
        let text = place.file("opener", "#!/bin/sh\necho \"$1\" >\"$0.opened\"\n")
        #expect(try Child("/usr/bin/install", ["-m", "755", text, opener]).end().status == 0)
        let opened = try nigh(
            "help", "--open", "own",
            environment: ["DISPLAY": ":9", "PATH": "\(place.path)/bin:/usr/bin:/bin"])
        #expect(opened.status == 0 && opened.lines.isEmpty, "\(opened)")
        try #require(FileManager.default.fileExists(atPath: "\(opener).opened"))
        #expect(TemporaryFolder.text(of: "\(opener).opened") == "\(address)\n")

        // Without the pages, and then without the guides, it names what is to be installed.
        try FileManager.default.removeItem(atPath: "\(share)/html")
        let pageless = try nigh("help", "--open")
        #expect(pageless.status == 1 && pageless.errors.joined().contains("package nigh-doc"), "\(pageless)")
        try FileManager.default.removeItem(atPath: share)
        for arguments in [["guides"], ["--open"], ["n17"]] {
            let call = try NighCall(
                finishing: Child(
                    "\(place.path)/bin/nigh", ["help"] + arguments,
                    environment: ["LD_LIBRARY_PATH": BuiltPrograms.path(of: "")]))
            #expect(call.status == 1 && call.errors.count == 1, "\(call)")
            #expect(call.errors.joined().contains("no guides: they would be in \(share)"), "\(call)")
        }
        #expect(try nigh("help", "ping").status == 0)
    }

    @Test("The help of commands stays what it was, and an unknown guide is an error that points to the help")
    func commands() throws {
        #expect(try user.run("help", "ping").lines == user.run("ping", "--help").lines)
        let call = try user.run("help", "no-such-guide")
        #expect(call.status == 2 && call.errors.count == 1)
        #expect(call.errors.joined().contains("there is no command or guide \"no-such-guide\""), "\(call)")
        #expect(try user.run("help", "why-not-fuond").errors.joined().contains("did you mean why-not-found?"))
    }
}
