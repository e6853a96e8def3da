import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// A test suite in which one user sends files from the folder `files` to another user, who receives them in `inbox`.
protocol TransfersFiles {
    var sender: NighUser { get }
    var receiver: NighUser { get }
    var files: TemporaryFolder { get }
    var inbox: TemporaryFolder { get }
}

extension TransfersFiles {
    /// Options for sending so slowly that a few megabytes do not arrive before a test has ended the transfer.
    static var endlessly: String { "--inject rate=200k" }

    func path(_ name: String) -> String { "\(files.path)/\(name)" }
    func received(_ name: String) -> String { "\(inbox.path)/\(name)" }

    /// Creates a file to send.
    @discardableResult
    func file(_ name: String, bytes count: Int) throws -> Data {
        var state = UInt64(count) &+ 88_172_645_463_325_252
        var data = Data(capacity: count + 8)
        while data.count < count {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            withUnsafeBytes(of: state) { data.append(contentsOf: $0) }
        }
        data = data.prefix(count)
        try data.write(to: URL(fileURLWithPath: path(name)))
        return data
    }

    /// The path of the incomplete data of a file that was offered by itself.
    func data(of name: String) throws -> String {
        let part = received("\(name).part")
        let names = try FileManager.default.contentsOfDirectory(atPath: part).filter { $0 != "note" }
        #expect(names.count == 1)
        return "\(part)/\(try #require(names.first))"
    }

    /// Creates a folder with files in a folder, an empty one, and a link, which is not sent.
    func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(
            atPath: path("\(name)/deep/empty"), withIntermediateDirectories: true)
        try file("\(name)/one", bytes: 1_500_000)
        try file("\(name)/deep/two", bytes: 70_000)
        try file("\(name)/deep/nothing", bytes: 0)
        try #require(symlink("one", path("\(name)/link")) == 0)
    }

    func content(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

    /// The names of the files in the inbox.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: inbox.path).sorted()
    }

    /// Starts a receiver that stores files in the inbox and reports events as lines of JSON.
    func receive(_ options: String = "", accepting policy: String = "any", port: Int? = nil) throws
        -> Listener
    {
        try Listener(
            "receive -n Puma --accept \(policy) --into \(inbox.path) \(options)", of: receiver, port: port)
    }

    /// Waits until the receiver reports that bytes are there. After a second it may report that there are none yet.
    func waitForBytes(_ waiting: Listener) throws {
        var occurrence = 1
        while try waiting.child.json(with: "\"progress\"", occurrence: occurrence)["stored_bytes"].int == 0 {
            occurrence += 1
        }
    }

    /// Sends files, by their names with blanks in between, and returns the summary.
    @discardableResult
    func send(
        _ names: String, to waiting: Listener, _ options: String = "", status: Int32 = 0,
        says words: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> NighCall {
        try startSending(names, to: waiting, "--json \(options)").finish(
            status: status, says: words, sourceLocation: sourceLocation)
    }

    /// Starts to send files, or what a test types if the name is "-".
    func startSending(_ names: String, to waiting: Listener, _ options: String = "", by user: NighUser? = nil)
        throws
        -> Child
    {
        let paths = names.split(separator: " ").map { $0 == "-" ? "-" : path("\($0)") }.joined(separator: " ")
        return try (user ?? sender).start(
            "send \(waiting.address) \(paths) \(byAddress) \(options)", reads: names == "-")
    }

    /// Sends `big`, and ends the sender with `signal` once the receiver has something of it.
    @discardableResult
    func interrupt(_ signal: Int32, to waiting: Listener, _ options: String = "") throws -> NighCall {
        try file("big", bytes: 4_000_000)
        let sending = try startSending("big", to: waiting, "\(Self.endlessly) \(options)")
        try waitForBytes(waiting)
        return try sending.finish(after: signal, status: signal == SIGKILL ? -SIGKILL : 1)
    }
}
