import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests the page that `nigh bench --report` writes, in a browser.
@Suite(.callsPrograms) struct ReportTests {
    private let user = NighUser()

    @Test("Writing a page to a pipe that nobody reads fails, and does not block")
    func pipe() throws {
        let path = "\(user.folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        #expect(throws: ReportFile.Failure.self) {
            try ReportFile(path, option: "--report", overwrites: true).write("a page")
        }
    }

    /// Opens the page in a browser; returns the resulting DOM and the browser's error messages.
    private func browse(_ path: String) throws -> (dom: String, complaints: [String]) {
        let picture = "\(user.folder.path)/page.png"
        let visit = try Browser.visit(
            "file://\(path)",
            ["--enable-logging=stderr", "--window-size=900,1800", "--screenshot=\(picture)"])
        #expect(FileManager.default.fileExists(atPath: picture))
        return (visit.document, visit.errors.filter { $0.contains("CONSOLE") })
    }

    /// The numeric values of all attributes with that name.
    private func counts(_ attribute: String, in dom: String) -> [Int] {
        dom.components(separatedBy: "\(attribute)=\"").dropFirst().compactMap {
            Int($0.prefix { $0 != "\"" })
        }
    }

    @Test("A browser shows the plots with data, reports no error, and runs nothing in a peer's name")
    func page() throws {
        let name = "<script>document.title='owned'</script>\"'&"
        let host = try HostInTests("--name", name)
        let path = "\(user.folder.path)/report.html"
        let call = try user.run(
            "bench", host.address, "-t", HostInTests.transport, "--seconds", "4", "-d", "both", "--report",
            path, "--json")
        #expect(call.status == 0, "\(call)")
        #expect(try call.object()["report"] as? String == path)

        let (dom, complaints) = try browse(path)
        #expect(complaints.isEmpty, "\(complaints)")
        #expect(!dom.lowercased().contains("<script") && !dom.contains("owned</title>"))
        #expect(
            dom.contains("&lt;script&gt;document.title='owned'&lt;/script&gt;\"'&amp;</h1>"),
            "\(dom.prefix(6_000))")
        for name in ["up: sent here", "up: received there", "down: sent there", "down: received here"] {
            #expect(dom.contains("data-series=\"\(name)\""))
        }
        let series = counts("data-count", in: dom)
        #expect(series.count == 6 && series.prefix(5).allSatisfy { $0 >= 4 } && series[5] >= 1, "\(series)")
        #expect(dom.components(separatedBy: "<circle").count - 1 == series[4] + 1, "and one beside its name")
        #expect(dom.components(separatedBy: "<figure>").count - 1 == 3)
        #expect(!dom.contains("http://") && !dom.contains("https://"), "it fetches nothing")

        let again = try user.run("bench", host.address, "-t", HostInTests.transport, "--report", path)
        #expect(again.status == 2 && again.errors.first?.contains("--force") == true)
        let forced = try user.run(
            "bench", host.address, "-t", HostInTests.transport, "--seconds", "0.1", "-d", "up", "--report",
            path, "--force")
        #expect(forced.status == 0)
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("down: received here") == false)
    }

    @Test("A stranger's words stay text, wherever they are shown")
    func escaping() {
        let name = "<b a='1' c=\"2\">&\u{202E}"
        let markup: Markup = "<p title=\"\(name)\">\([name, name].map { "<i>\($0)</i>" as Markup })</p>"
        let safe = "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\u{FFFD}"
        #expect(markup.description == "<p title=\"\(safe)\"><i>\(safe)</i><i>\(safe)</i></p>")
    }

    @Test(
        "An axis has a few ticks, at round numbers",
        arguments: [
            (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]), (7, [0, 2, 4, 6]), (92, [0, 20, 40, 60, 80]), (0, [0]),
        ] as [(Double, [Double])])
    func ticks(_ end: Double, _ expected: [Double]) {
        let ticks = Plot.ticks(to: end)
        #expect(
            ticks.count == expected.count && zip(ticks, expected).allSatisfy { abs($0 - $1) < 1e-9 },
            "\(ticks)")
    }
}
