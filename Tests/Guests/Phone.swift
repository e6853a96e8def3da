import Browsers
import ChildPrograms
import NighTestKit
import Testing

/// A phone that has scanned the code of a program, over a wire that can be cut.
struct Phone {
    let host: GuestHost
    let wire: CuttableWire
    let browser: DrivenBrowser

    /// Runs `body` with a phone that shows the page of a program, at which this title stands.
    ///
    /// - Parameter prepare: called with the browser before it opens the page.
    static func scan(
        _ program: String, _ arguments: [String], in folder: TemporaryFolder, with kind: DrivenBrowser.Kind,
        title: String, prepare: @Sendable (DrivenBrowser) throws -> Void = { _ in },
        _ body: @Sendable (Phone) throws -> Void
    ) async throws {
        try await withBrowser {
            let host = try GuestHost(program, arguments, in: folder)
            let phone = Phone(
                host: host, wire: try CuttableWire(toPort: host.port),
                browser: try DrivenBrowser(kind, resolving: [host.name]))
            try phone.browser.use(.phone)
            try prepare(phone.browser)
            try phone.browser.open(host.url.replacing(":\(host.port)/", with: ":\(phone.wire.port)/"))
            try phone.browser.waitUntilShown(title)
            try body(phone)
            #expect(try phone.browser.problemsBesidesCuts() == [])
        }
    }

    /// Waits until the page has an element.
    func waitUntilShown(_ selector: String, within duration: Duration = .seconds(60)) throws {
        try browser.waitUntil("document.querySelector('\(selector)') != null", within: duration)
    }
}
