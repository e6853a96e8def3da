import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests `nigh expose`, `nigh forward` and `nigh connect` as a user runs them.
@Suite(.callsPrograms) struct ForwardTests {
    private let user = NighUser()

    /// A `nigh expose` on the loopback interface that discovery does not show, and its address.
    private func expose(_ ports: UInt16..., accept: String = "paired") throws -> (Child, address: String) {
        let arguments = ["expose", "-t", HostInTests.transport, "--json-lines", "--accept", accept]
        let child = try user.start(arguments + ports.map { "\($0)" })
        let line = try child.line(with: "\"listening\"")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return (child, try #require((object?["addresses"] as? [String])?.first))
    }

    private func forward(_ address: String, _ mappings: String..., of other: NighUser? = nil) throws -> Child
    {
        try (other ?? user).start(
            ["forward", address, "-t", HostInTests.transport, "--json-lines", "--wait", "1m"] + mappings)
    }

    private func localPort(_ child: Child) throws -> UInt16 {
        let line = try child.line(with: "\"listening\"")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return UInt16(try #require(object?["local_port"] as? Int))
    }

    @Test("A forwarded port carries bytes, the end of each direction, and a reset, to a program and back")
    func forwarding() throws {
        let server = try BoundSocket().listens()
        let (exposing, address) = try expose(server.port)
        let forwarding = try forward(address, "0:\(server.port)")
        let port = try localPort(forwarding)

        let client = try LoopbackSocket(to: port)
        let accepted = try LoopbackSocket(acceptedBy: server)
        accepted.write("hello")
        #expect(client.read(5) == "hello")
        client.write("question")
        client.finish()
        #expect(accepted.readAll() == "question")
        accepted.write("answer")
        accepted.finish()
        #expect(client.readAll() == "answer")

        let second = try LoopbackSocket(to: port)
        let other = try LoopbackSocket(acceptedBy: server)
        second.write("x")
        #expect(other.read(1) == "x")
        second.reset()
        #expect(other.readAll() == nil)

        for (child, command) in [(forwarding, "forward"), (exposing, "expose")] {
            try child.line(with: "\"closed\"", occurrence: 2)
            child.send(SIGINT)
            let call = try NighCall(finishing: child)
            #expect(call.status == 0, "\(call)")
            try call.expectSchema(command, lines: true)
            #expect(try call.objects().last?["opened"] as? Int == 2)
        }
    }

    @Test("The standard input and output of nigh connect are a connection, as ssh uses it")
    func connect() throws {
        let server = try BoundSocket().listens()
        let (exposing, address) = try expose(server.port)
        let call = try user.start(
            ["connect", address, "-t", HostInTests.transport, "--port", "\(server.port)"], reads: true)
        let accepted = try LoopbackSocket(acceptedBy: server)
        accepted.write("SSH-2.0-puma\n")
        try call.line(with: "SSH-2.0-puma")
        call.type("SSH-2.0-lynx")
        call.closeInput()
        #expect(accepted.readAll() == "SSH-2.0-lynx\n")
        accepted.write("bye\n")
        accepted.finish()
        let end = try NighCall(finishing: call)
        #expect(end.status == 0 && end.lines == ["SSH-2.0-puma", "bye"] && end.errors.isEmpty, "\(end)")
        exposing.send(SIGINT)
        #expect(try NighCall(finishing: exposing).status == 0)
    }

    @Test("A port that is not exposed, or on which nobody listens, is an error that says what to do there")
    func refusals() throws {
        try withClosedPort { closed in
            let (exposing, address) = try expose(closed)
            defer { exposing.send(SIGINT) }
            func connect(_ port: UInt16) throws -> NighCall {
                try user.run("connect", address, "-t", HostInTests.transport, "--port", "\(port)")
            }
            let silent = try connect(closed)
            #expect(silent.status == 1 && silent.errors.count == 1, "\(silent)")
            #expect(silent.errors[0].contains("no program listens on port \(closed) there"))
            let other = try connect(closed ^ 1)
            #expect(other.status == 1 && other.errors.count == 1, "\(other)")
            #expect(other.errors[0].contains("run `nigh expose \(closed ^ 1)` there"))
            let line = try exposing.line(with: "refused", "\"port\":\(closed)}")
            #expect(line.contains("connection"))
        }
    }

    @Test("A device that is not paired is told to pair, and may connect only if every device may")
    func unpaired() throws {
        let server = try BoundSocket().listens()
        let stranger = NighUser()
        func connect(_ address: String) throws -> Child {
            try stranger.start(
                ["connect", address, "-t", HostInTests.transport, "--port", "\(server.port)"], reads: true)
        }
        let (careful, address) = try expose(server.port)
        let refused = try NighCall(finishing: connect(address))
        #expect(refused.status == 1 && refused.errors.count == 1, "\(refused)")
        #expect(refused.errors[0].contains("run `nigh pair`"))
        careful.send(SIGINT)
        let (open, second) = try expose(server.port, accept: "any")
        let call = try connect(second)
        try LoopbackSocket(acceptedBy: server).write("welcome\n")
        try call.line(with: "welcome")
        call.closeInput()
        _ = try call.end()
        open.send(SIGINT)
    }

    @Test("A port that another program has is an error at once, and so is a mapping or port that is none")
    func mistakes() throws {
        let taken = try BoundSocket().listens()
        let busy = try user.run(
            "forward", "tcp://127.0.0.1:1", "\(taken.port):22", "-t", HostInTests.transport)
        #expect(busy.status == 1 && busy.errors.count == 1, "\(busy)")
        #expect(busy.errors[0].contains("another program listens on 127.0.0.1 port \(taken.port)"))
        for mapping in ["x", "22:", ":22", "1:2:3", "8022:0", "70000", "8022:ssh"] {
            let call = try user.run("forward", "puma", mapping)
            #expect(call.status == 2 && call.errors.joined().contains("LOCALPORT:PORT"), "\(call)")
        }
        for arguments in [
            ["connect", "puma"], ["connect", "puma", "--port", "0"], ["expose"], ["expose", "ssh"],
            ["forward", "puma"], ["connect", "puma", "--port", "22", "--json"],
        ] {
            let call = try user.run(arguments)
            #expect(call.status == 2, "\(arguments): \(call)")
        }
    }
}
