import Browsers
import ChildPrograms
import Foundation
import NighTestKit
import Testing

@Suite("nigh guests") struct GuestsCommandTests {
    private let folder = TemporaryFolder()

    /// The lines that `nigh guests` prints.
    private func guests(_ arguments: String...) throws -> [String] {
        let call = try Child(
            "nigh", ["guests"] + arguments,
            environment: ["XDG_DATA_HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "NO_COLOR": "1"])
        let (status, errors) = try call.end()
        #expect(status == 0, "\(errors)")
        return call.lines
    }

    @Test func `The command lists guests, invites another one, and sends one away for good`() async throws {
        try await withBrowser {
            #expect(try guests() == ["No program takes guests now; `nigh receive --web` does."])
            let host = try GuestHost("nigh", ["chat"], in: folder)
            #expect(try guests() == ["No guest has come yet."])
            let browser = try DrivenBrowser(.chromium, resolving: [host.name])
            try browser.open(host.url)
            try browser.waitUntilShown("Chat with Puma")
            try browser.run("document.getElementById('name').value = 'Anna'")
            try browser.tap("#choices button")
            try host.program.line(with: "Anna", "has joined, over web")

            let list = try guests()
            #expect(list.count == 2 && list[1].hasPrefix("Anna ") && list[1].hasSuffix(" here"), "\(list)")
            let lines = try guests("--json-lines").map {
                try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            #expect(lines.map { $0["type"] as? String } == ["guest", "summary"])
            #expect(lines[0]["name"] as? String == "Anna" && lines[0]["here"] as? Bool == true)
            #expect(lines[0]["service"] as? String == "nigh" && lines[0]["address"] as? String == "127.0.0.1")

            let other = try GuestHost.url(inCodeOf: guests("invite"))
            #expect(other != host.url && other.prefix { $0 != "#" } == host.url.prefix { $0 != "#" })

            #expect(try guests("revoke", "Anna").first?.contains("was sent away") == true)
            try host.program.line(with: "Anna", "has left")
            try browser.waitUntilShown("left")
            try browser.reload()
            try browser.waitUntilShown("away")
            #expect(try guests() == ["No guest has come yet."])

            // With a new code it comes back.
            try browser.open(other)
            try browser.waitUntilShown("Chat with Puma")
        }
    }
}
