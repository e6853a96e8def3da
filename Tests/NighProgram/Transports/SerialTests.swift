import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Uses `nigh` over a serial cable between two pseudo-terminals.
@Suite("The transport for serial lines", .callsPrograms) struct SerialTests {
    private let user = NighUser()

    @Test("carries pings between two programs, one at each end")
    func ping() throws {
        let cable = try SerialCable(baud: 115_200)
        let ends = cable.ports.map { "serial:path=\($0)" }
        let host = try user.start([
            "host", "--name", "Puma", "--identity", "ephemeral", "--json-lines", "-t", ends[0],
        ])
        try host.line(with: "\"listening\"")
        let call = try user.run(["ping", "Puma", "-c", "3", "-i", "10ms", "-t", ends[1]])
        #expect(call.status == 0, "\(call.errors)")
        host.send(SIGINT)
        #expect(try host.end().status == 0)
        withExtendedLifetime(cable) {}
    }

    @Test("passes the checks of two ends that differ, as a user runs them")
    func conformance() throws {
        let cable = try SerialCable()
        let call = try user.run(
            ["conformance"] + cable.ports.map { "serial:path=\($0),baud=3000000" } + [
                "--ends", "2", "--pipes", "1", "--only", "both-ways", "--bulk", "64KiB",
            ])
        #expect(call.status == 0, "\(call)")
        withExtendedLifetime(cable) {}
    }

    @Test("says why a device cannot be used, and what to do")
    func noDevice() throws {
        let missing = try user.run("transports", "-t", "serial:path=/dev/nothing-here")
        #expect(missing.status == 3)
        #expect(
            missing.lines.contains { $0.contains("the device /dev/nothing-here is not there") }
                && missing.lines.contains { $0.contains("plug it in, or name another device") }, "\(missing)")
        let folder = TemporaryFolder()
        let path = "\(folder.path)/file"
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let wrong = try user.run("transports", "-t", "serial:path=\(path)")
        #expect(wrong.lines.contains { $0.contains("is no serial port") }, "\(wrong)")
        let cable = try SerialCable()
        let host = try user.start([
            "host", "--identity", "ephemeral", "--json-lines", "-t", "serial:path=\(cable.ports[0])",
        ])
        try host.line(with: "\"listening\"")
        let taken = try user.run("doctor", "-t", "serial:path=\(cable.ports[0])")
        #expect(taken.lines.contains { $0.contains("is used by another program") }, "\(taken)")
        let alone = try user.run("doctor", "-t", "serial:path=\(cable.ports[1])")
        #expect(alone.lines.contains { $0.contains("other end") && $0.contains("serial://") }, "\(alone)")
    }

    @Test(
        "takes no other options than a path and a known baud",
        arguments: [
            ("serial", "write serial:path=/dev/ttyUSB0"),
            ("serial:path=ttyUSB0", "write serial:path=/dev/ttyUSB0"),
            ("serial:path=/dev/null,baud=7", "choose one of 9600, 19200"),
            ("serial:device=/dev/null", "known are: baud, path"),
        ])
    func options(_ spec: String, _ advice: String) throws {
        let call = try user.run("transports", "-t", spec)
        #expect(call.status == 2 && call.errors.first?.contains(advice) == true, "\(call)")
    }

    @Test("is listed without a device, and not tried")
    func listed() throws {
        let call = try user.run("transports")
        let line = try #require(call.lines.firstIndex { $0.hasPrefix("serial ") })
        #expect(call.lines[line + 1] == "  not tried without its options", "\(call.lines)")
        try user.run("transports", "--json").expectSchema("transports")
        let doctor = try user.run("doctor")
        #expect(!doctor.lines.contains { $0.contains("serial") }, "\(doctor)")
    }
}
