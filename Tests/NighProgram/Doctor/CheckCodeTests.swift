import ChildPrograms
import Foundation
import NighCore
import Testing

@testable import nigh

/// Tests the codes of the doctor's checks, by which its output and the errors lead to a guide.
@Suite(.callsPrograms) struct CheckCodeTests {
    private static func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(BuiltPackages.root)/\(path)", encoding: .utf8)
    }

    @Test func `A code stands for one check, has the form N and two digits, and never changes`() {
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

    @Test func `Every check that doctor.md lists has a code, and every code a section in the guide`() throws {
        let listed = try Self.text("docs/reference/nigh/doctor.md")
            .matches(of: #/(?m)^\| `([a-z]+(?:\.[a-z-]+)?)` \|/#).map { String($0.1) }
            .filter { !["pass", "warn", "fail"].contains($0) }
        #expect(listed.count > 30)
        for id in listed { #expect(CheckCode.code(of: id) != nil, "\(id)") }
        let headings = try Self.text("docs/guides/why-not-found.md")
            .matches(of: #/(?m)^### (N\d\d): .* \(`([^`]+)`\)$/#).map { "\($0.1) \($0.2)" }
        #expect(headings == CheckCode.all.map { "\($0.code) \($0.id)" })
    }

    @Test func `What did not pass names its code, in words and in JSON`() throws {
        let user = NighUser()
        let listener = try BoundSocket().listens()
        let line = "doctor -t tcp:interface=lo,mdns=off,port=\(listener.port)"
        let words = try user.run(line, status: 1)
        #expect(
            words.lines.contains { $0.hasPrefix("      → ") && $0.hasSuffix("nigh help N13") }, "\(words)")
        #expect(!words.lines.contains { $0.hasPrefix("pass") && $0.contains("nigh help") })
        for check in try user.run("\(line) --json", status: 1).json["checks"].list {
            #expect(check["code"].string == CheckCode.code(of: check["id"].string ?? ""))
        }
    }

    @Test func `An error of a command names the check that explains it, in words and in JSON`() throws {
        let user = NighUser()
        try withClosedPort { closed in
            let line = "ping tcp://127.0.0.1:\(closed) \(byAddress)"
            try user.run(line, status: 1, says: "(`nigh help N53`)")
            #expect(try user.run("\(line) --json", status: 1).json["error"]["code"].string == "N53")
        }
    }

    @Test(
        arguments: [
            (NighError(.connecting, .timedOut), "N53"), (NighError(.inviting, .timedOut), nil),
            (NighError(.pinging, .timedOut), "N58"), (NighError(.browsing, .unknownPeer), "N51"),
            (NighError(.trusting, .unknownPeer), nil), (NighError(.pairing, .timedOut), nil),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "tcp"), "N13"),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "bluetooth"), "N39"),
            (NighError(.advertising, .system(EADDRINUSE, ""), transport: "pigeon"), nil),
            (NighError(.connecting, .allFailed, attempts: [NighError(.connecting, .refused)]), "N53"),
        ] as [(NighError, String?)])
    func `The same cause has another check, or none, at another stage`(_ error: NighError, _ code: String?) {
        #expect(CheckCode.code(of: error) == code)
    }

    @Test func `Causes name only codes of checks`() {
        let codes = ErrorsCommand.causes.compactMap { CheckCode.code(ofCause: $0.label) }
        #expect(codes.count >= 8 && Set(codes).isSubset(of: CheckCode.all.map(\.code)))
    }
}
