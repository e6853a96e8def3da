import ChildPrograms
import Foundation
import NighCore
import NighFiles
import NighTestKit
import Testing

@testable import nigh

/// Tests how many peers send to a `nigh receive`, and how often.
@Suite(.callsPrograms) struct SenderPlacesProgramTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    /// Offers a file in a conversation that exists.
    private func offer(_ name: String, by stranger: StrangerInTests, to id: PeerID) async throws
        -> FileTransfer
    {
        let stream = try await stranger.session.peer(id).openStream(named: "files", for: .files)
        return FileTransfer.begin(try SourceTree([.path(path(name))], giveUp: .seconds(600)), on: stream)
    }

    private func stranger(at waiting: WaitingReceiver) async throws -> (StrangerInTests, PeerID) {
        let stranger = try StrangerInTests()
        stranger.start()
        let address = try #require(TransportAddress(waiting.address))
        return (stranger, try await stranger.session.invite(at: address, context: Purpose.send.context))
    }

    @Test("A paired device gets a place although eight idle strangers hold all places")
    func pairedFirst() async throws {
        let id = try #require(try sender.run("identity", "--json").object()["id"] as? String)
        #expect(try receiver.run("identity").status == 0)
        try Data("nigh-peers 1\npaired \(id) 2026-11-21 2026-11-22 \"Lynx\"\n".utf8).write(
            to: URL(fileURLWithPath: "\(receiver.dataFolder)/peers"))
        let data = try file("a", bytes: 1_000)
        // Nobody ever writes into it.
        try #require(mkfifo(path("idle"), 0o600) == 0)
        let waiting = try receive()
        var strangers: [StrangerInTests] = []
        for _ in 0..<FileReceiver.mostSenders {
            let (stranger, id) = try await stranger(at: waiting)
            _ = try await offer("idle", by: stranger, to: id)
            strangers.append(stranger)
        }
        try waiting.child.line(with: "\"start\"", occurrence: FileReceiver.mostSenders)
        let sent = try send(path("a"), to: waiting)
        #expect(sent.status == 0, "\(sent)")
        #expect(try content(received("a")) == data)
        try waiting.child.line(with: "\"failure\"", "a paired device took its place")
        for stranger in strangers { await stranger.end() }
        waiting.child.send(SIGINT)
        _ = try NighCall(finishing: waiting.child)
    }

    @Test("A peer may send one transfer after the other in one conversation, but not two at a time")
    func oneAfterTheOther() async throws {
        let waiting = try receive()
        let (stranger, id) = try await stranger(at: waiting)
        for name in ["a", "b", "c"] {
            try file(name, bytes: 1_000)
            try await offer(name, by: stranger, to: id).finish()
        }
        // The receiver removes what only resuming would need after the sender knows that everything is kept.
        try waiting.child.line(with: "\"transfer\"", occurrence: 3)
        #expect(try names() == ["a", "b", "c"])
        try #require(mkfifo(path("idle"), 0o600) == 0)
        let first = try await offer("idle", by: stranger, to: id)
        try waiting.child.line(with: "\"start\"", "\"idle\"")
        let error = await #expect(throws: NighError.self) {
            try await offer("a", by: stranger, to: id).finish()
        }
        #expect(error.map { "\($0)" }?.contains("only one transfer at a time") == true)
        first.cancel()
        await stranger.end()
        waiting.child.send(SIGINT)
        _ = try NighCall(finishing: waiting.child)
    }
}
