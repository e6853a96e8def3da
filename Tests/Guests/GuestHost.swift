import Browsers
import ChildPrograms
import NighTestKit

private let browsers = Permits(1)

/// Runs a test that has a browser. One runs at a time, because a browser has many processes, and on threads of its own,
/// because it blocks while it waits.
func withBrowser(_ body: @Sendable () async throws -> Void) async throws {
    try await browsers.run { try await ThreadForEachJob.run { try await body() } }
}

/// A program that has invited a guest, with what its terminal shows.
final class GuestHost {
    let program: Child
    /// The address in the code that the terminal shows, which zbar has read.
    let url: String
    /// The name and port in that address.
    let name: String
    let port: Int

    /// Starts a program with `--web`, and waits for its code.
    ///
    /// - Parameter folder: where the program keeps what it keeps.
    init(_ program: String, _ arguments: [String], in folder: TemporaryFolder) throws {
        self.program = try Child(
            program, arguments + ["--web", "--name", "Puma", "-t", "tcp:mdns=off,web:port=0"],
            environment: [
                "XDG_DATA_HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "NO_COLOR": "1",
                "COLUMNS": "120", "LC_ALL": "C.UTF-8",
            ], reads: true)
        try self.program.line(with: "Not encrypted")
        let shown = self.program.lines
        let url = try Self.url(inCodeOf: shown)
        guard shown.contains(where: { $0.hasSuffix("open  \(url)") }),
            let match = url.wholeMatch(of: #/http:\/\/([^:\/]+):(\d+)\/#[a-z2-7]{26}/#),
            let port = Int(match.2)
        else { throw Child.Failure(description: "\(url) is not the address below the code: \(shown)") }
        self.url = url
        name = String(match.1)
        self.port = port
    }

    /// The address in the code that these lines of a terminal show.
    static func url(inCodeOf lines: [String]) throws -> String {
        try QRCodeReader.text(in: lines.filter { line in line.contains { "▀▄█".contains($0) } }, on: .dark)
    }
}

/// A wire between a browser and a host, which can be cut.
final class CuttableWire {
    private let cutter: Child
    private var count = 0
    let port: Int

    init(toPort target: Int) throws {
        cutter = try Child(BuiltPackages.root + "/Tests/Browsers/driver/cutter", ["\(target)"], reads: true)
        guard let port = Int(try cutter.line(where: { _ in true })) else {
            throw Child.Failure(description: "the wire has no port: \(cutter.lines)")
        }
        self.port = port
    }

    deinit { cutter.closeInput() }

    /// Cuts all connections at once.
    func cut() throws {
        count += 1
        cutter.type("")
        try cutter.line(with: "cut", occurrence: count)
    }
}
