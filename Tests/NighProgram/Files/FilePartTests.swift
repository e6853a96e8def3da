import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests a file that is being received while others use its part or a similar name.
@Suite(.callsPrograms) struct FilePartTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    @Test(
        "A file that a stranger names like another's partial file does not damage it",
        arguments: [true, false])
    func namedLikeAPart(_ replaces: Bool) throws {
        let waiting = try receive(replaces ? "--force" : "--verbose")
        let good = try sender.start(
            ["send", waiting.address, "-", "--as", "race", "--json"] + Self.transportOptions, reads: true)
        good.type("good")
        try waiting.child.line(with: "\"start\"")
        try Data("EVILEVIL".utf8).write(to: URL(fileURLWithPath: path("evil")))
        for name in ["race.part", "race.part.nigh", "Race.PART"] {
            let evil = try NighUser().run(
                ["send", waiting.address, path("evil"), "--as", name] + Self.transportOptions)
            #expect(evil.status == 0, "\(evil)")
        }
        good.type("good")
        good.closeInput()
        let sent = try NighCall(finishing: good)
        #expect(sent.status == 0, "\(sent)")
        // The receiver removes the folder of its parts after the sender knows that everything is kept.
        try waiting.child.line(with: "\"transfer\"", occurrence: 4)
        #expect(try content(received("race")) == Data("good\ngood\n".utf8))
        let others = try names().filter { $0 != "race" }
        #expect(others == ["Race.PART_", "race.part.nigh_", "race.part_"])
        for name in others { #expect(try content(received(name)) == Data("EVILEVIL".utf8)) }
    }

    /// Sends `half` twice as the file `big`, calls `meddle` in between, and waits until both ends have finished. So the
    /// transfer cannot end before `meddle` has.
    private func transfer(_ option: String = "-v", meddling meddle: () throws -> Void) throws -> (
        sent: NighCall, got: NighCall
    ) {
        let waiting = try receive("--once", option)
        let sending = try sender.start(
            ["send", waiting.address, "-", "--as", "big", "--json"] + Self.transportOptions, reads: true)
        sending.type(Self.half)
        try waitForBytes(waiting.child)
        try meddle()
        sending.type(Self.half)
        sending.closeInput()
        let sent = try NighCall(finishing: sending)
        try waiting.child.line(with: "\"transfer\"")
        waiting.child.send(SIGINT)
        return (sent, try NighCall(finishing: waiting.child))
    }

    private static let half = (0..<120_000).map { String($0) }.joined()
    private static let whole = Data("\(half)\n\(half)\n".utf8)

    @Test("Bytes that another program writes into a partial file are never reported as received")
    func writtenInto() throws {
        let (sent, got) = try transfer {
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: data(of: "big")))
            try handle.write(contentsOf: Data("changed".utf8))
            try handle.close()
        }
        #expect(sent.status == 1 && sent.errors.joined().contains("is not what was sent"), "\(sent)")
        #expect(got.lines.joined().contains("is not what was sent"), "\(got)")
        try got.expectSchema("receive", lines: true)
        #expect(try names() == [])
    }

    @Test("Another program may read a partial file, and delays nothing")
    func readMeanwhile() throws {
        let (sent, got) = try transfer {
            let copy = try Child("/bin/cp", [data(of: "big"), path("copy")])
            #expect(try copy.end().status == 0)
            let part = try content(path("copy"))
            #expect(!part.isEmpty && Self.whole.starts(with: part))
        }
        #expect(sent.status == 0 && got.status == 0, "\(sent) \(got)")
        #expect(try content(received("big")) == Self.whole)
        #expect(try names() == ["big"])
    }

    @Test(
        "A file that somebody put in a partial file's place does not get the file's name",
        arguments: ["--force", "-v"])
    func replaced(_ option: String) throws {
        let other = Data("of another program".utf8)
        let (sent, got) = try transfer(option) {
            try other.write(to: URL(fileURLWithPath: received("other")))
            try #require(rename(received("other"), data(of: "big")) == 0)
        }
        #expect(sent.status == 1, "\(sent)")
        #expect(got.lines.joined().contains("was removed or replaced"), "\(got)")
        #expect(try !names().contains("big"))
    }

    @Test("A partial file that was removed is not reported as kept", arguments: [true, false])
    func removed(_ wholeFolder: Bool) throws {
        try file("big", bytes: 4_000_000)
        let waiting = try receive()
        let sending = try sender.start(
            ["send", waiting.address, path("big"), "--json"] + Self.transportOptions + Self.endlessly)
        try waitForBytes(waiting.child)
        try FileManager.default.removeItem(atPath: wholeFolder ? inbox.path : received("big.part"))
        sending.send(SIGINT)
        #expect(try NighCall(finishing: sending).status == 1)
        let failure = try object(waiting.child.line(with: "\"failure\""))
        #expect(failure["part"] is NSNull, "\(failure)")
    }

    @Test("A file whose folder was removed is not reported as received, and the reason is reported")
    func folderRemoved() throws {
        let (sent, got) = try transfer { try FileManager.default.removeItem(atPath: inbox.path) }
        #expect(sent.status == 1, "\(sent)")
        #expect(got.lines.joined().contains("was moved or removed"), "\(got)")
    }

    @Test("The duration of a small file is reported, without a rate that cannot be known")
    func smallFiles() throws {
        try file("small", bytes: 14_000)
        let waiting = try receive()
        for _ in 0..<10 {
            let sent = try send(path("small"), to: waiting)
            #expect(try sent.object()["duration_ms"] as? Double ?? 0 > 0, "\(sent)")
            try sent.expectSchema("send")
        }
        try waiting.child.line(with: "\"transfer\"", occurrence: 10)
        waiting.child.send(SIGINT)
        let got = try NighCall(finishing: waiting.child)
        try got.expectSchema("receive", lines: true)
        let reported = try got.objects().filter { $0["type"] as? String == "transfer" }
        #expect(reported.count == 10)
        for transfer in reported {
            let time = try #require(transfer["duration_ms"] as? Double)
            #expect(time > 0, "\(transfer)")
            // The rate follows from the size and the time. It is absent if the time is less than 1 ms.
            let rate = transfer["bytes_per_second"] as? Double
            if time < 1 {
                #expect(rate == nil, "\(transfer)")
            } else {
                #expect(rate ?? 0 < 14_000_001, "\(transfer)")
            }
        }
    }
}
