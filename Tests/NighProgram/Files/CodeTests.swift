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
        let code: String
        let address: String

        init(_ line: String, by sender: NighUser) throws {
            child = try sender.start("send --json-lines --name Puma \(line) \(byAddress)")
            let shown = try child.json(with: "\"code\"")
            code = try #require(shown["code"].string)
            address = try #require(shown["addresses"][0].string)
        }

        /// Another code with the same number.
        var wrongCode: String {
            code.split(separator: "-").prefix(3).joined(separator: "-")
                + (code.hasSuffix("-acid") ? "-actor" : "-acid")
        }
    }

    private func take(_ code: String, of offer: Offer) throws -> Child {
        try receiver.start(
            "receive \(code) --from \(offer.address) --into \(inbox.path) --json-lines \(byAddress)")
    }

    @Test func `A file arrives where its code is typed, without pairing, and both sides end well`() throws {
        let data = try file("holiday.mov", bytes: 3_000_000)
        let offer = try Offer(path("holiday.mov"), by: sender)
        try take(offer.code.uppercased(), of: offer).finish()
        try offer.child.finish()
        #expect(try content(received("holiday.mov")) == data)
        #expect(try receiver.run("peers --paired").lines == ["No peer is paired."])
    }

    @Test func `A wrong code gets nothing, is reported, and the next code is another`() throws {
        let data = try file("a.txt", bytes: 10)
        let offer = try Offer(path("a.txt"), by: sender)
        try take(offer.wrongCode, of: offer).finish(status: 1, says: "the code is wrong")
        #expect(try offer.child.json(with: "\"wrong_guess\"")["peer_id"].string == receiver.id())
        let next = try offer.child.json(with: "\"code\"", occurrence: 2)["code"].string
        #expect(next != nil && next != offer.code)
        // The code that somebody has guessed at is worth nothing, although it was right.
        try take(offer.code, of: offer).finish(status: 1)
        let last = try offer.child.json(with: "\"code\"", occurrence: 3)["code"].string
        try take(#require(last), of: offer).finish()
        try offer.child.finish()
        #expect(try content(received("a.txt")) == data)
    }

    @Test func `A receiver that is killed continues with the same code, and receives only the rest`() throws {
        let data = try file("large", bytes: 4_000_000)
        let offer = try Offer("\(path("large")) --inject rate=8mbit", by: sender)
        let first = try take(offer.code, of: offer)
        try first.line(with: "\"progress\"", occurrence: 2)
        try first.finish(after: SIGKILL, status: nil)
        try take(offer.code, of: offer).finish()
        #expect(try content(received("large")) == data)
        try offer.child.finish()
    }

    @Test func `Ctrl-C ends the wait for a code with one sentence`() throws {
        try file("a.txt", bytes: 10)
        let call = try Offer(path("a.txt"), by: sender).child.finish(after: SIGINT, status: 1)
        #expect(call.errors.last == "nigh: interrupted", "\(call)")
    }
}
