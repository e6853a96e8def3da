import Foundation
import NighCore
import NighLoop
import NighSystem
import NighTestKit
import Testing

@testable import nigh

extension NighCall {
    /// The check of `nigh doctor --json` with this ID.
    func check(_ id: String) -> JSONValue {
        json["checks"].list.first { $0["id"].string == id } ?? JSONValue("")
    }

    /// Its verdict: `pass`, `warn` or `fail`.
    func verdict(_ id: String) -> String? { check(id)["verdict"].string }
}

/// Tests `nigh doctor` without a peer, as a user runs it.
@Suite(.callsPrograms) struct DoctorTests {
    private let user = NighUser()

    /// Runs it, and expects that one check fails, with these words in its finding or advice.
    private func expectFailure(of id: String, says words: String, _ options: String = "") throws {
        let call = try user.run("doctor --json \(byAddress) \(options)", status: 1)
        let check = call.check(id)
        #expect(check["verdict"].string == "fail" && call.json["failed"].int == 1, "\(call)")
        let said = "\(check["finding"].string ?? ""); \(check["advice"].string ?? "")"
        #expect(words.isEmpty || said.contains(words), "\(said)")
    }

    @Test func `A healthy machine passes every check in its order, and nothing is created`() throws {
        let call = try user.run("doctor \(byName)")
        let ids = call.lines.map { $0.split(separator: " ", maxSplits: 2) }
            .filter { $0.count == 3 && ["pass", "warn", "fail"].contains($0[0]) }.map { $0[1] }
        #expect(
            ids == [
                "identity.file", "trust.store", "limits.descriptors", "libuv", "tcp.interfaces", "tcp.port",
                "tcp.reach", "tcp.firewall", "tcp.multicast", "tcp.embedded-mdns", "tcp.own-service",
            ], "\(call.lines)")
        #expect(access(user.dataFolder, F_OK) != 0)
        let json = try user.run("doctor --json \(byAddress)")
        #expect(json.json["failed"].int == 0 && json.verdict("tcp.port") == "pass")
        #expect(try user.run("doctor --json-lines \(byAddress)").summary["type"].string == "summary")
    }

    @Test func `A port that another program uses is a failure that names it`() throws {
        let listener = try BoundSocket().listens()
        let call = try user.run("doctor --json \(byAddress),port=\(listener.port)", status: 1)
        #expect(call.verdict("tcp.port") == "fail")
        #expect(call.check("tcp.port")["advice"].string?.contains("port \(listener.port) is in use") == true)
    }

    @Test(
        arguments: [
            ("nonsense", 0o644, "identity.mode", "chmod 600"),
            ("nonsense", 0o600, "identity.key", "restore it from a backup"),
            ("", 0o600, "identity.key", "restore it from a backup"),
        ] as [(String, mode_t, String, String)])
    func `An exposed or damaged identity is named with its remedy`(
        _ text: String, _ mode: mode_t, _ id: String, _ cure: String
    ) throws {
        let path = user.folder.file("key.pem", text, mode: mode)
        try expectFailure(of: id, says: cure, "--identity \(path)")
    }

    @Test func `An identity in a wrong place is a failure`() throws {
        let folder = TemporaryFolder()
        let file = folder.file("file", "")
        try expectFailure(
            of: "identity.file", says: "\(file) is no folder", "--identity \(file)/key.pem")
        try #require(symlink("nowhere", "\(folder.path)/link") == 0)
        try expectFailure(of: "identity.file", says: "", "--identity \(folder.path)/link")
        _ = try IdentityFile(path: "\(folder.path)/key.pem").load()
        chmod(folder.path, 0o777)
        try expectFailure(
            of: "identity.mode", says: "chmod go-w \(folder.path)", "--identity \(folder.path)/key.pem")
    }

    @Test func `An invalid known-peers file is named`() throws {
        try user.know()
        _ = user.folder.file("nigh/peers", "nonsense\n")
        try expectFailure(of: "trust.store", says: "")
    }

    @Test func `Ctrl-C ends it while it searches for a peer`() throws {
        let child = try user.start("doctor \(byAddress) --peer nobody --timeout 10m")
        try child.line(with: "tcp.mdns")
        #expect(try child.finish(after: SIGINT, status: 1).errors == ["nigh: interrupted"])
    }

    @Test func `Few descriptors cause a warning with the number that is possible`() {
        #expect(SystemCheck.descriptors(soft: 1_024, hard: 4_096).verdict == .pass)
        #expect(SystemCheck.descriptors(soft: .max, hard: .max).finding == "no limit")
        #expect(SystemCheck.descriptors(soft: 64, hard: 4_096).advice == "`ulimit -n 1024`")
        #expect(SystemCheck.descriptors(soft: 64, hard: 512).advice == "`ulimit -n 512`")
        #expect(SystemCheck.descriptors(soft: 64, hard: 64).advice?.contains("limits.conf") == true)
    }
}

/// Tests `nigh doctor --peer`, with a session of this process as the peer.
@Suite(.callsPrograms) struct DoctorPeerTests {
    private let user = NighUser()
    private let service = ServiceName("d\(UInt32.random(in: .min ... .max))") ?? "doctor"

    private func doctor(_ peer: String, _ options: String = "", status: Int32 = 0) throws -> NighCall {
        try user.run("doctor --json \(byAddress) --peer \(peer) \(options)", status: status)
    }

    private func host(_ security: SessionSecurity = .encrypted) throws -> ForeignSession {
        try ForeignSession("Puma", service: service, security: security)
    }

    @Test func `An address is checked through every stage, unnoticed there`() async throws {
        let host = try host()
        let call = try doctor(host.address, "-s \(service)")
        for stage in ["resolve", "address", "connect", "tls", "hello", "version", "ping", "packets", "path"] {
            #expect(call.verdict("peer.\(stage)") == "pass", "\(stage)")
        }
        #expect(call.json["path"]["peer"].string == "\(host.session.id)")
        #expect(try call.json["path"]["address"].string == host.address)
        await host.end()
        let events = host.probe.events.map { "\($0)" }
        for event in ["connecting(", "connected(", "invited("] {
            #expect(!events.contains { $0.hasPrefix(event) }, "\(events)")
        }
    }

    @Test func `A peer is found by name, and each of its addresses is tried`() async throws {
        let host = try ForeignSession("Puma", service: service, over: "tcp:interface=lo,mdns=embedded")
        try #require(
            host.probe.wait { $0.events.contains { if case .advertised = $0 { true } else { false } } })
        let call = try user.run("doctor --json \(byName) --peer Puma -s \(service)")
        #expect(call.verdict("peer.found") == "pass" && call.json["path"].isObject)
        await host.end()
    }

    @Test func `Another service is named, with the option that selects it`() async throws {
        let host = try host()
        let call = try doctor(host.address, status: 1)
        #expect(call.verdict("peer.tls") == "pass")
        #expect(call.check("peer.hello")["advice"].string == "`--service \(service)`")
        #expect(call.json["path"].isNull)
        await host.end()
    }

    @Test func `A peer that accepts only paired devices is a warning, not a failure`() async throws {
        let host = try host(.paired)
        let call = try doctor(host.address, "-s \(service)")
        let warnings = call.json["checks"].list.filter { $0["verdict"].string == "warn" }
        #expect(warnings.contains { $0["finding"].string?.contains("paired devices only") == true })
        await host.end()
    }

    @Test func `Without encryption the advice names the option, which is then a warning`() async throws {
        let host = try host(.none)
        let call = try doctor(host.address, "-s \(service)", status: 1)
        #expect(call.check("peer.tls")["advice"].string == "`--security none`", "\(call)")
        let plain = try doctor(host.address, "-s \(service) --security none")
        #expect(plain.verdict("peer.tls") == "warn")
        await host.end()
    }

    @Test func `If nobody listens, or another kind of program does, the stage that fails is named`() throws {
        let closed = try withClosedPort { try doctor("tcp://127.0.0.1:\($0)", status: 1) }
        #expect(closed.verdict("peer.address") == "fail" && closed.verdict("peer.connect") == "fail")
        let listener = try BoundSocket().listens()
        let child = try user.start("doctor --json \(byAddress) --peer tcp://127.0.0.1:\(listener.port)")
        try LoopbackSocket(acceptedBy: listener).write("HTTP/1.1 400 Bad Request\r\n\r\n")
        let tls = try child.finish(status: 1).check("peer.tls")
        #expect(
            tls["verdict"].string == "fail" && tls["advice"].string?.contains("another") == true, "\(tls)")
    }

    @Test func `A name that nobody has, and an address of another transport, are reported`() throws {
        #expect(try doctor("Nobody", "--timeout 100ms", status: 1).verdict("peer.found") == "fail")
        let other = try doctor("memory://table-1", status: 1)
        #expect(other.check("peer.resolve")["advice"].string == "name its transport: --transport memory")
    }
}
