import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Tests `docs/site/check`, which `make lint` runs, with faults in a copy of the documentation.
@Suite("The check of the documentation", .callsPrograms) struct DocumentationCheckTests {
    private let place = TemporaryFolder()

    /// What is added to a page, and what the check must say about it.
    private static let faults: [(text: String, complaint: String)] = [
        ("A [link](nowhere.md).", "docs/guides/groups.md: the link nowhere.md leads nowhere"),
        ("A [section](sending.md#no-such).", "the link sending.html#no-such names no section there"),
        ("![](pictures/cut.svg)", "the picture pictures/cut.svg has no text for those who cannot see it"),
        ("```\nnigh dokter\n```", "there is no command `nigh dokter`"),
        ("```\nnigh send Puma a.txt --no-such\n```", "`nigh send` has no option --no-such"),
        ("Run `nigh discover --no-such`.", "`nigh discover` has no option --no-such"),
        (
            "```swift from Examples/Hello/Package.swift\nimport NoSuch\n```",
            "is not in Examples/Hello/Package.swift"
        ),
        (String(repeating: "many words ", count: 11), "is wider than 100 columns"),
        ("```sh\nmake no-such-target\n```", "there is no `make no-such-target`"),
        (
            "```\nnigh discover \(String(repeating: "x", count: 80))\n```", "code is wider than 80 columns"
        ),
        ("```swift\nimport Nigh\n\nfunc f(_ peer: Peer) { peer.noSuch() }\n```", "has no member 'noSuch'"),
    ]

    @Test("Every kind of fault is reported, and nothing else")
    func reports() throws {
        let root = BuiltPackages.root
        let manager = FileManager.default
        for name in ["docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
            try manager.copyItem(atPath: "\(root)/\(name)", toPath: "\(place.path)/\(name)")
        }
        for name in try manager.contentsOfDirectory(atPath: root) {
            guard ![".build", ".git"].contains(name), !manager.fileExists(atPath: "\(place.path)/\(name)")
            else {
                continue
            }
            try manager.createSymbolicLink(
                atPath: "\(place.path)/\(name)", withDestinationPath: "\(root)/\(name)")
        }
        let page = "\(place.path)/docs/guides/groups.md"
        let text = try String(contentsOfFile: page, encoding: .utf8)
        try (text + Self.faults.map { "\n\($0.text)\n" }.joined())
            .write(toFile: page, atomically: true, encoding: .utf8)
        try "# Not listed\n".write(
            toFile: "\(place.path)/docs/guides/new.md", atomically: true, encoding: .utf8)

        let measured = "\(place.path)/docs/guides/slow-readers.md"
        let figures = try String(contentsOfFile: measured, encoding: .utf8)
        try figures.replacing("| waiting | 5 |", with: "| waiting | 6 |")
            .write(toFile: measured, atomically: true, encoding: .utf8)

        let check = try Child(
            "\(place.path)/docs/site/check",
            ["--modules", "Nigh", "--built", String(BuiltPrograms.path(of: "").dropLast())], patience: 600)
        let (status, errors) = try check.end()
        #expect(status == 1)
        let expected =
            Self.faults.map(\.complaint) + [
                "docs/README.md does not list docs/guides/new.md",
                "docs/guides/slow-readers.md: lacks the table of the measured figures",
            ]
        for complaint in expected {
            #expect(errors.contains { $0.contains(complaint) }, "\(complaint): \(errors)")
        }
        #expect(errors.count == expected.count, "\(errors)")
    }
}
