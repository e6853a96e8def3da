import Browsers
import ChildPrograms
import NighTestKit
import Testing

@Suite("A phone in a chat") struct ChatTests {
    private let folder = TemporaryFolder()

    @Test(
        "scans the code of the terminal, and has each line once and in order after ten cuts and two reloads",
        arguments: DrivenBrowser.Kind.allCases)
    func cuts(_ kind: DrivenBrowser.Kind) async throws {
        try await withBrowser {
            let host = try GuestHost("nigh", ["chat"], in: folder)
            let wire = try CuttableWire(to: host)
            let browser = try DrivenBrowser(kind, resolving: [host.name])
            try browser.use(.phone)
            try browser.open(wire.url(of: host))
            try browser.waitUntilShown("Chat with Puma")
            try browser.waitUntilShown("not encrypted")
            try browser.run("document.getElementById('name').value = ''")
            try browser.tap("#name")
            try browser.type("Anna")
            try browser.press("Enter")
            try host.program.line(with: "Anna", "has joined, over web")
            var said = 0
            for round in 0..<3 {
                if round > 0 {
                    try browser.reload()
                    // It joins again by itself.
                    try host.program.line(with: "has joined, over web", occurrence: round + 1)
                }
                for turn in 0..<5 {
                    // A line of each side is under way when the wire is cut.
                    host.program.type("desk \(said)")
                    try browser.waitUntil("document.querySelector('textarea, #room input') != null")
                    try browser.tap("#room textarea, #room input")
                    try browser.type("phone \(said)")
                    try browser.press("Enter")
                    if round > 0 || turn > 0 { try wire.cut() }
                    try host.program.line(with: "Anna: phone \(said)")
                    try browser.waitUntilShown("desk \(said)")
                    said += 1
                }
                let shown: String = try browser.evaluate("document.body.innerText")
                let own = (said - 5..<said).map { "desk \($0)" }
                #expect(shown.split(separator: "\n").map(String.init).filter { $0.hasPrefix("desk ") } == own)
            }
            let heard = host.program.lines.filter { $0.contains("Anna: phone ") }
            #expect(heard == (0..<said).map { "Anna: phone \($0)" })
            #expect(try browser.problems().filter { !$0.contains("WebSocket") } == [])
        }
    }
}
