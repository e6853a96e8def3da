import ChildPrograms
import Foundation
import NighCore
import NighLoop
import NighFiles
import NighTestKit
import Testing

@testable import nigh

/// Tests who gets a place at `nigh receive`, and who loses one.
@Suite struct SenderPlacesTests {
    private typealias Holder = SenderPlaces.Holder

    private let peers = (0..<9).map { _ in Identity.ephemeral().peerID }

    private func time(_ seconds: Int64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

    /// Eight holders, of which the one with the number 3 has waited longest.
    private func holders(isPaired: Bool = false, isAccepted: Bool = true, movedAt second: Int64) -> [Holder] {
        (0..<8).map { number in
            Holder(
                peer: peers[number], number: number, isPaired: isPaired, isAccepted: isAccepted,
                movedAt: time(number == 3 ? second - 1 : second))
        }
    }

    private func decision(
        forPaired isPaired: Bool, among holders: [Holder], keepsMoving: Bool = false, at second: Int64
    ) -> SenderPlaces.Decision {
        SenderPlaces(count: 8, keepsMoving: keepsMoving)
            .decision(forPaired: isPaired, among: holders, at: time(second))
    }

    @Test(arguments: [true, false]) func `While there are places, everybody gets one`(_ isPaired: Bool) {
        #expect(decision(forPaired: isPaired, among: holders(movedAt: 0).dropLast(), at: 100) == .free)
    }

    @Test func `A stranger waits while all others move, and gets the place of the one that was idle longest`()
    {
        let holders = holders(movedAt: 100)
        for second: Int64 in [100, 128] {
            #expect(decision(forPaired: false, among: holders, at: second) == .busy)
        }
        #expect(decision(forPaired: false, among: holders, at: 129) == .inPlace(of: peers[3]))
    }

    @Test func `Strangers that wait for an answer lose no place to other strangers`() {
        let holders = holders(isAccepted: false, movedAt: 0)
        #expect(decision(forPaired: false, among: holders, at: 1_000) == .busy)
    }

    @Test func `A paired device never waits for strangers, however much they move`() {
        #expect(decision(forPaired: true, among: holders(movedAt: 100), at: 100) == .inPlace(of: peers[3]))
        let waiting = holders(isAccepted: false, movedAt: 100)
        #expect(decision(forPaired: true, among: waiting, at: 100) == .inPlace(of: peers[7]))
        // Of those that have no answer yet, the last one loses its place, before those that were accepted.
        let mixed =
            Array(holders(movedAt: 0)[..<4]) + Array(waiting[4...5]) + Array(holders(movedAt: 0)[6...])
        #expect(decision(forPaired: true, among: mixed, at: 100) == .inPlace(of: peers[5]))
    }

    @Test func `What a person has accepted loses its place only when it is idle`() {
        let holders = holders(movedAt: 100)
        #expect(decision(forPaired: true, among: holders, keepsMoving: true, at: 100) == .busy)
        #expect(
            decision(forPaired: true, among: holders, keepsMoving: true, at: 129) == .inPlace(of: peers[3]))
    }

    @Test
    func `Paired devices lose their places to no stranger, and to a paired device only when they are idle`() {
        let holders = holders(isPaired: true, movedAt: 100)
        #expect(decision(forPaired: false, among: holders, at: 1_000) == .busy)
        #expect(decision(forPaired: true, among: holders, at: 128) == .busy)
        #expect(decision(forPaired: true, among: holders, at: 129) == .inPlace(of: peers[3]))
    }
}

/// Tests how often a peer sends to a `nigh receive`. FileQuestionTests shows that it asks who gets a place.
@Suite(.callsPrograms) struct SenderPlacesProgramTests: TransfersFiles {
    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    @Test func `A peer may send one transfer after the other, but not two at a time`() async throws {
        let waiting = try receive()
        let stranger = try ForeignSession(role: .client)
        let id = try await stranger.call(waiting.address, for: InvitationPurpose.send.context)
        func offer(_ name: String) async throws -> FileTransfer {
            let stream = try await stranger.session.peer(id).openStream(named: "files", for: .files)
            let tree = try SourceTree([.path(path(name))], giveUp: .seconds(600))
            return FileTransfer.begin(tree, on: stream)
        }
        for name in ["a", "b"] {
            try file(name, bytes: 1_000)
            try await offer(name).finish()
        }
        // The receiver removes what only resuming would need after the sender knows that everything is kept.
        try waiting.child.line(with: "\"transfer\"", occurrence: 2)
        #expect(try names() == ["a", "b"])
        try #require(mkfifo(path("idle"), 0o600) == 0)
        let first = try await offer("idle")
        try waiting.child.line(with: "\"start\"", "\"idle\"")
        let error = await #expect(throws: NighError.self) { try await offer("a").finish() }
        #expect(error.map { "\($0)" }?.contains("only one transfer at a time") == true)
        first.cancel()
        await stranger.end()
    }
}
