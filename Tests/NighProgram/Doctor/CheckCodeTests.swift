import ChildPrograms
import Foundation
import NighCore
import Testing

@testable import nigh

/// Tests the codes of the doctor's checks, by which its output and the errors lead to a guide.
@Suite(.callsPrograms) struct CheckCodeTests {
    private static func page(_ path: String) throws -> String {
        try String(contentsOfFile: "\(BuiltPackages.root)/docs/\(path)", encoding: .utf8)
    }

    @Test("A code stands for one check, has the form N and two digits, and never changes")
    func stable() {
        #expect(Set(CheckCode.all.map(\.code)).count == CheckCode.all.count)
        #expect(Set(CheckCode.all.map(\.id)).count == CheckCode.all.count)
        #expect(CheckCode.all.allSatisfy { $0.code.wholeMatch(of: #/N\d\d/#) != nil })
        // People and scripts know these. A check that is added gets a new code.
        for (code, id) in [
            ("N01", "identity.file"), ("N07", "libuv"), ("N11", "tcp.interfaces"), ("N17", "tcp.multicast"),
            ("N25", "tcp.announcements"), ("N31", "bluetooth.kernel"), ("N40", "bluetooth.service-record"),
            ("N51", "peer.found"), ("N61", "peer.path"),
        ] {
            #expect(CheckCode.code(of: id) == code)
        }
        #expect(CheckCode.code(of: "unix.socket") == nil)
    }

    @Test("Every check that doctor.md lists has a code, and every code a section in the guide")
    func described() throws {
        let listed = try Self.page("reference/nigh/doctor.md")
            .matches(of: #/(?m)^\| `([a-z]+(?:\.[a-z-]+)?)` \|/#).map { String($0.1) }
            .filter { !["pass", "warn", "fail"].contains($0) }
        #expect(listed.count > 30)
        for id in listed { #expect(CheckCode.code(of: id) != nil, "\(id)") }
        let headings = try Self.page("guides/why-not-found.md")
            .matches(of: #/(?m)^### (N\d\d): .* \(`([^`]+)`\)$/#).map { "\($0.1) \($0.2)" }
        #expect(headings == CheckCode.all.map { "\($0.code) \($0.id)" })
    }

    @Test("What did not pass names its code, in words and in JSON")
    func named() throws {
        let user = NighUser()
        let listener = try PlainListener()
        let transport = "tcp:interface=lo,mdns=off,port=\(listener.port)"
        let words = try user.run("doctor", "-t", transport)
        #expect(
            words.lines.contains { $0.hasPrefix("      → ") && $0.hasSuffix("nigh help N13") }, "\(words)")
        #expect(!words.lines.contains { $0.hasPrefix("pass") && $0.contains("nigh help") })
        let checks = try #require(
            try user.run("doctor", "--json", "-t", transport).object()["checks"] as? [[String: Any]])
        for check in checks {
            #expect(check["code"] as? String == CheckCode.code(of: check["id"] as? String ?? ""))
        }
    }

    @Test("Errors that the doctor can explain name the check")
    func errors() throws {
        let known = Set(CheckCode.all.map(\.code))
        let codes = ErrorsCommand.causes.compactMap { CheckCode.code(ofCause: $0.label) }
        #expect(codes.count >= 8 && codes.allSatisfy(known.contains))
        let text = try NighUser().run("errors").lines
        #expect(text.contains("  nigh help N56"))
    }

    @Test("An error of the command names the check that explains it, in words and in JSON")
    func namedByErrors() throws {
        let user = NighUser()
        try withClosedPort { closed in
            let call = ["ping", "tcp://127.0.0.1:\(closed)", "-t", "tcp:interface=lo,mdns=off"]
            let words = try user.run(call)
            #expect(words.errors.last?.hasSuffix("(`nigh help N53`)") == true, "\(words.errors)")
            let error = try #require(try user.run(call + ["--json"]).object()["error"] as? [String: Any])
            #expect(error["code"] as? String == "N53")
        }
    }

    @Test("An error of a transport names the check in which the transport says the same")
    func namedByTransports() throws {
        let transport = "tcp:interface=no-such,mdns=off"
        let missing = try NighUser().run("discover", "chess", "--once", "-t", transport)
        #expect(missing.status == 3)
        #expect(missing.errors.last?.hasSuffix("(`nigh help N11`)") == true, "\(missing.errors)")
    }

    @Test(
        "The same cause has another check, or none, at another stage",
        arguments: [
            (NighError(.connecting, .timedOut), "N53"), (NighError(.inviting, .timedOut), nil),
            (NighError(.pinging, .timedOut), "N58"), (NighError(.browsing, .unknownPeer), "N51"),
            (NighError(.trusting, .unknownPeer), nil), (NighError(.pairing, .timedOut), nil),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "tcp"), "N13"),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "bluetooth"), "N39"),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "pigeon"), nil),
            (NighError(.connecting, .allFailed, attempts: [NighError(.connecting, .refused)]), "N53"),
        ] as [(NighError, String?)])
    func stages(_ error: NighError, _ code: String?) {
        #expect(CheckCode.code(of: error) == code)
    }
}
