import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

@Suite(.callsPrograms) struct StatusTests {
    private let user = NighUser()
    private let other = NighUser()

    @Test("It shows who the user is, which programs run, and who is near, and matches its schema")
    func everything() throws {
        let service = "s\(UInt32.random(in: .min ... .max))"
        let options = ["-t", "tcp:interface=lo", "-s", service]
        let own = try user.start(["host", "--name", "Otter", "--json-lines"] + options)
        try own.line(with: "\"listening\"")
        let near = try other.start(["host", "--name", "Puma", "--json-lines"] + options)
        try near.line(with: "\"listening\"")
        let call = try user.run(["status", "--json", "-d", "5"] + options)
        #expect(call.status == 0, "\(call)")
        try call.expectSchema("status")
        let object = try call.object()
        #expect(object["id"] as? String == (try user.run("identity", "--json").object()["id"] as? String))
        #expect((object["programs"] as? [Any])?.count == 1)
        let names = try #require(object["near"] as? [[String: Any]]).compactMap { $0["name"] as? String }
        #expect(names.sorted() == ["Otter", "Puma"])
        try user.run(["status", "--json-lines", "-d", "0"] + options).expectSchema("status", lines: true)
        for child in [own, near] {
            child.send(SIGINT)
            _ = try NighCall(finishing: child)
        }
    }

    @Test("Before the first session it says that there is no identity, and makes none")
    func fresh() throws {
        let call = try user.run("status", "-d", "0")
        #expect(call.status == 0 && call.lines[0].contains("without an identity"), "\(call)")
        #expect(!FileManager.default.fileExists(atPath: user.dataFolder))
    }
}
