import ChildPrograms
import Foundation
import Testing

@testable import nigh

/// Tests `nigh expose`, `nigh forward` and `nigh connect` as a user runs them. ForwardingTests has the connections.
@Suite(.callsPrograms) struct ForwardTests {
    private let user = NighUser()

    /// A `nigh expose` that the user's other programs may use.
    private func expose(_ port: UInt16, accept: String = "paired") throws -> Listener {
        try Listener("expose --accept \(accept) \(port)", of: user)
    }

    private func connect(_ exposing: Listener, _ port: UInt16, of other: NighUser? = nil) throws -> Child {
        try (other ?? user).start("connect \(exposing.address) \(byAddress) --port \(port)", reads: true)
    }

    @Test func `A forwarded port carries bytes, and the end of each direction`() throws {
        let server = try BoundSocket().listens()
        let exposing = try expose(server.port)
        let forwarding = try user.start(
            "forward \(exposing.address) \(byAddress) --json-lines --wait 1m 0:\(server.port)")
        let port = UInt16(try #require(forwarding.json(with: "\"listening\"")["local_port"].int))

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

        for child in [forwarding, exposing.child] {
            try child.line(with: "\"closed\"")
            #expect(try child.finish(after: SIGINT).summary["opened"].int == 1)
        }
    }

    @Test func `The standard input and output of nigh connect are a connection, as ssh uses it`() throws {
        let server = try BoundSocket().listens()
        let exposing = try expose(server.port)
        let call = try connect(exposing, server.port)
        let accepted = try LoopbackSocket(acceptedBy: server)
        accepted.write("SSH-2.0-puma\n")
        try call.line(with: "SSH-2.0-puma")
        call.type("SSH-2.0-lynx")
        call.closeInput()
        #expect(accepted.readAll() == "SSH-2.0-lynx\n")
        accepted.write("bye\n")
        accepted.finish()
        let end = try call.finish()
        #expect(end.lines == ["SSH-2.0-puma", "bye"] && end.errors.isEmpty, "\(end)")
        try exposing.end()
    }

    @Test func `A port that is not exposed, or nobody's, is an error that says what to do`() throws {
        try withClosedPort { closed in
            let exposing = try expose(closed)
            for (port, words) in [
                (closed, "no program listens on port \(closed) there"),
                (closed ^ 1, "run `nigh expose \(closed ^ 1)` there"),
            ] {
                let call = try connect(exposing, port).finish(status: 1, says: words)
                #expect(call.errors.count == 1, "\(call)")
            }
            try exposing.child.line(with: "refused", "\"port\":\(closed)}", "connection")
        }
    }

    @Test func `A device that is not paired is told to pair, unless every device may connect`() throws {
        let server = try BoundSocket().listens()
        let stranger = NighUser()
        let careful = try expose(server.port)
        let refused = try connect(careful, server.port, of: stranger)
            .finish(status: 1, says: "run `nigh pair`")
        #expect(refused.errors.count == 1, "\(refused)")
        let open = try expose(server.port, accept: "any")
        let call = try connect(open, server.port, of: stranger)
        try LoopbackSocket(acceptedBy: server).write("welcome\n")
        try call.line(with: "welcome")
    }

    @Test func `A port that another program has is an error at once`() throws {
        let taken = try BoundSocket().listens()
        try user.fail(
            "forward tcp://127.0.0.1:1 \(taken.port):22 \(byAddress)",
            says: "another program listens on 127.0.0.1 port \(taken.port)")
    }
}
