import ChildPrograms
import Testing

/// Two `nigh trace` that exchange messages over the loopback interface, by address, without discovery.
struct RecordedConversation {
    static let transport = "tcp:interface=lo,mdns=off"

    let puma = NighUser()
    let lynx = NighUser()
    let accepting: Child
    /// The address of the accepting side.
    let address: String

    /// Starts the accepting side, with these additional options.
    init(_ options: String...) throws {
        accepting = try puma.start(
            [
                "trace", "-t", Self.transport, "--identity", "ephemeral", "-n", "Puma", "--accept",
                "--json-lines",
            ] + options)
        let line = try accepting.line(with: "tcp://127.0.0.1:")
        let rest = line.split(separator: "tcp://127.0.0.1:", maxSplits: 1)[1]
        address = "tcp://127.0.0.1:" + rest.prefix { $0.isNumber }
    }

    /// Makes another user call with these options, and leave once it has the answers to its invitation and its ping.
    @discardableResult
    func call(_ options: String..., to address: String? = nil) throws -> NighCall {
        let calling = try lynx.start(
            [
                "trace", "-t", Self.transport, "--identity", "ephemeral", "-n", "Lynx", "--connect",
                address ?? self.address, "--json-lines",
            ] + options)
        try calling.line(with: "\"frame\":\"pong\"", "\"direction\":\"in\"")
        try calling.line(with: "\"frame\":\"accept\"")
        calling.send(2)
        return try NighCall(finishing: calling)
    }

    /// Ends the accepting side as Ctrl-C does.
    func end() throws -> NighCall {
        accepting.send(2)
        return try NighCall(finishing: accepting)
    }
}
