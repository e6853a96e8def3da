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

/// A `nigh receive` that has printed its address.
struct WaitingReceiver {
    let child: Child
    let address: String
    var port: String { String(address.split(separator: ":").last ?? "") }
}

extension TransfersFiles {
    /// Discovery is off, so that tests that run at the same time do not find each other.
    static var transportOptions: [String] { ["-t", "tcp:interface=lo,mdns=off"] }

    /// Slow enough that something can happen during the transfer.
    static var slowly: [String] { ["--inject", "rate=500k"] }
    /// Options for sending so slowly that a few megabytes do not arrive before a test has ended the transfer.
    static var endlessly: [String] { ["--inject", "rate=200k"] }

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

    /// The results of the summary that `nigh send --json` has printed for each file.
    func files(in call: NighCall) throws -> [[String: Any]] {
        try #require(try call.object()["files"] as? [[String: Any]])
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

    func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }

    /// Starts a receiver that stores files in the inbox and reports events as lines of JSON.
    func receive(_ arguments: String..., accepting policy: String = "any", port: String? = nil) throws
        -> WaitingReceiver
    {
        let options = port.map { ["-t", "tcp:interface=lo,mdns=off,port=\($0)"] } ?? Self.transportOptions
        let child = try receiver.start(
            ["receive", "--json-lines", "-n", "Puma", "--accept", policy, "--into", inbox.path] + options
                + arguments)
        let ready = try object(child.line(with: "\"ready\""))
        let address = try #require((ready["addresses"] as? [String])?.first)
        return WaitingReceiver(child: child, address: address)
    }

    /// Waits until the receiver reports that bytes are there. After a second it may report that there are none yet.
    func waitForBytes(_ child: Child) throws {
        var occurrence = 1
        while try object(child.line(with: "\"progress\"", occurrence: occurrence))["stored_bytes"] as? Int
            == 0
        {
            occurrence += 1
        }
    }

    func send(_ file: String, to waiting: WaitingReceiver, _ arguments: String...) throws -> NighCall {
        try sender.run(["send", waiting.address, file, "--json"] + Self.transportOptions + arguments)
    }
}
