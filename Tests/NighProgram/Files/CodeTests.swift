import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh send FILE` and `nigh receive CODE` between two devices that have never met.
@Suite(.callsPrograms) struct CodeTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    /// A `nigh send` that shows a code.
    private struct Offer {
        let child: Child
        var code: String
        let address: String
    }

    private func offer(_ arguments: String...) throws -> Offer {
        let child = try sender.start(
            ["send", "--json-lines", "--name", "Puma"] + arguments + Self.transportOptions)
        let shown = try Self.object(try child.line(with: "\"code\""))
        let addresses = try #require(shown["addresses"] as? [String])
        return Offer(
            child: child, code: try #require(shown["code"] as? String), address: try #require(addresses.first)
        )
    }

    private static func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    private func take(_ code: String, of offer: Offer, _ more: [String] = []) throws -> Child {
        try receiver.start(
            ["receive", code, "--from", offer.address, "--into", inbox.path, "--json-lines"] + more
                + Self.transportOptions)
    }

    /// Another code with the same number.
    private func wrong(_ code: String) -> String {
        code.split(separator: "-").prefix(3).joined(separator: "-")
            + (code.hasSuffix("-acid") ? "-actor" : "-acid")
    }

    @Test("A file arrives where its code is typed, without pairing, and both sides end well")
    func transfer() throws {
        let data = try file("holiday.mov", bytes: 3_000_000)
        let offer = try offer(path("holiday.mov"))
        let got = try NighCall(finishing: take(offer.code.uppercased(), of: offer))
        #expect(got.status == 0, "\(got)")
        try got.expectSchema("receive", lines: true)
        let sent = try NighCall(finishing: offer.child)
        #expect(sent.status == 0, "\(sent)")
        try sent.expectSchema("send", lines: true)
        #expect(try content(received("holiday.mov")) == data)
        #expect(try receiver.run("peers", "--paired").lines == ["No peer is paired."])
    }

    @Test(
        "A wrong code is reported with the one who typed it and gets nothing, and the code that follows is another"
    )
    func wrongCode() throws {
        let data = try file("a.txt", bytes: 10)
        let offer = try offer(path("a.txt"))
        let guess = try NighCall(finishing: take(wrong(offer.code), of: offer))
        #expect(guess.status == 1)
        #expect(guess.errors.contains { $0.contains("the code is wrong") }, "\(guess)")
        let reported = try Self.object(try offer.child.line(with: "\"wrong_guess\""))
        let own = try receiver.run("identity", "--json").object()
        #expect(reported["peer_id"] as? String == own["id"] as? String)
        let next = try Self.object(try offer.child.line(with: "\"code\"", occurrence: 2))
        let code = try #require(next["code"] as? String)
        #expect(code != offer.code)
        // The code that somebody has guessed at is worth nothing, although it was right.
        #expect(try NighCall(finishing: take(offer.code, of: offer)).status == 1)
        let last = try Self.object(try offer.child.line(with: "\"code\"", occurrence: 3))
        #expect(try NighCall(finishing: take(#require(last["code"] as? String), of: offer)).status == 0)
        #expect(try NighCall(finishing: offer.child).status == 0)
        #expect(try content(received("a.txt")) == data)
    }

    @Test("A receiver that is killed continues with the same code, and receives only the rest")
    func killedReceiver() throws {
        let data = try file("large", bytes: 4_000_000)
        let offer = try offer(path("large"), "--inject", "rate=8mbit")
        let first = try take(offer.code, of: offer)
        try first.line(with: "\"progress\"", occurrence: 2)
        first.send(SIGKILL)
        _ = try? first.end()
        let second = try NighCall(finishing: take(offer.code, of: offer))
        #expect(second.status == 0, "\(second)")
        #expect(try content(received("large")) == data)
        #expect(try NighCall(finishing: offer.child).status == 0)
    }

    @Test("A mistyped word is found before anybody is called")
    func mistyped() throws {
        let call = try receiver.run("receive", "7-accid-otter-lamp")
        #expect(call.status == 2)
        #expect(
            call.errors.first?.contains("there is no word \"accid\" in codes: did you mean acid?") == true,
            "\(call)")
    }

    @Test("Ctrl-C ends the wait for a code with one sentence")
    func interrupted() throws {
        try file("a.txt", bytes: 10)
        let offer = try offer(path("a.txt"))
        offer.child.send(SIGINT)
        let call = try NighCall(finishing: offer.child)
        #expect(call.status == 1)
        #expect(call.errors.last == "nigh: interrupted", "\(call)")
    }

    @Test("One command sends to several devices at once, and says who did not get everything")
    func severalDevices() throws {
        let data = try file("photo.jpg", bytes: 500_000)
        let waiting = try receive("--once")
        let closed = try BoundSocket()
        let sent = try sender.run(
            [
                "send", "--json", "--to", waiting.address, "--to", "tcp://127.0.0.1:\(closed.port)",
                path("photo.jpg"),
            ]
                + ["--wait", "2s"] + Self.transportOptions)
        #expect(sent.status == 1)
        try sent.expectSchema("send")
        let recipients = try #require(try sent.object()["recipients"] as? [[String: Any]])
        #expect(recipients.map { $0["error"] == nil } == [true, false], "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("photo.jpg")) == data)
    }
}
