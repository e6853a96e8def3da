import Foundation
import Glibc
import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh doctor` without a peer, as a user runs it.
@Suite(.callsPrograms) struct DoctorTests {
    private let user = NighUser()

    /// The IDs in the printed lines of the checks, in their order.
    private func ids(_ call: NighCall) -> [String] {
        call.lines.compactMap { line in
            let words = line.split(separator: " ", maxSplits: 2)
            return words.count == 3 && ["pass", "warn", "fail"].contains(words[0]) ? String(words[1]) : nil
        }
    }

    private func checks(_ call: NighCall) throws -> [String: [String: Any]] {
        let all = try #require(try call.object()["checks"] as? [[String: Any]])
        return Dictionary(
            all.map { ($0["id"] as? String ?? "", $0) }, uniquingKeysWith: { first, _ in first })
    }

    @Test("A healthy machine passes every check in its order, and nothing is created")
    func well() throws {
        let call = try user.run("doctor", "-t", "tcp:interface=lo,mdns=embedded")
        #expect(call.status == 0, "\(call)")
        #expect(
            ids(call) == [
                "identity.file", "trust.store", "limits.descriptors", "libuv", "tcp.interfaces", "tcp.port",
                "tcp.reach", "tcp.firewall", "tcp.multicast", "tcp.embedded-mdns", "tcp.own-service",
            ], "\(call.lines)")
        #expect(access(user.dataFolder, F_OK) != 0)
    }

    @Test("The JSON output matches its schema, whole and in lines")
    func json() throws {
        let call = try user.run("doctor", "--json", "-t", "tcp:interface=lo,mdns=off")
        try call.expectSchema("doctor")
        #expect(try call.object()["failed"] as? Int == 0)
        #expect(try checks(call)["tcp.port"]?["verdict"] as? String == "pass")
        let lines = try user.run("doctor", "--json-lines", "-t", "tcp:interface=lo,mdns=off")
        try lines.expectSchema("doctor", lines: true)
        #expect(try lines.objects().last?["type"] as? String == "summary")
    }

    @Test("A port that another program uses is a failure that names it, and the status is 1")
    func portInUse() throws {
        let listener = try PlainListener()
        let call = try user.run(
            "doctor", "--json", "-t", "tcp:interface=lo,mdns=off,port=\(listener.port)")
        #expect(call.status == 1)
        let port = try #require(try checks(call)["tcp.port"])
        #expect(port["verdict"] as? String == "fail")
        #expect((port["advice"] as? String)?.contains("port \(listener.port) is in use") == true)
    }

    /// Contents and modes of identity files, the check that fails for each, and the advice it gives.
    static let files: [(text: String, mode: mode_t, id: String, cure: String)] = [
        ("nonsense", 0o644, "identity.mode", "chmod 600"),
        ("nonsense", 0o600, "identity.key", "restore it from a backup"),
        ("", 0o600, "identity.key", "restore it from a backup"),
    ]

    @Test("An identity that cannot be created is a failure")
    func identityNowhere() throws {
        let folder = TemporaryFolder()
        try Data().write(to: URL(fileURLWithPath: folder.path + "/file"))
        let call = try user.run(
            "doctor", "--json", "--identity", "\(folder.path)/file/key.pem", "-t", "tcp:interface=lo,mdns=off"
        )
        let failed = try #require(try checks(call)["identity.file"])
        #expect(failed["verdict"] as? String == "fail" && call.status == 1)
        #expect(
            (failed["finding"] as? String)?.contains("\(folder.path)/file is no folder") == true, "\(failed)")
    }

    @Test("An identity in a folder that others may write to is named with its remedy")
    func exposedIdentity() throws {
        let folder = TemporaryFolder()
        _ = try IdentityFile(path: "\(folder.path)/key.pem").load()
        chmod(folder.path, 0o777)
        let call = try user.run(
            "doctor", "--json", "--identity", "\(folder.path)/key.pem", "-t", "tcp:interface=lo,mdns=off")
        let failed = try #require(try checks(call)["identity.mode"])
        #expect(failed["verdict"] as? String == "fail")
        #expect((failed["advice"] as? String)?.contains("chmod go-w \(folder.path)") == true, "\(failed)")
    }

    @Test("An identity that others may read, or that is damaged, is named with its remedy", arguments: 0..<3)
    func identity(_ number: Int) throws {
        let (text, mode, id, cure) = Self.files[number]
        let path = "\(user.folder.path)/key.pem"
        let descriptor = open(path, O_WRONLY | O_CREAT, mode)
        try #require(descriptor >= 0 && write(descriptor, text, text.utf8.count) == text.utf8.count)
        close(descriptor)
        let call = try user.run(
            "doctor", "--json", "--identity", path, "-t", "tcp:interface=lo,mdns=off")
        #expect(call.status == 1)
        let failed = try #require(try checks(call)[id])
        #expect(failed["verdict"] as? String == "fail")
        #expect((failed["advice"] as? String)?.contains(cure) == true, "\(failed)")
        #expect(try call.object()["failed"] as? Int == 1)
    }

    @Test("An identity file that leads nowhere is no missing one")
    func danglingIdentity() throws {
        let path = "\(user.folder.path)/key.pem"
        try #require(symlink("nowhere", path) == 0)
        let call = try user.run(
            "doctor", "--json", "--identity", path, "-t", "tcp:interface=lo,mdns=off")
        #expect(call.status == 1)
        #expect(try checks(call)["identity.file"]?["verdict"] as? String == "fail")
    }

    @Test("An invalid known-peers file is named")
    func trust() throws {
        try #require(mkdir(user.dataFolder, 0o700) == 0)
        let descriptor = open("\(user.dataFolder)/peers", O_WRONLY | O_CREAT, 0o600)
        try #require(descriptor >= 0 && write(descriptor, "nonsense\n", 9) == 9)
        close(descriptor)
        let call = try user.run("doctor", "--json", "-t", "tcp:interface=lo,mdns=off")
        #expect(call.status == 1)
        #expect(try checks(call)["trust.store"]?["verdict"] as? String == "fail")
    }

    @Test(
        "If no requested transport works, the status is 3, and the missing parts are named",
        arguments: ["tcp:interface=nowhere0", "bluetooth:adapter=hci60000"])
    func unavailable(_ transport: String) throws {
        let call = try user.run("doctor", "--json", "-t", transport)
        #expect(call.status == 3)
        try call.expectSchema("doctor")
        let failed = try checks(call).values.filter { $0["verdict"] as? String == "fail" }
        #expect(failed.contains { $0["advice"] is String }, "\(failed)")
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["doctor", "-t", "pigeon"], ["doctor", "--peer", "://nowhere"], ["doctor", "--timeout", "soon"],
            ["doctor", "--service", "two words"], ["doctor", "more"], ["doctor", "--json", "--json-lines"],
            ["doctor", "--identity", "ephemeral"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(arguments)
        #expect(call.status == 2, "\(call)")
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }

    @Test("Ctrl-C ends it while it searches for a peer")
    func interrupted() throws {
        let child = try user.start(
            "doctor", "-t", "tcp:interface=lo,mdns=off", "--peer", "nobody", "--timeout", "10m")
        try child.line(with: "tcp.mdns")
        child.send(SIGINT)
        let (status, errors) = try child.end()
        #expect(status == 1)
        #expect(errors == ["nigh: interrupted"])
    }

    @Test("The help explains it and ends with status 0")
    func help() throws {
        let call = try user.run("doctor", "--help")
        #expect(call.status == 0)
        let text = call.lines.map { $0.drop { $0 == " " } }.joined(separator: " ")
        for word in ["--peer", "--transport", "--json-lines", "changes nothing"] {
            #expect(text.contains(word), "\(word)")
        }
    }

    @Test("Few descriptors cause a warning with the number that is possible")
    func descriptors() {
        #expect(SystemCheck.descriptors(soft: 1_024, hard: 4_096).verdict == .pass)
        #expect(SystemCheck.descriptors(soft: .max, hard: .max).finding == "no limit")
        #expect(SystemCheck.descriptors(soft: 64, hard: 4_096).advice == "`ulimit -n 1024`")
        #expect(SystemCheck.descriptors(soft: 64, hard: 512).advice == "`ulimit -n 512`")
        #expect(SystemCheck.descriptors(soft: 64, hard: 64).advice?.contains("limits.conf") == true)
    }
}

/// Another program's listener on a port of this machine. It may answer a connection with some text.
final class PlainListener {
    private let socket: BoundSocket

    init() throws {
        socket = try BoundSocket()
        try #require(listen(socket.descriptor, 16) == 0)
    }

    var port: UInt16 { socket.port }

    /// Accepts the next connection, sends `text` and closes it.
    func answer(_ text: String) {
        let other = accept(socket.descriptor, nil, nil)
        guard other >= 0 else { return }
        _ = send(other, text, text.utf8.count, Int32(MSG_NOSIGNAL))
        close(other)
    }
}
