import Testing

@testable import nigh

/// Tests `nigh conformance` as the author of a transport runs it.
@Suite(.callsPrograms) struct ConformanceCommandTests {
    private let user = NighUser()

    @Test("The memory transport passes, and the output matches the schema")
    func memory() throws {
        let call = try user.run("conformance", "memory", "--json", "--settle", "10ms")
        #expect(call.status == 0)
        try call.expectSchema("conformance")
        let object = try call.object()
        #expect(object["failed"] as? Int == 0)
        #expect(try #require(object["passed"] as? Int) > 30)
        try user.run("conformance", "memory", "--json-lines", "--only", "dial-refused").expectSchema(
            "conformance", lines: true)
    }

    @Test("TCP is checked on loopback, with addresses that the command finds itself")
    func tcp() throws {
        let call = try user.run(
            "conformance", "tcp:interface=lo,mdns=embedded", "--only", "listen-and-dial", "--only",
            "dial-refused")
        #expect(call.status == 0, "\(call)")
        #expect(
            call.lines == [
                "pass  listen-and-dial", "pass  dial-refused", "2 passed, 0 failed, 0 skipped of 2.",
            ])
    }

    @Test("A check that fails is reported with the requirement, and the status is 1")
    func failure() throws {
        // The check expects a timeout, but an address without a listener refuses the dial.
        let call = try user.run(
            "conformance", "memory", "--silent", "memory://nobody", "--only", "dial-timeout")
        #expect(call.status == 1)
        #expect(call.lines.first?.hasPrefix("FAIL  dial-timeout: ") == true, "\(call)")
        #expect(call.lines.first?.contains("What must hold: ") == true)
    }

    @Test("A failure is followed by the transports that were made, with the last error of each")
    func transports() throws {
        let arguments = ["conformance", "memory", "--silent", "memory://nobody", "--only", "dial-timeout"]
        let call = try user.run(arguments)
        #expect(call.lines.count == 3, "\(call)")
        #expect(
            call.lines[1].hasPrefix("      transport 1, on end 0: its last error: connecting over memory: "),
            "\(call)")
        let json = try user.run(arguments + ["--json"])
        try json.expectSchema("conformance")
        let checks = try #require(try json.object()["checks"] as? [[String: Any]])
        let made = try #require(checks.first?["transports"] as? [[String: Any]])
        #expect(made.count == 1 && made[0]["name"] as? String == "transport 1")
        #expect((made[0]["last_error"] as? String)?.contains("nobody listens there") == true)
    }

    @Test("On a cable with one pipe, checks that need more are skipped, with their number and the reasons")
    func cable() throws {
        let call = try user.run(
            "conformance", "memory", "--ends", "2", "--pipes", "1", "--only", "two-listeners", "--only",
            "both-dial", "--only", "dial-refused", "--only", "dial-timeout")
        #expect(call.status == 0)
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

    @Test("The list shows what each check of transports and of sessions needs")
    func needs() throws {
        let transports = try user.run("conformance", "--list")
        #expect(transports.lines.allSatisfy { $0.contains("; needs ") }, "\(transports)")
        #expect(transports.lines.contains { $0.hasPrefix("two-listeners") && $0.hasSuffix("3 ends, 1 pipe") })
        let sessions = try user.run("conformance", "--list", "--sessions", "--json")
        try sessions.expectSchema("conformance")
        let checks = try #require(try sessions.object()["checks"] as? [[String: Any]])
        let needs = checks.first { $0["name"] as? String == "busy" }?["needs"] as? [String: Any]
        #expect(needs?["ends"] as? Int == 4 && needs?["pipes"] as? Int == 1)
    }

    @Test("The checks of transports and of sessions are listed without being run")
    func list() throws {
        let transports = try user.run("conformance", "--list", "--json")
        #expect(transports.status == 0)
        try transports.expectSchema("conformance")
        let sessions = try user.run("conformance", "--list", "--sessions")
        #expect(sessions.status == 0 && sessions.lines.count > 40)
    }

    @Test("The checks of sessions run over the transport as well")
    func sessions() throws {
        let call = try user.run("conformance", "memory", "--sessions", "--only", "leave")
        #expect(call.status == 0, "\(call)")
    }

    @Test("If the transport does not work, the status is 3")
    func unavailable() throws {
        let call = try user.run("conformance", "bluetooth:adapter=hci60000")
        #expect(call.status == 3 && call.lines.isEmpty, "\(call)")
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            [], ["pigeon"], ["memory", "tcp"], ["memory", "--only", "nothing"], ["tcp:port=x"],
            ["memory", "--pipes", "0"], ["memory", "--ends", "1"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(["conformance"] + arguments)
        #expect(call.status == 2 && call.lines.isEmpty && call.errors.count == 1, "\(call)")
    }
}
