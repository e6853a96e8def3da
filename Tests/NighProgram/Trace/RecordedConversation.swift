import ChildPrograms
import Glibc
import Testing

/// Two `nigh trace` that exchange messages over the loopback interface, by address, without discovery.
struct RecordedConversation {
    /// The call with options of either side.
    static let trace = "trace \(byAddress) --identity ephemeral"

    let accepting: Child
    /// The address of the accepting side.
    let address: String

    /// Starts the accepting side, with these additional options.
    init(_ options: String = "") throws {
        accepting = try NighUser().start("\(Self.trace) -n Puma --accept --json-lines \(options)")
        address = try #require(accepting.json(with: "\"addresses\":[\"")["addresses"][0].string)
    }

    /// Writes a whole conversation into the record at `path`.
    static func record(to path: String, _ options: String = "") throws {
        let conversation = try RecordedConversation("--record \(path) \(options)")
        try conversation.call()
        try conversation.accepting.line(with: "\"event\":\"ended\"")
        try conversation.end()
    }

    /// Makes another user call with these options, and leave once it has the answers to its invitation and its ping.
    @discardableResult
    func call(_ options: String = "", to address: String? = nil) throws -> NighCall {
        let calling = try NighUser().start(
            "\(Self.trace) -n Lynx --connect \(address ?? self.address) --json-lines \(options)")
        try calling.line(with: "\"frame\":\"pong\"", "\"direction\":\"in\"")
        try calling.line(with: "\"frame\":\"accept\"")
        return try calling.finish(after: SIGINT)
    }

    /// Ends the accepting side as Ctrl-C does.
    @discardableResult
    func end() throws -> NighCall { try accepting.finish(after: SIGINT) }
}

extension NighCall {
    /// The frames with this name in this direction that `nigh trace --json-lines` has shown.
    func frames(_ name: String, _ direction: String) -> [JSONValue] {
        objects.filter { $0["frame"].string == name && $0["direction"].string == direction }
    }
}
