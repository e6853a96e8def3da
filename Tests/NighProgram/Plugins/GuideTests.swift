import ChildPrograms
import Foundation
import NighTestKit
import Testing

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

    @Test("leads from an empty folder to a passing conformance run, and all its code compiles")
    func works() throws {
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

    @Test("shows the example's own test")
    func quotes() throws {
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

    @Test("names the checks that a cable with one pipe skips, each with its reason")
    func skippedOnACable() throws {
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

    @Test("ends with an example that passes its own tests, in under 400 lines")
    func example() throws {
        let folder = "\(BuiltPackages.root)/Examples/UnixTransport"
        let sources = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/Sources/UnixTransport")
        let lines = try (sources.map { "Sources/UnixTransport/\($0)" } + ["Package.swift"]).map {
            try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8).count { $0 == "\n" }
        }
        #expect(lines.reduce(0, +) < 400)
        try BuiltPackages.test("UnixTransport", in: "Examples/UnixTransport")
    }
}
