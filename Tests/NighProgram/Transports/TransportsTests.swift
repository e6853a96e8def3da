import ChildPrograms
import Glibc
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh transports` as a user runs it.
@Suite(.callsPrograms) struct TransportsTests {
    private let user = NighUser()

    @Test func `Every transport is listed with its options, and the one that works as working`() throws {
        let lines = try user.run("transports").lines
        for scheme in ["bluetooth", "memory", "nats", "serial", "tcp"] {
            #expect(lines.contains { $0.hasPrefix("\(scheme) ") }, "\(lines)")
        }
        let tcp = try #require(lines.firstIndex { $0.hasPrefix("tcp ") })
        #expect(lines[tcp + 1] == "  works here" && lines.contains { $0.hasPrefix("  interface") })
        let serial = try #require(lines.firstIndex { $0.hasPrefix("serial ") })
        #expect(lines[serial + 1] == "  not tried without its options", "\(lines)")
        try user.run("transports --json")
    }

    @Test func `Only the transports that were asked for are tried`() throws {
        let transports = try user.run("transports --json -t tcp:interface=lo,memory").json["transports"].list
        #expect(transports.map { $0["scheme"].string } == ["tcp", "memory"])
        #expect(transports.allSatisfy { $0["works"].bool == true })
        try user.run("transports --json-lines -t tcp:interface=lo")
        let down = try user.run("transports --json -t bluetooth:adapter=hci60000", status: 3).json
        #expect(down["transports"][0]["works"].bool == false)
    }
}

/// Uses `nigh` over a serial cable between two pseudo-terminals.
@Suite(.callsPrograms) struct SerialTests {
    private let user = NighUser()

    private func host(at port: String) throws -> Child {
        let host = try user.start(
            "host --name Puma --identity ephemeral --json-lines -t serial:path=\(port)")
        try host.line(with: "\"listening\"")
        return host
    }

    @Test func `It carries pings between two programs, one at each end`() throws {
        let cable = try SerialCable(baud: 115_200)
        let host = try host(at: cable.ports[0])
        try user.run("ping Puma -c 3 -i 10ms -t serial:path=\(cable.ports[1])")
        try host.finish(after: SIGINT)
        withExtendedLifetime(cable) {}
    }

    @Test func `It passes the checks of two ends that differ, as a user runs them`() throws {
        let cable = try SerialCable()
        let ends = cable.ports.map { "serial:path=\($0),baud=3000000" }.joined(separator: " ")
        try user.run("conformance \(ends) --ends 2 --pipes 1 --only both-ways --bulk 64KiB")
        withExtendedLifetime(cable) {}
    }

    @Test func `It says why a device cannot be used, and what to do`() throws {
        let (folder, cable) = (TemporaryFolder(), try SerialCable())
        let host = try host(at: cable.ports[0])
        for (line, words) in [
            ("transports -t serial:path=/dev/nothing-here", "the device /dev/nothing-here is not there"),
            ("transports -t serial:path=/dev/nothing-here", "plug it in, or name another device"),
            ("transports -t serial:path=\(folder.file("file", ""))", "is no serial port"),
            ("doctor -t serial:path=\(cable.ports[0])", "is used by another program"),
            ("doctor -t serial:path=\(cable.ports[1])", "other end"),
        ] {
            let call = try user.run(line, status: nil)
            #expect(call.lines.contains { $0.contains(words) }, "\(call)")
        }
        #expect(
            try !user.run("doctor", status: nil).lines.contains { $0.contains("serial") }, "it is not tried")
        withExtendedLifetime(host) {}
    }

    @Test(
        arguments: [
            ("serial", "write serial:path=/dev/ttyUSB0"),
            ("serial:path=ttyUSB0", "write serial:path=/dev/ttyUSB0"),
            ("serial:path=/dev/null,baud=7", "choose one of 9600, 19200"),
            ("serial:device=/dev/null", "known are: baud, path"),
        ])
    func `It takes no other options than a path and a known baud`(_ spec: String, _ advice: String) throws {
        try user.run("transports -t \(spec)", status: 2, says: advice)
    }
}

/// Tests `nigh conformance` as the author of a transport runs it.
@Suite(.callsPrograms) struct ConformanceCommandTests {
    private let user = NighUser()

    @Test func `The memory transport passes`() throws {
        let json = try user.run("conformance memory --json --settle 10ms").json
        #expect(json["failed"].int == 0 && json["passed"].int ?? 0 > 30)
        try user.run("conformance memory --json-lines --only dial-refused")
        try user.run("conformance memory --sessions --only leave")
    }

    @Test func `TCP is checked on loopback, with addresses that the command finds itself`() throws {
        let call = try user.run(
            "conformance tcp:interface=lo,mdns=embedded --only listen-and-dial --only dial-refused")
        #expect(
            call.lines == [
                "pass  listen-and-dial", "pass  dial-refused", "2 passed, 0 failed, 0 skipped of 2.",
            ])
    }

    @Test func `A failed check comes with what must hold, and the last error of each transport`() throws {
        // The check expects a timeout, but an address without a listener refuses the dial.
        let line = "conformance memory --silent memory://nobody --only dial-timeout"
        let call = try user.run(line, status: 1)
        #expect(call.lines.count == 3, "\(call)")
        #expect(call.lines[0].hasPrefix("FAIL  dial-timeout: ") && call.lines[0].contains("What must hold: "))
        #expect(
            call.lines[1].hasPrefix("      transport 1, on end 0: its last error: connecting over memory: "),
            "\(call)")
        let made = try user.run("\(line) --json", status: 1).json["checks"][0]["transports"]
        #expect(made.list.count == 1 && made[0]["name"].string == "transport 1")
        #expect(made[0]["last_error"].string?.contains("nobody listens there") == true)
    }

    @Test func `On a cable with one pipe, checks that need more are skipped, with the reasons`() throws {
        let call = try user.run(
            """
            conformance memory --ends 2 --pipes 1 --only two-listeners --only both-dial --only dial-refused \
            --only dial-timeout
            """)
        #expect(
            call.lines == [
                "pass  dial-refused", "skip  dial-timeout: it needs an address at which nobody answers",
                "skip  two-listeners: it needs more than 2 ends",
                "skip  both-dial: it needs more than 1 pipe at once",
                "1 passed, 0 failed, 3 skipped of 4.",
                "1 skipped: it needs an address at which nobody answers.",
                "1 skipped: it needs more than 1 pipe at once.", "1 skipped: it needs more than 2 ends.",
            ], "\(call)")
    }

    @Test func `All checks can be listed with what each needs, without a run`() throws {
        let words = try user.run("conformance --list").lines
        #expect(words.allSatisfy { $0.contains("; needs ") }, "\(words)")
        #expect(words.contains { $0.hasPrefix("two-listeners") && $0.hasSuffix("3 ends, 1 pipe") })
        try user.run("conformance --list --json")
        let checks = try user.run("conformance --list --sessions --json").json["checks"].list
        let needs = try #require(checks.first { $0["name"].string == "busy" })["needs"]
        #expect(needs["ends"].int == 4 && needs["pipes"].int == 1 && checks.count > 40)
    }
}
