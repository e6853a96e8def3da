import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

@Suite("The pages in docs/guides", .callsPrograms) struct GuidePagesTests {
    /// The package in which all their examples are compiled, those that begin with the same import in a target of their
    /// own.
    private static let folder = ".build/assembled/Guides"
    /// The modules that examples import, with the products that have them, and the fewest examples of each.
    private static let modules = [
        (name: "Nigh", product: "NighShared", package: "Nigh", least: 12),
        (name: "GameKit", product: "GameKit", package: compatibility, least: 3),
        (name: "MultipeerConnectivity", product: "MultipeerConnectivity", package: compatibility, least: 1),
    ]
    private static let compatibility = "NighCompatibility"

    private static let manifest = """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "Guides",
            dependencies: [
                .package(name: "Nigh", path: "../../.."),
                .package(name: "\(compatibility)", path: "../../../Compatibility"),
            ],
            targets: [
                \(modules.map {
                    """
                    .target(
                        name: "Guides\($0.name)",
                        dependencies: [.product(name: "\($0.product)", package: "\($0.package)")])
                    """
                }.joined(separator: ",\n"))
            ],
            swiftLanguageModes: [.v6]
        )

        """

    @Test func `show examples that all compile`() throws {
        let folder = "\(BuiltPackages.root)/\(Self.folder)"
        let guides = "\(BuiltPackages.root)/docs/guides"
        let pages = try FileManager.default.contentsOfDirectory(atPath: guides).filter { $0.hasSuffix(".md") }
        for module in Self.modules {
            let begin = try Regex(
                "(?m)^```swift\nimport \(module.name)\n\n((?s).*?)^```$", as: (Substring, Substring).self)
            var text = "import \(module.name)\n"
            var count = 0
            for page in pages.sorted() {
                let content = try String(contentsOfFile: "\(guides)/\(page)", encoding: .utf8)
                for fence in content.matches(of: begin) {
                    count += 1
                    // Each in a type of its own, since several have functions of one name.
                    text += "\n// \(page)\nenum Example\(count) {\n\(fence.1)}\n"
                }
            }
            #expect(count >= module.least)
            let sources = "\(folder)/Sources/Guides\(module.name)"
            try FileManager.default.createDirectory(atPath: sources, withIntermediateDirectories: true)
            try text.write(toFile: "\(sources)/Guides.swift", atomically: true, encoding: .utf8)
        }
        try Self.manifest.write(toFile: "\(folder)/Package.swift", atomically: true, encoding: .utf8)
        _ = try BuiltPackages.build(Self.folder)
    }

    /// The package in Compatibility, which users add beside Nigh, over memory and over TCP.
    @Test(arguments: [nil, ExampleProgram.transports])
    func `The package Compatibility passes its own tests`(_ transports: String?) throws {
        try BuiltPackages.test(
            "NighCompatibility", in: "Compatibility",
            filter: transports.map { _ in "MultipeerConnectivityTests" },
            environment: transports.map { ["NIGH_TRANSPORTS": $0] } ?? [:])
    }
}

/// Tests `nigh help GUIDE`: the guides in a terminal and in a browser.
@Suite(.callsPrograms) struct GuideHelpTests {
    private let user = NighUser()

    @Test func `Every guide is listed, and is shown as plain text that fits the terminal's width`() throws {
        let folder = try #require(GuideFolder("\(BuiltPackages.root)/docs", site: ""))
        #expect(folder.guides.count > 10)
        let list = try user.run("help guides").lines
        #expect(list.count == folder.guides.count)
        for guide in folder.guides {
            #expect(list.contains { $0.contains("nigh help \(guide.name)") && $0.hasSuffix(guide.title) })
            let call = try user.run("help \(guide.name)")
            #expect(call.errors.isEmpty && call.lines.first == guide.title)
            let wide = call.lines.filter { !$0.hasPrefix("    ") && $0.contains(" ") && $0.count > 80 }
            #expect(wide.isEmpty, "\(guide.name): \(wide)")
            #expect(!call.lines.contains { $0.contains("](") || $0.contains("\u{1B}") }, "\(guide.name)")
        }
    }

    @Test func `A code shows its section and nothing else, in whatever case it is typed`() throws {
        let lines = try user.run("help n17").lines
        #expect(lines.first?.hasPrefix("N17: ") == true)
        #expect(!lines.contains { $0.hasPrefix("N18") } && lines.count > 5)
    }

    @Test func `Headings, lists, tables, code, links and pictures are turned into lines of text`() {
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

    @Test func `The guides and pages of an installed program are those beside it`() throws {
        let place = TemporaryFolder()
        let share = "\(place.path)/share/doc/nigh"
        for folder in ["\(place.path)/bin", "\(share)/guides", "\(share)/html"] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        _ = place.file("share/doc/nigh/guides/own.md", "# Only here\n\nA text.\n")
        _ = place.file("share/doc/nigh/html/index.html", "<h1>Nigh</h1>")
        // Another process copies it: a file that this one writes may be open in a child, and then cannot be run.
        try Child.run("/bin/cp", [BuiltPrograms.path(of: "nigh"), "\(place.path)/bin/nigh"])
        func nigh(
            _ line: String, screen: String = "", path: String? = nil, status: Int32 = 0, says: String? = nil
        )
            throws -> NighCall
        {
            var environment = user.environment
            environment["LD_LIBRARY_PATH"] = BuiltPrograms.path(of: "")
            environment["DISPLAY"] = screen
            environment["PATH"] = path ?? place.path
            let words = line.split(separator: " ").map(String.init)
            return try Child("\(place.path)/bin/nigh", words, environment: environment).finish(
                status: status, says: says)
        }
        #expect(try nigh("help own").lines == ["Only here", "", "A text."])

        // Without a screen it names the page; with one, it calls the desktop's program for that.
        let address = "file://\(share)/html/guides/own.html"
        #expect(try nigh("help --open own").lines == [address])
        let opener = "\(place.path)/bin/xdg-open"
        // Another process writes it, for the same reason.
        let text = place.file("opener", "#!/bin/sh\necho \"$1\" >\"$0.opened\"\n")
        try Child.run("/usr/bin/install", ["-m", "755", text, opener])
        let path = "\(place.path)/bin:/usr/bin:/bin"
        #expect(try nigh("help --open own", screen: ":9", path: path).lines.isEmpty)
        #expect(TemporaryFolder.text(of: "\(opener).opened") == "\(address)\n")

        // Without the pages, and then without the guides, it names what is to be installed.
        try FileManager.default.removeItem(atPath: "\(share)/html")
        _ = try nigh("help --open", status: 1, says: "package nigh-doc")
        try FileManager.default.removeItem(atPath: share)
        for line in ["help guides", "help --open", "help n17"] {
            _ = try nigh(line, status: 1, says: "no guides: they would be in \(share)")
        }
        _ = try nigh("help ping")
    }

    @Test func `An unknown guide is an error that points to the help`() throws {
        try user.fail(
            "help no-such-guide", status: 2, says: "there is no command or guide \"no-such-guide\"")
        try user.fail("help why-not-fuond", status: 2, says: "did you mean why-not-found?")
    }
}

/// Follows docs/guides/writing-a-transport.md from its first line to its last.
@Suite("The guide to writing a transport", .callsPrograms) struct GuideTests {
    /// A fenced block of a page: the words after the opening fence, and the content.
    private struct Fence {
        let info: String
        let text: String

        static func all(of page: String) throws -> [Fence] {
            let text = try String(contentsOfFile: "\(BuiltPackages.root)/\(page)", encoding: .utf8)
            return text.matches(of: #/(?m)^```([^\n]*)\n((?s).*?)^```$/#)
                .map { Fence(info: String($0.1), text: String($0.2)) }
        }
    }

    @Test func `leads from an empty folder to a passing conformance run, and all its code compiles`() throws {
        _ = try BuiltPackages.build("Examples/UnixTransport")
        let folder = TemporaryFolder()
        let fences = try Fence.all(of: "docs/guides/writing-a-transport.md")
        // Uses this repository as Nigh, with what is already compiled in it.
        let nigh = BuiltPackages.root
        var script = [
            "mkdir \(folder.path)/bin", "cd \(folder.path)", "cat >bin/swift <<'END_OF_FILE'", "#!/bin/sh",
            "PATH=${PATH#*:}", BuiltPackages.script, "END_OF_FILE", "chmod +x bin/swift",
            "PATH=$PWD/bin:$PATH",
        ]
        var snippets = 0
        func write(_ text: String, to path: String) {
            let text = text.replacing("\"../nigh\"", with: "\"\(nigh)\"")
            script += ["mkdir -p $(dirname \(path))", "cat > \(path) <<'END_OF_FILE'", text + "END_OF_FILE"]
        }
        for fence in fences {
            let words = fence.info.split(separator: " ")
            switch words.first {
            case "swift":
                if words.count > 1 {
                    write(fence.text, to: String(words[1]))
                } else {
                    snippets += 1
                    write(fence.text, to: "Snippets/Snippet\(snippets).swift")
                }
            case "sh" where words.count == 1:
                script.append(fence.text)
                if fence.text.contains("cd MyTransport") {
                    script.append("ln -s \(nigh)/.build .build")
                }
            default: break
            }
        }
        #expect(snippets == 2)
        script += [
            "mv Snippets/* Sources/MyTransport/", "swift build --build-tests", "echo \"all of it: $?\"",
        ]
        try script.joined(separator: "\n").write(
            toFile: "\(folder.path)/guide.sh", atomically: true, encoding: .utf8)

        let programs = BuiltPrograms.path(of: "").dropLast()
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let guide = try Child(
            "/bin/bash", ["\(folder.path)/guide.sh"],
            environment: [
                "NIGH": nigh, "PATH": "\(programs):\(path)", "XDG_DATA_HOME": folder.path,
                "NO_COLOR": "1",
            ], patience: 900)
        let (_, errors) = try guide.end()
        let output = guide.lines + errors
        // In the order of the guide.
        #expect(output.contains("  does not work here: this transport is not written yet"), "\(output)")
        #expect(output.contains("  version 1.0 of the plugin .build/debug/libMyTransport.so"))
        let checks = TransportConformance.checks.count
        #expect(output.contains("\(checks - 1) passed, 0 failed, 1 skipped of \(checks)."))
        #expect(output.contains("all of it: 0"), "\(output.suffix(30))")
    }

    @Test func `shows the example's own test`() throws {
        func content(_ path: String) throws -> String {
            try String(contentsOfFile: "\(BuiltPackages.root)/\(path)", encoding: .utf8)
        }
        let guide = try content("docs/guides/writing-a-transport.md")
        let tests = try content("Examples/UnixTransport/Tests/UnixTransportTests/ConformanceTests.swift")
        #expect(guide.contains(tests.replacing("import UnixTransport", with: "import MyTransport")))
    }

    @Test("shows the contract as it is in the sources, and `.ci/contract` would write the same")
    func contract() throws {
        let fences = try Fence.all(of: "docs/reference/transport-contract.md")
        #expect(fences.count == 5)
        for fence in fences {
            let path = try #require(fence.info.split(separator: " ").last.map(String.init))
            let source = try String(contentsOfFile: "\(BuiltPackages.root)/\(path)", encoding: .utf8)
            #expect(fence.text == source, "run .ci/contract after a change of \(path)")
        }
    }

    @Test func `names the checks that a cable with one pipe skips, each with its reason`() throws {
        let page = try String(
            contentsOfFile: "\(BuiltPackages.root)/docs/guides/writing-a-transport.md", encoding: .utf8)
        let rows = page.split(separator: "\n").drop { !$0.hasPrefix("**What is skipped.**") }
            .filter { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            row.split(separator: "|")[0].matches(of: #/`([a-z-]+)`/#).map { String($0.1) }
        }
        let needy = (TransportConformance.checks + SessionConformance.checks)
            .filter { $0.needs.ends > 2 || $0.needs.pipes > 1 }.map(\.name)
        #expect(named.sorted() == needy.sorted() && needy.count == 9)
    }

    @Test func `ends with an example that passes its own tests, in under 400 lines`() throws {
        let folder = "\(BuiltPackages.root)/Examples/UnixTransport"
        let sources = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/Sources/UnixTransport")
        let lines = try (sources.map { "Sources/UnixTransport/\($0)" } + ["Package.swift"]).map {
            try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8).count { $0 == "\n" }
        }
        #expect(lines.reduce(0, +) < 400)
        try BuiltPackages.test("UnixTransport", in: "Examples/UnixTransport")
    }
}
