import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh host` as a user runs it.
@Suite(.callsPrograms) struct HostTests {
    private let user = NighUser()

    @Test func `It prints its identity and addresses, its guests, and a summary at Ctrl-C`() throws {
        let host = try Listener("host --name Puma")
        try user.run("ping \(host.address) \(byAddress) -c 2 -i 0 --timeout 1m --name Lynx")
        try host.child.line(with: "\"left\"")
        let end = try host.end()
        #expect(end.objects[0]["name"].string == "Puma" && end.objects[0]["peer_id"].string?.count == 52)
        let changes = end.objects("guest")
        #expect(changes.map { $0["change"].string } == ["came", "left"])
        let (guest, cause) = (changes[1]["peer"], changes[1]["cause"])
        #expect(guest["name"].string == "Lynx" && guest["purpose"].string == "ping")
        #expect(cause.string == "peer left" && end.summary["pinged_by"].int == 1)
    }

    @Test func `The text output says the same, and a stranger's name cannot control the terminal`() throws {
        let host = try user.start("host \(byAddress) --name Puma --once")
        let address = try #require(try host.line(with: "reached at").split(separator: " ").last)
        try NighUser().run("ping \(address) \(byAddress) -c 1 --timeout 1m --name \u{202E}Lynx")
        let lines = try host.finish().lines
        #expect(lines[0].hasPrefix("Puma (") && lines[0].contains("Ctrl-C ends it"))
        #expect(lines.contains { $0.contains("is connected for nigh ping, over tcp") }, "\(lines)")
        #expect(!lines.joined().contains("\u{202E}"))
        #expect(lines.last == "guests: 1 to ping, 0 to measure throughput (0 runs)")
    }

    @Test func `With --json it prints one object, and with --once it ends with its first guest`() throws {
        let port = try BoundSocket.freePort()
        let host = try user.start("host --once --json \(byAddress),port=\(port)")
        try NighUser().run("ping tcp://127.0.0.1:\(port) --until \(byAddress)")
        #expect(try host.finish().json["guests"].list.count == 2)
    }

    @Test func `A host answers while nobody reads its output, and loses nothing of it`() throws {
        let path = "\(user.folder.path)/output"
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let filler = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        while write(filler, [UInt8](repeating: UInt8(ascii: "\n"), count: 4_096), 4_096) > 0 {}
        let port = try BoundSocket.freePort()
        let call = "exec \(BuiltPrograms.path(of: "nigh")) host \(byAddress),port=\(port) --json-lines"
        let host = try Child("/bin/sh", ["-c", "\(call) >\(path)"], environment: user.environment)
        try NighUser().run("ping tcp://127.0.0.1:\(port) --until \(byAddress)")
        host.send(SIGINT)
        close(filler)
        _ = fcntl(reader, F_SETFL, 0)
        let output = FileHandle(fileDescriptor: reader).readDataToEndOfFile()
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains { $0.contains("\"came\"") } && lines.last?.contains("\"summary\"") == true)
        try host.finish()
    }

    @Test func `A host that was started with nohup goes on when its terminal is gone`() throws {
        let call = "exec \(BuiltPrograms.path(of: "nigh")) host \(byAddress) --json-lines"
        let host = try Child("/bin/sh", ["-c", "trap '' HUP; \(call)"], environment: user.environment)
        let address = try #require(host.json(with: "\"listening\"")["addresses"][0].string)
        host.send(SIGHUP)
        try NighUser().run("ping \(address) -c 1 --timeout 1m \(byAddress)")
        try host.finish(after: SIGTERM)
    }

    @Test func `Another service is reached only by programs that name it`() throws {
        let host = try Listener("host h\(UInt32.random(in: 0 ... .max))")
        let service = host.child.call[2]
        let ping = "ping \(host.address) \(byAddress) -c 1 --timeout 1m --json"
        let stranger = try user.run(ping, status: 1)
        #expect(stranger.json["error"]["cause"].string == "wrong service", "\(stranger)")
        try user.run("\(ping) -s \(service)")
    }
}

/// Tests `nigh discover` with another program that it can find, and `nigh status`.
@Suite(.callsPrograms) struct DiscoverTests {
    private let user = NighUser()
    private let other = NighUser()
    private let session = NighUser.meetingPlace()

    private func peer() throws -> Child {
        try other.start("pair --name Puma -v --timeout 1h \(session)")
    }

    /// Discovers until Puma is seen, and then as Ctrl-C ends it.
    private func seen(by viewer: NighUser, _ options: String) throws -> NighCall {
        let watching = try viewer.start("discover --timeout 1h -v \(options) \(session)")
        try watching.error(with: "Puma (", "can be reached")
        return try watching.finish(after: SIGINT)
    }

    @Test func `Peers that appear and disappear are reported, and Ctrl-C ends it with a summary`() throws {
        let watching = try user.start("discover --json-lines \(session)")
        let puma = try peer()
        try watching.line(with: "\"event\":\"found\"", "\"name\":\"Puma\"")
        try puma.finish(after: SIGINT, status: 1)
        try watching.line(with: "\"event\":\"lost\"", "\"name\":\"Puma\"")
        let call = try watching.finish(after: SIGINT)
        #expect(call.summary["peers"].list.isEmpty && !call.summary["peers"].isNull)
    }

    @Test func `With --once it prints a table or one object of the peers that it sees`() throws {
        let puma = try peer()
        try puma.error(with: "others see this session")
        let table = try seen(by: user, "--once")
        #expect(table.lines[0].hasPrefix("NAME") && table.lines[1].hasPrefix("Puma  "), "\(table)")
        // Another program of one's own user is no stranger.
        for viewer in [user, other] {
            let peers = try seen(by: viewer, "--once --json").json["peers"].list
            #expect(peers.map { $0["name"].string } == ["Puma"])
            #expect(peers.map { $0["own"].bool } == [viewer === other])
        }
        try puma.finish(after: SIGTERM, status: nil)
    }

    @Test func `A host in the transport's options is seen without mDNS, until it ends`() throws {
        let host = try Listener("host --name Puma")
        let watching = try user.start(
            "discover --json-lines -v \(byAddress),host=127.0.0.1,port=\(host.port)")
        try watching.line(with: "\"event\":\"found\"", "\"name\":\"Puma\"")
        try host.end()
        try watching.line(with: "\"event\":\"lost\"", "\"name\":\"Puma\"")
        try watching.error(with: "nobody listens there")
        try watching.finish(after: SIGINT)
    }

    @Test func `If nobody is there, the status is 1, and the output points to doctor`() throws {
        try user.fail("discover --once --timeout 100ms --json \(session)", says: "nigh doctor")
    }

    @Test func `The status shows who the user is, which programs run, and who is near`() throws {
        let fresh = try user.run("status -d 0")
        #expect(fresh.lines[0].contains("without an identity"), "\(fresh)")
        #expect(access(user.dataFolder, F_OK) != 0, "it makes none")
        let hosts = try [(user, "Otter"), (other, "Puma")].map { user, name in
            let host = try user.start("host --name \(name) --json-lines \(session)")
            try host.line(with: "\"listening\"")
            return host
        }
        let json = try user.run("status --json -d 5 \(session)").json
        #expect(try json["id"].string == user.id())
        #expect(json["programs"].list.count == 1)
        #expect(json["near"].list.compactMap { $0["name"].string }.sorted() == ["Otter", "Puma"])
        try user.run("status --json-lines -d 0 \(session)")
        for host in hosts { try host.finish(after: SIGINT) }
    }
}
