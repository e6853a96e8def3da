import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Builds the documentation site, and looks at its pages in a browser as readers do.
@Suite("The documentation site", .callsPrograms) struct SiteTests {
    /// Pages of every kind: the front page, guides, a table of everything, long reference, a command, a symbol.
    private static let pages = [
        "index.html", "documentation.html", "guides/getting-started.html", "guides/why-not-found.html",
        "guides/recipes.html", "reference/PROTOCOL.html", "reference/LIMITS.html",
        "reference/schemas/nigh-doctor.html", "commands/nigh-send.html", "api/index.html",
        "api/nigh/session.html",
        "changelog.html", "search.html", "contents.html",
    ]

    private static let place = TemporaryFolder()

    /// The site with the reference of one module, which is enough here and quicker.
    private static let site = Result {
        try Child.run(
            "\(BuiltPackages.root)/docs/site/build",
            ["--out", "\(place.path)/site", "--built", BuiltPrograms.folder, "--modules", "Nigh"],
            patience: 300)
        return "\(place.path)/site"
    }

    /// Opens a page in a browser; returns the document that its scripts have made.
    private func browse(_ address: String) throws -> String {
        try Browser.visit(
            address,
            [
                "--allow-file-access-from-files", "--window-size=1500,1000", "--virtual-time-budget=120000",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ]
        ).document
    }

    @Test(
        "It reads well at three widths, in both themes and without scripts, and search finds what the guides say"
    )
    func looks() throws {
        let site = try Self.site.get()
        let look = "\(BuiltPackages.root)/Tests/NighProgram/Site/look.html"
        let pages = Self.pages.joined(separator: ",")
        let text = try browse("file://\(look)?folder=file://\(site)&pages=\(pages)")
        let report = text.components(separatedBy: "<pre>").last?.components(separatedBy: "</pre>").first ?? ""
        let lines = report.split(separator: "\n")
        #expect(lines.count == 1, "\(lines.prefix(20).joined(separator: "\n"))")
        let counts = report.matches(of: #/\d+/#).compactMap { Int($0.0) }
        #expect(counts.count == 2 && counts[0] > 5_000 && counts[1] == 4 * Self.pages.count, "\(report)")

        let found = try browse("file://\(site)/search.html?q=quokka%20%3Cb%3E")
        #expect(found.contains("Nothing found for “quokka &lt;b&gt;”"))
        let better = try browse("file://\(site)/search.html?q=multicast")
        #expect(better.contains("guides/why-not-found.html#n17-multicast-tcpmulticast"))
    }

    @Test func `Search finds first what people mean: words of other systems, beginnings, sentences`() throws {
        let site = try Self.site.get()
        let page = "\(BuiltPackages.root)/Tests/NighProgram/Site/search.html"
        let document = try browse("file://\(page)?folder=file://\(site)")
        let report = document.components(separatedBy: "<pre>").last?.components(separatedBy: "</pre>").first
        #expect(report == "tried 21")

        let partly = try browse("file://\(site)/search.html?q=multicast%20quokka")
        #expect(partly.contains("No place has all words of “multicast quokka”"))
        #expect(partly.contains("guides/why-not-found.html#n17-multicast-tcpmulticast"))
    }

    @Test
    func `No page asks another host for anything, and without scripts the search page leads to the index`()
        throws
    {
        let site = try Self.site.get()
        let requests = #/(?:src|action)="(?:https?:)?\/\/|<link[^>]*href="(?:https?:)?\/\/|@import|url\(/#
        let folder = try #require(FileManager.default.enumerator(atPath: site))
        var count = 0
        for case let path as String in folder where path.hasSuffix(".html") || path.hasSuffix(".css") {
            count += 1
            let text = try String(contentsOfFile: "\(site)/\(path)", encoding: .utf8)
            #expect(text.firstMatch(of: requests) == nil, "\(path)")
        }
        #expect(count > 100)
        let search = try String(contentsOfFile: "\(site)/search.html", encoding: .utf8)
        #expect(search.contains("<noscript>") && search.contains("href=\"contents.html\""))
    }
}

/// Tests `docs/site/check`, which `make lint` runs, with faults in a copy of the documentation.
@Suite("The check of the documentation", .callsPrograms) struct DocumentationCheckTests {
    private let place = TemporaryFolder()

    /// Texts that are added to a page, and the complaint of the check about each.
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

    @Test func `Every kind of fault is reported, and nothing else`() throws {
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
            ["--modules", "Nigh", "--built", BuiltPrograms.folder], patience: 600)
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
