import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Builds the documentation site, and looks at its pages in a browser as readers do.
@Suite("The documentation site", .callsPrograms) struct SiteTests {
    private let place = TemporaryFolder()

    /// Pages of every kind: the front page, guides, a table of everything, long reference, a command, a symbol.
    private static let pages = [
        "index.html", "documentation.html", "guides/getting-started.html", "guides/why-not-found.html",
        "guides/recipes.html", "reference/PROTOCOL.html", "reference/LIMITS.html",
        "reference/schemas/nigh-doctor.html", "commands/nigh-send.html", "api/index.html",
        "api/nigh/session.html",
        "changelog.html", "search.html", "contents.html",
    ]

    /// Builds the site with the reference of one module, which is enough here and quicker.
    private func build() throws -> String {
        let built = BuiltPrograms.path(of: "").dropLast()
        let call = try Child(
            "\(BuiltPackages.root)/docs/site/build",
            ["--out", "\(place.path)/site", "--built", String(built), "--modules", "Nigh"], patience: 300)
        let (status, errors) = try call.end()
        #expect(status == 0, "\(errors)")
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
        let site = try build()
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

    @Test("Search finds first what people mean: words of other systems, beginnings, sentences")
    func searches() throws {
        let site = try build()
        let page = "\(BuiltPackages.root)/Tests/NighProgram/Site/search.html"
        let document = try browse("file://\(page)?folder=file://\(site)")
        let report = document.components(separatedBy: "<pre>").last?.components(separatedBy: "</pre>").first
        #expect(report == "tried 21")

        let partly = try browse("file://\(site)/search.html?q=multicast%20quokka")
        #expect(partly.contains("No place has all words of “multicast quokka”"))
        #expect(partly.contains("guides/why-not-found.html#n17-multicast-tcpmulticast"))
    }

    @Test("No page asks another host for anything, and without scripts the search page leads to the index")
    func selfContained() throws {
        let site = try build()
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
