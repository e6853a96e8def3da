import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// A browser that opens one page, without a window.
enum Browser {
    /// The results of a visit: the exit status, the document that the page's scripts have made, and the lines of
    /// standard error.
    typealias Visit = (status: Int32, document: String, errors: [String])

    /// Opens a page, and returns when the browser has ended. A browser may hang when it starts or ends, so a second one
    /// is tried if the first had to be ended.
    static func visit(_ address: String, _ options: [String]) throws -> Visit {
        var visit = try attempt(address, options)
        if [124, 137, -SIGKILL].contains(visit.status) { visit = try attempt(address, options) }
        #expect(visit.status == 0, "\(visit.errors)")
        return visit
    }

    /// Opens a page in a browser with a folder of its own, for at most five minutes.
    private static func attempt(_ address: String, _ options: [String]) throws -> Visit {
        let folder = TemporaryFolder()
        let browser = try Child(
            "/usr/bin/timeout",
            [
                "-k", "5", "300", "/usr/bin/chromium", "--headless", "--no-sandbox", "--disable-gpu",
                "--user-data-dir=\(folder.path)/browser",
            ] + options + ["--dump-dom", address], environment: ["HOME": folder.path], patience: 400)
        let (status, errors) = try browser.end()
        return (status, browser.lines.joined(separator: "\n"), errors)
    }
}
