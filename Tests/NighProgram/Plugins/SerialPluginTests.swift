import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Tests the transport of Examples/SerialTransport: a wire with two ends and one pipe, without connections.
@Suite("A transport for a cable", .callsPrograms) struct SerialPluginTests {
    private let user = NighUser()

    private func plugin() throws -> String {
        try BuiltPackages.build("Examples/SerialTransport") + "/libSerialTransport.so"
    }

    /// Runs one of the conformance suites on it; returns the names of the skipped checks.
    private func skipped(_ arguments: String...) throws -> Set<String> {
        let wire = try NullModem()
        let ends = wire.devices.map { "serial:device=\($0)" }
        let nigh = try Child(
            "nigh",
            ["conformance", "--plugin", plugin()] + ends + [
                "--ends", "2", "--pipes", "1", "--silent", "serial://1", "--bulk", "256KiB", "--patience",
                "60s",
                "--json",
            ] + arguments, environment: user.environment, patience: 900)
        let call = try NighCall(finishing: nigh)
        withExtendedLifetime(wire) {}
        #expect(call.status == 0)
        let checks = try #require(try call.object()["checks"] as? [[String: Any]])
        for check in checks where check["verdict"] as? String == "failed" { Issue.record("\(check)") }
        return Set(
            checks.filter { $0["verdict"] as? String == "skipped" }.compactMap { $0["name"] as? String })
    }

    @Test("passes every check for a wire with two ends and one pipe")
    func conformance() throws { #expect(try skipped() == ["two-listeners", "both-dial"]) }

    @Test("passes every check of sessions between two peers")
    func sessions() throws {
        #expect(
            try skipped("--sessions") == [
                "full", "busy", "one-some-all", "slow-reader-alone", "close-under-way", "silent-pipes",
                "cut-greeting",
            ])
    }

    @Test("carries pings between two programs, one at each end")
    func ping() throws {
        let wire = try NullModem()
        func end(_ number: Int) throws -> [String] {
            ["--plugin", try plugin(), "-t", "serial:device=\(wire.devices[number])"]
        }
        let host = try user.start(
            ["host", "--name", "Puma", "--identity", "ephemeral", "--json-lines"] + end(0))
        try host.line(with: "\"listening\"")
        let call = try user.run(["ping", "Puma", "-c", "3", "-i", "10ms"] + end(1))
        #expect(call.status == 0, "\(call.errors)")
        host.send(SIGINT)
        #expect(try host.end().status == 0)
        withExtendedLifetime(wire) {}
    }

    @Test("reports why a device cannot be used, and what to do")
    func noDevice() throws {
        let missing = try user.run(
            "transports", "--plugin", plugin(), "-t", "serial:device=/dev/nothing-here")
        #expect(
            missing.lines.contains { $0.contains("the device /dev/nothing-here is not there") }
                && missing.lines.contains { $0.contains("plug it in, or name another device") }, "\(missing)")
        let file = TemporaryFolder()
        let path = "\(file.path)/file"
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let wrong = try user.run("transports", "--plugin", plugin(), "-t", "serial:device=\(path)")
        #expect(wrong.lines.contains { $0.contains("is no serial port") }, "\(wrong)")
        let speed = try user.run("transports", "--plugin", plugin(), "-t", "serial:device=/dev/null,speed=7")
        #expect(speed.status == 2 && speed.errors.first?.contains("choose one of 57600") == true, "\(speed)")
    }

    @Test("passes its own tests, on a wire that loses and changes bytes")
    func own() throws { try BuiltPackages.test("SerialTransport", in: "Examples/SerialTransport") }
}
