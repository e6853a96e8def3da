import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh host` as a user runs it.
@Suite(.callsPrograms) struct HostTests {
    private let user = NighUser()

    @Test("It prints at once its identity and addresses, then its guests, and a summary at Ctrl-C")
    func guests() throws {
        let host = try HostInTests("--name", "Puma")
        let call = try user.run(
            "ping", host.address, "-t", HostInTests.transport, "-c", "2", "-i", "0", "--timeout", "1m",
            "--name", "Lynx")
        #expect(call.status == 0, "\(call)")
        try host.child.line(with: "\"left\"")
        let end = try host.end()
        #expect(end.status == 0)
        try end.expectSchema("host", lines: true)
        let objects = try end.objects()
        #expect(objects[0]["name"] as? String == "Puma" && (objects[0]["peer_id"] as? String)?.count == 52)
        let changes = objects.filter { $0["type"] as? String == "guest" }
        #expect(changes.map { $0["change"] as? String } == ["came", "left"])
        let guest = changes.last?["peer"] as? [String: Any]
        #expect(guest?["name"] as? String == "Lynx" && guest?["purpose"] as? String == "ping")
        #expect(changes.last?["cause"] as? String == "peer left")
        #expect(objects.last?["pinged_by"] as? Int == 1)
    }

    @Test("The text output says the same, and a stranger's name cannot control the terminal")
    func words() throws {
        let host = try user.start("host", "-t", HostInTests.transport, "--name", "Puma", "--once")
        let address = try #require(try host.line(with: "reached at").split(separator: " ").last)
        let call = try NighUser().run(
            "ping", "\(address)", "-t", HostInTests.transport, "-c", "1", "--timeout", "1m",
            "--name", "\u{202E}Lynx")
        #expect(call.status == 0)
        let end = try NighCall(finishing: host)
        #expect(end.status == 0)
        #expect(
            end.lines.first?.hasPrefix("Puma (") == true
                && end.lines.first?.contains("Ctrl-C ends it") == true)
        #expect(end.lines.contains { $0.contains("is connected for nigh ping, over tcp") }, "\(end.lines)")
        #expect(!end.lines.joined().contains("\u{202E}"))
        #expect(end.lines.last == "guests: 1 to ping, 0 to measure throughput (0 runs)")
    }

    @Test("With --json it prints one object, and with --once it ends with its first guest")
    func once() throws {
        let port = try FreePort.find()
        let host = try user.start("host", "--once", "--json", "-t", "\(HostInTests.transport),port=\(port)")
        let call = try NighUser().run(
            "ping", "tcp://127.0.0.1:\(port)", "--until", "-t", HostInTests.transport)
        #expect(call.status == 0, "\(call)")
        let end = try NighCall(finishing: host)
        #expect(end.status == 0)
        try end.expectSchema("host")
        #expect((try end.object()["guests"] as? [Any])?.count == 2)
    }

    @Test("While nobody reads its output, a host answers its guests; later the whole output can be read")
    func unread() throws {
        let path = "\(user.folder.path)/output"
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let filler = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        while write(filler, [UInt8](repeating: UInt8(ascii: "\n"), count: 4_096), 4_096) > 0 {}
        let port = try FreePort.find()
        let program = BuiltPrograms.path(of: "nigh")
        let call = "exec \(program) host -t \(HostInTests.transport),port=\(port) --json-lines"
        let host = try Child("/bin/sh", ["-c", "\(call) >\(path)"], environment: user.environment)
        let ping = try NighUser().run(
            "ping", "tcp://127.0.0.1:\(port)", "--until", "-t", HostInTests.transport)
        #expect(ping.status == 0, "\(ping)")
        host.send(SIGINT)
        close(filler)
        _ = fcntl(reader, F_SETFL, 0)
        var output: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while case let count = read(reader, &bytes, bytes.count), count > 0 { output += bytes[..<count] }
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains { $0.contains("\"came\"") } && lines.last?.contains("\"summary\"") == true)
        #expect(try host.end().status == 0)
    }

    @Test("A host that was started with nohup goes on when its terminal is gone")
    func nohup() throws {
        let program = BuiltPrograms.path(of: "nigh")
        let call = "exec \(program) host -t \(HostInTests.transport) --json-lines"
        let host = try Child("/bin/sh", ["-c", "trap '' HUP; \(call)"], environment: user.environment)
        let line = try host.line(with: "\"listening\"")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let address = try #require((object?["addresses"] as? [String])?.first)
        host.send(SIGHUP)
        let ping = try NighUser().run(
            "ping", address, "-c", "1", "--timeout", "1m", "-t", HostInTests.transport)
        #expect(ping.status == 0, "\(ping)")
        host.send(SIGTERM)
        #expect(try NighCall(finishing: host).status == 0)
    }

    @Test("Another service is reached only by programs that name it")
    func service() throws {
        let service = "h\(UInt32.random(in: 0 ... .max))"
        let host = try HostInTests(service)
        let stranger = try user.run("ping", host.address, "-t", HostInTests.transport, "-c", "1", "--json")
        #expect(stranger.status == 1)
        #expect(
            (try stranger.object()["error"] as? [String: Any])?["cause"] as? String == "wrong service",
            "\(stranger)")
        #expect(
            try user.run(
                "ping", host.address, "-t", HostInTests.transport, "-c", "1", "--timeout", "1m", "-s", service
            ).status
                == 0)
    }

    @Test("If no transport works, the status is 3, and a wrong command line ends with 2")
    func failures() throws {
        let call = try user.run("host", "-t", "bluetooth:adapter=hci60000", "--json")
        #expect(call.status == 3, "\(call)")
        try call.expectSchema("host")
        for arguments in [
            ["host", "no service"], ["host", "a", "b"], ["host", "a", "-s", "b"], ["host", "-t", "pigeon"],
        ] {
            #expect(try user.run(arguments).status == 2)
        }
        let help = try user.run("host", "--help")
        #expect(help.status == 0 && help.lines.contains { $0.contains("--once") })
    }
}

/// Finds ports for listeners that must keep their address after a restart.
enum FreePort {
    /// Returns a port that was free a moment ago. The kernel gives programs none in this range by itself, so that no
    /// other test gets it meanwhile.
    static func find() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        let port = (0..<100).lazy.map { _ in UInt16.random(in: 10_000..<32_000) }.first { port in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
            address.sin_port = port.bigEndian
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
        }
        return Int(try #require(port))
    }
}
