import Testing

@testable import nigh

/// Tests `nigh transports` as a user runs it.
@Suite(.callsPrograms) struct TransportsTests {
    private let user = NighUser()

    @Test("Every transport is listed with its options, and the one that works as working")
    func words() throws {
        let call = try user.run("transports")
        #expect(call.status == 0)
        for scheme in ["bluetooth", "memory", "nats", "serial", "tcp"] {
            #expect(call.lines.contains { $0.hasPrefix("\(scheme) ") }, "\(call.lines)")
        }
        let tcp = try #require(call.lines.firstIndex { $0.hasPrefix("tcp ") })
        #expect(call.lines[tcp + 1] == "  works here")
        #expect(call.lines.contains { $0.hasPrefix("  interface") })
    }

    @Test("The JSON output matches its schema, whole and in lines")
    func json() throws {
        let whole = try user.run("transports", "--json", "-t", "tcp:interface=lo,memory")
        try whole.expectSchema("transports")
        let transports = try #require(try whole.object()["transports"] as? [[String: Any]])
        #expect(transports.map { $0["scheme"] as? String } == ["tcp", "memory"])
        #expect(transports.allSatisfy { $0["works"] as? Bool == true })
        try user.run("transports", "--json-lines", "-t", "tcp:interface=lo").expectSchema(
            "transports", lines: true)
    }

    @Test("If no requested transport works, the status is 3 and the reason is reported")
    func unavailable() throws {
        let call = try user.run("transports", "--json", "-t", "bluetooth:adapter=hci60000")
        #expect(call.status == 3)
        try call.expectSchema("transports")
        let transports = try #require(try call.object()["transports"] as? [[String: Any]])
        #expect(transports.first?["works"] as? Bool == false)
        #expect((transports.first?["error"] as? [String: Any])?["advice"] is String)
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["transports", "-t", "pigeon"], ["transports", "-t", "tcp:port=x"],
            ["transports", "--json", "--json-lines"],
            ["transports", "more"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(arguments)
        #expect(call.status == 2)
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }
}
