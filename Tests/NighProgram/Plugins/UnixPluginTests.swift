import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Tests the transport of Examples/UnixTransport, a package of its own, in the programs of this package.
@Suite("A transport as a plugin", .callsPrograms) struct UnixPluginTests {
    private let user = NighUser()

    /// A listener that accepts nobody and whose backlog is full, so that every dial waits.
    private final class FullListener {
        private var descriptors: [Int32] = []

        init(at path: String) throws {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            for number in 0..<3 {
                let descriptor = socket(
                    AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
                descriptors.append(descriptor)
                let status = withUnsafePointer(to: address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
                        return number == 0 ? bind(descriptor, $0, size) : connect(descriptor, $0, size)
                    }
                }
                if number == 0 { try #require(status == 0 && listen(descriptor, 0) == 0) }
            }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }
    }

    private func conformance(of unix: UnixPlugin, _ options: String...) throws -> NighCall {
        let arguments = ["conformance", "--plugin", unix.path, unix.spec, "--json"] + options
        return try NighCall(finishing: user.start(arguments, patience: 900))
    }

    @Test("passes every check of transports")
    func conformance() throws {
        let unix = try UnixPlugin()
        let silent = "\(unix.meetingPlace.path)/silent"
        let listener = try FullListener(at: silent)
        defer { withExtendedLifetime(listener) {} }
        let call = try conformance(of: unix, "--silent", "unix://\(silent)")
        #expect(call.status == 0)
        let checks = try #require(try call.object()["checks"] as? [[String: Any]])
        #expect(checks.count == TransportConformance.checks.count)
        for check in checks where check["verdict"] as? String != "passed" { Issue.record("\(check)") }
    }

    @Test("passes every check of sessions")
    func sessions() throws {
        let unix = try UnixPlugin()
        let call = try conformance(of: unix, "--sessions")
        #expect(call.status == 0)
        let checks = try #require(try call.object()["checks"] as? [[String: Any]])
        #expect(checks.count == SessionConformance.checks.count)
        for check in checks where check["verdict"] as? String != "passed" { Issue.record("\(check)") }
    }

    @Test("is found by the commands that measure, like a built-in transport")
    func ping() throws {
        let unix = try UnixPlugin()
        let host = try unix.host()
        let call = try user.run(["ping", "Puma", "-c", "3", "-i", "10ms"] + unix.arguments)
        #expect(call.status == 0, "\(call.errors)")
        let both = try user.run(
            "ping", "Puma", "-c", "3", "-i", "10ms", "--plugin", unix.path, "-t",
            "\(unix.spec),tcp:interface=lo,mdns=off")
        #expect(both.status == 0, "\(both.errors)")
        host.send(SIGINT)
        #expect(try host.end().status == 0)
    }

    @Test("carries a whole game of Four in a Row, which does not know it")
    func game() throws {
        let unix = try UnixPlugin()
        func player(_ name: String, _ arguments: String...) throws -> Child {
            let all = ["bot", "--name", name, "--games", "1", "--pause", "0ms"] + arguments + unix.arguments
            return try Child("fourinarow", all + ["--identity", "ephemeral"])
        }
        let robot = try player("Robot", "--level", "2", "--seed", "1")
        let ghost = try player("Ghost", "--level", "3", "--seed", "2", "--at", "Robot")
        #expect(try ghost.end() == (0, []))
        #expect(try robot.end() == (0, []))
        // How the game ended, and the board. One program may also have reported that the other left.
        let ends = [robot, ghost].map { Array($0.lines.drop { !$0.hasPrefix("game") }.prefix(7)) }
        #expect(ends[0].count == 7 && ends[0] == ends[1], "\(robot.lines)\n\(ghost.lines)")
    }

    @Test("is not loaded by a program that does not export its Nigh, or contains the Swift runtime")
    func otherHosts() throws {
        let unix = try UnixPlugin()
        let products = try UnixPlugin.ruleBreakers()
        #expect(
            try complaint(of: "\(products)/KeepsNigh", about: unix)
                == "loading a plugin: this program does not export its Nigh, so \(unix.path) cannot use it; "
                + "link the program to Nigh's product NighShared")
        // The same program with the Swift runtime linked into it.
        let folder = TemporaryFolder()
        let link = try Child(
            "/usr/bin/env",
            [
                "swiftc", "-static-stdlib", "-lz", "@\(products)/KeepsNigh.product/Objects.LinkFileList",
                "-Xlinker",
                "--defsym=main=KeepsNigh_main", "-o", "\(folder.path)/KeepsSwift",
            ])
        let (status, errors) = try link.end()
        try #require(status == 0, "\(errors)")
        #expect(
            try complaint(of: "\(folder.path)/KeepsSwift", about: unix)
                == "loading a plugin: this program contains Swift's library, and would crash with the one "
                + "that \(unix.path) uses; build the program without -static-stdlib")
    }

    /// What a program prints that is to load the plugin.
    private func complaint(of program: String, about unix: UnixPlugin) throws -> String? {
        let host = try Child(program, [unix.path])
        #expect(try host.end().status == 0)
        return host.lines.first
    }

    @Test("is refused if it was linked to another product, and so contains its own copy of Nigh")
    func ownNigh() throws {
        let products = try UnixPlugin.ruleBreakers()
        let call = try user.run("transports", "--plugin", "\(products)/libOwnNigh.so")
        #expect(call.status == 2)
        #expect(call.errors.first?.contains("it contains its own copy of Nigh") == true, "\(call.errors)")
    }
}
