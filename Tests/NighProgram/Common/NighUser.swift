import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// The option for a session on the loopback interface that only its address leads to. Tests that run at the same time
/// do not find each other there.
let byAddress = "-t tcp:interface=lo,mdns=off"
/// The option for a session on the loopback interface that others find with mDNS.
let byName = "-t tcp:interface=lo,mdns=embedded"

/// A user of `nigh` in these tests, with a data folder of their own, so that no real identity or peers are touched.
final class NighUser {
    let folder = TemporaryFolder()
    /// The folder with the user's identity and peers.
    var dataFolder: String { "\(folder.path)/nigh" }

    var environment: [String: String] {
        ["XDG_DATA_HOME": folder.path, "XDG_CONFIG_HOME": folder.path, "NO_COLOR": ""]
    }

    /// Options of a service of its own, by which a test's programs find each other and no others.
    static func meetingPlace() -> String { "\(byName) -s m\(UInt32.random(in: .min ... .max))" }

    /// Starts `nigh` with the words of `line`, and behind them those of `more`, which may contain blanks.
    func start(_ line: String = "", _ more: String..., reads: Bool = false, patience: Int = 60) throws
        -> Child
    {
        try start(line, more, reads: reads, patience: patience)
    }

    func start(_ line: String, _ more: [String], reads: Bool = false, patience: Int = 60) throws -> Child {
        let words = line.split(separator: " ").map(String.init) + more
        return try Child("nigh", words, environment: environment, reads: reads, patience: patience)
    }

    /// Runs `nigh` with these words until it ends, as `Child.finish` does.
    @discardableResult
    func run(
        _ line: String = "", _ more: String..., status: Int32? = 0, says words: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> NighCall {
        try start(line, more, reads: false, patience: 60).finish(
            status: status, says: words, sourceLocation: sourceLocation)
    }

    /// Runs `nigh`, and expects that it ends with this status and one sentence about what is wrong.
    @discardableResult
    func fail(
        _ line: String, _ more: String..., status: Int32 = 1, says words: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> NighCall {
        let call = try start(line, more, reads: false, patience: 60).finish(
            status: status, says: words, sourceLocation: sourceLocation)
        #expect(call.errors.count == 1, "\(line): \(call)", sourceLocation: sourceLocation)
        return call
    }

    /// The user's PeerID, with which the identity is made.
    func id() throws -> String { try #require(try run("identity --json").json["id"].string) }

    /// Writes the trust store, with these lines.
    func know(_ lines: String...) throws {
        try FileManager.default.createDirectory(
            atPath: dataFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let text = (["nigh-peers 1"] + lines).map { "\($0)\n" }.joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(dataFolder)/peers"))
        try #require(chmod("\(dataFolder)/peers", 0o600) == 0)
    }

    /// Opens a terminal window called `w`, in which the user runs `nigh`.
    func openTerminal(_ line: String, in windows: TerminalWindows) throws {
        try windows.open("w", line, environment: "LANG=C.UTF-8 XDG_DATA_HOME=\(folder.path)")
    }
}

/// A `nigh` that has printed, as JSON, the address at which it can be reached.
final class Listener {
    let user: NighUser
    let child: Child
    let address: String

    /// Starts `nigh` with the words of `line` and `more`, at `port` if it is given, and waits until it listens.
    init(_ line: String, _ more: String..., of user: NighUser = NighUser(), port: Int? = nil) throws {
        self.user = user
        let transport = byAddress + (port.map { ",port=\($0)" } ?? "")
        child = try user.start("\(line) \(transport) --json-lines", more)
        address = try #require(child.json(with: "\"addresses\":[\"")["addresses"][0].string)
    }

    var port: Int { get throws { try #require(Int(address.split(separator: ":").last ?? "")) } }

    /// Ends it as Ctrl-C does, and expects that it ends well.
    @discardableResult
    func end(sourceLocation: SourceLocation = #_sourceLocation) throws -> NighCall {
        try child.finish(after: SIGINT, sourceLocation: sourceLocation)
    }
}

extension Child {
    /// Waits until the program ends, after `signal` if there is one. Expects this exit status, unless it is nil, and
    /// `words` in its errors.
    @discardableResult
    func finish(
        after signal: Int32? = nil, status: Int32? = 0, says words: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> NighCall {
        if let signal { send(signal) }
        let call = try NighCall(finishing: self)
        if let status {
            #expect(call.status == status, "\(self.call): \(call)", sourceLocation: sourceLocation)
        }
        if let words {
            #expect(call.error.contains(words), "\(self.call): \(call)", sourceLocation: sourceLocation)
        }
        return call
    }

    /// Waits for the `occurrence`th line of standard output that contains all of `words`, and reads it as JSON.
    @discardableResult
    func json(with words: String..., occurrence: Int = 1) throws -> JSONValue {
        JSONValue(try line(occurrence: occurrence) { line in words.allSatisfy(line.contains) })
    }
}
