import ChildPrograms
import Foundation

/// A real browser without a window, in which a test opens pages and acts like a person. It ends with the last
/// reference, and with this process. Neither a process nor a file of it stays.
///
/// Each method returns when the browser has done it, and throws an error that quotes the page or the browser.
///
/// `@unchecked Sendable`: a test uses it on one thread at a time.
package final class DrivenBrowser: @unchecked Sendable {
    /// Which browser to run.
    package enum Kind: String, CaseIterable, Sendable, CustomStringConvertible {
        case chromium
        case firefox

        package var description: String { rawValue }

        /// The program of the Debian package.
        fileprivate var program: String {
            switch self {
            case .chromium: "/usr/bin/chromium"
            case .firefox: "/usr/bin/firefox-esr"
            }
        }
    }

    /// The value that a page finds in `prefers-color-scheme`.
    package enum ColorScheme: String, CaseIterable, Sendable, CustomStringConvertible {
        case light
        case dark

        package var description: String { rawValue }
    }

    /// The name and version of the browser, such as `Firefox 153.8.0`.
    package let version: String

    private let driver: Child
    private var commandCount = 0

    /// Starts a browser with an empty profile.
    ///
    /// - Parameters:
    ///   - kind: which browser.
    ///   - names: host names that the browser resolves to 127.0.0.1, such as `phone.local`. A page from such a name is
    ///     not a secure context, like any page that a phone opens over HTTP. A page from 127.0.0.1 is one.
    package init(_ kind: Kind, resolving names: [String] = []) throws {
        guard access(kind.program, X_OK) == 0 else {
            throw Child.Failure(description: "\(kind.program) is missing: make setup-test")
        }
        // The driver itself limits how long each command takes, and then says what the page shows.
        driver = try Child(
            BuiltPackages.root + "/Tests/Browsers/driver/browser", [kind.rawValue] + names, reads: true,
            patience: 300)
        let line = try driver.line(where: { _ in true })
        let start = try JSONDecoder().decode(Start.self, from: Data(line.utf8))
        guard let version = start.version else {
            throw Child.Failure(description: "\(kind): \(start.error ?? line)")
        }
        self.version = version
    }

    deinit { close() }

    /// Ends the browser, and waits until nothing of it is left.
    package func close() {
        driver.closeInput()
        _ = try? driver.end()
    }

    /// Opens an address, and waits until the page and all that it refers to have loaded.
    package func open(_ address: String) throws { try carryOut("open", ["url": address]) }

    /// Loads the page again.
    package func reload() throws { try carryOut("reload") }

    /// Returns the value of a JavaScript expression. If that is a promise, awaits it.
    package func evaluate<Value: Decodable>(_ expression: String, as type: Value.Type = Value.self) throws
        -> Value
    {
        try carryOut("evaluate", ["expression": expression], returning: type)
    }

    /// Evaluates a JavaScript expression for its effect. If its value is a promise, awaits it.
    package func run(_ expression: String) throws { try carryOut("evaluate", ["expression": expression]) }

    /// Waits until a JavaScript expression is true. It is evaluated when the document changes and before each frame.
    /// An exception counts as false. Meanwhile the page may be loaded again.
    ///
    /// - Parameter limit: in whole seconds of a machine that is not loaded, as `LoadAdjustedClock` counts.
    package func waitUntil(_ expression: String, within limit: Duration = .seconds(60)) throws {
        try carryOut("wait", ["expression": expression, "seconds": max(1, limit.components.seconds)])
    }

    /// Waits until the page shows a text.
    package func waitUntilShown(_ text: String, within limit: Duration = .seconds(60)) throws {
        let literal = String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
        try waitUntil("document.body.innerText.includes(\(literal))", within: limit)
    }

    /// Returns the problems of the page since the last call: exceptions that nothing caught, errors on the console,
    /// what the Content-Security-Policy blocked, and what could not be loaded.
    package func problems() throws -> [String] { try carryOut("problems", returning: [String].self) }

    /// Returns the problems of the page, without those of a WebSocket whose wire was cut. Browsers name it differently.
    package func problemsBesidesCuts() throws -> [String] {
        try problems().filter { !$0.contains("WebSocket") && !$0.contains("ws://") }
    }

    /// Taps the middle of the first element that a CSS selector matches: with a finger if the viewport is a phone's,
    /// otherwise with a mouse. Throws if the element is covered by another one.
    package func tap(_ selector: String) throws { try carryOut("tap", ["selector": selector]) }

    /// Presses keys one after the other. A key is a character, or a name such as `Enter`, `ArrowLeft` or
    /// `Control+Enter`.
    package func press(_ keys: String...) throws { try carryOut("press", ["keys": keys]) }

    /// Types a text, key by key, where the focus is.
    package func type(_ text: String) throws { try carryOut("press", ["keys": text.map(String.init)]) }

    /// Chooses files in the `<input type="file">` that a CSS selector matches.
    package func choose(_ paths: [String], in selector: String) throws {
        try carryOut("choose", ["selector": selector, "files": paths])
    }

    /// Has the browser write downloads to a folder.
    package func saveDownloads(in folder: String) throws { try carryOut("downloads", ["folder": folder]) }

    /// Taps a link, waits until its download is complete, and returns the path of the file. Taps again after 15 s.
    package func download(_ selector: String) throws -> String {
        try carryOut("download", ["selector": selector], returning: String.self)
    }

    /// Sets the size of the page's viewport.
    package func use(_ viewport: Viewport) throws {
        try carryOut(
            "viewport",
            [
                "width": viewport.width, "height": viewport.height, "scale": viewport.scale,
                "phone": viewport.isPhone,
            ])
    }

    /// Sets the colour scheme that the person prefers.
    package func use(_ scheme: ColorScheme) throws { try carryOut("scheme", ["scheme": scheme.rawValue]) }

    /// Takes the network away from the page. A WebSocket that is open stays open.
    package func goOffline() throws { try carryOut("offline", ["offline": true]) }

    /// Gives the network back to the page.
    package func goOnline() throws { try carryOut("offline", ["offline": false]) }

    /// Writes a picture of the viewport, as PNG.
    package func writeScreenshot(to path: String) throws { try carryOut("screenshot", ["path": path]) }

    private func carryOut(_ command: String, _ parameters: [String: Any] = [:]) throws {
        _ = try carryOut(command, parameters, returning: Anything.self)
    }

    private func carryOut<Value: Decodable>(
        _ command: String, _ parameters: [String: Any] = [:], returning type: Value.Type
    ) throws -> Value {
        commandCount += 1
        let start = "{\"id\": \(commandCount), "
        let fields = parameters.merging(["id": commandCount, "command": command]) { _, field in field }
        driver.type(String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self))
        let line = try driver.line(where: { $0.hasPrefix(start) })
        do {
            return try JSONDecoder().decode(Answer<Value>.self, from: Data(line.utf8)).value
        } catch let failure as Child.Failure {
            throw Child.Failure(description: "\(version): \(failure)")
        } catch {
            throw Child.Failure(
                description: "\(version): \(parameters) gives no \(type): \(line.prefix(1_000))")
        }
    }

    /// The first line of the driver.
    private struct Start: Decodable {
        let version: String?
        let error: String?
    }

    /// Each other line of the driver.
    private struct Answer<Value: Decodable>: Decodable {
        let value: Value

        enum CodingKeys: CodingKey { case value, error }

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            if let error = try fields.decodeIfPresent(String.self, forKey: .error) {
                throw Child.Failure(description: error)
            }
            value = try fields.decode(Value.self, forKey: .value)
        }
    }

    /// A value that does not matter.
    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }
}
