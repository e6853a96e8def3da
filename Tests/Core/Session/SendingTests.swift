import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct SendingTests {
    /// Room goes to the caller that has waited longest, whichever call sends the message.
    @Test func aWaitingSenderIsNotOvertaken() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair { $0.limits.sendBuffer = 1_000 }
        puma.faults.stall()
        try puma.session.trySend([UInt8](repeating: 1, count: 1_200), to: lynx.id)
        let port = try puma.session.directory.port(of: lynx.id)
        nonisolated(unsafe) var completed: [Int] = []  // the loop is virtual: one thread
        for number in 1...2 {
            port.waitForRoom(number: UInt64(number)) { _ in completed.append(number) }
        }
        puma.faults.release()
        try place.run(.seconds(1))
        #expect(completed == [1], "the second waits for the first")
        let bytes: [UInt8] = [1, 2, 3]
        #expect(throws: NighError.self) { try puma.session.trySend(bytes, to: lynx.id) }
        #expect(throws: NighError.self) { try puma.session.trySend(ByteSlice(bytes), to: lynx.id) }
        #expect(throws: PartialSendError.self) {
            try puma.session.trySend(ByteSlice(bytes), to: [lynx.id, lynx.id])
        }
        port.admitNextWaiter()
        #expect(completed == [1, 2])
        try puma.session.trySend(ByteSlice(bytes), to: lynx.id)
    }

    /// A task that is woken and finds no room has not had its turn: the next one must not be woken before it.
    @Test func waitingTasksSendInTheOrderInWhichTheyCame() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair {
            $0.limits.sendBuffer = 100_000
            $0.limits.receiveWindow = 100_000
        }
        puma.faults.stall()
        let session = puma.session
        try session.trySend([UInt8](repeating: 0, count: 150_000), to: lynx.id)
        for number in 1...4 {
            Task(executorPreference: place.loop) {
                try await session.send([UInt8](repeating: UInt8(number), count: 150_000), to: lynx.id)
            }
            try place.loop.runQueued()
        }
        puma.faults.release()
        try place.run(.seconds(5))
        #expect(lynx.messages.map { $0.bytes.first } == [0, 1, 2, 3, 4])
    }

    @Test func everyLengthArrivesOnBothLanes() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair { $0.limits.sendBuffer = 8 << 20 }
        let lengths = [0, 1, 64, 4_096, 16_383, 16_384, 16_385, 32_768, 65_536, 300_000, 1_000_003]
        for lane in Lane.allCases {
            for length in lengths {
                let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ length) }
                try puma.session.trySend(bytes, to: lynx.id, .reliable(lane))
            }
        }
        try place.run(.seconds(2))
        for lane in Lane.allCases {
            let received = lynx.messages.filter { $0.origin.lane == lane }
            #expect(received.map(\.bytes.count) == lengths)
            let isIntact = received.allSatisfy { message in
                let length = message.bytes.count
                return message.bytes.indices.allSatisfy {
                    message.bytes[$0] == UInt8(truncatingIfNeeded: $0 &+ length)
                }
            }
            #expect(isIntact)
        }
        #expect(puma.statistics.peers[lynx.id]?.bytesWaiting == 0)
    }

    @Test func aMessageBeyondTheLimitNamesIt() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair { $0.limits.message = 100_000 }
        let error = #expect(throws: NighError.self) {
            try puma.session.trySend([UInt8](repeating: 0, count: 100_001), to: lynx.id)
        }
        #expect(error?.cause == .messageTooLarge(size: 100_001, limit: 100_000))
        try puma.session.trySend([UInt8](repeating: 0, count: 100_000), to: lynx.id)
        try place.run(.seconds(1))
        #expect(lynx.messages.count == 1)
    }

    @Test func aReaderThatDoesNotReadFillsTheBufferAndThePeerIsNamed() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(.inbox)
        var accepted = 0
        var refusal: NighError?
        for _ in 0..<100 {
            do throws(NighError) {
                for _ in 0..<100 {
                    try puma.session.trySend([UInt8](repeating: 7, count: 1_000), to: lynx.id)
                    accepted += 1
                }
            } catch {
                refusal = error
            }
            try place.run(.milliseconds(100))
        }
        let error = try #require(refusal)
        #expect(error.cause == .bufferFull(limit: SessionLimits().sendBuffer))
        #expect(error.description.contains(lynx.id.short))
        let limits = SessionLimits()
        let unread = try #require(lynx.statistics.peers[puma.id]).bytesUnread
        #expect(unread <= limits.receiveWindow + 20_000)
        #expect(accepted * 1_004 <= limits.sendBuffer + limits.receiveWindow + 40_000)

        // The reader wakes up: everything arrives, and there is room again.
        var read = 0
        for _ in 0..<200 {
            while lynx.session.messages.poll() != nil { read += 1 }
            try place.run(.milliseconds(10))
        }
        #expect(read == accepted)
        #expect(lynx.statistics.peers[puma.id]?.bytesUnread ?? 0 <= limits.receiveWindow / 4)
        try puma.session.trySend([1], to: lynx.id)
    }

    @Test func aHundredMegabytesToASleepingReaderWaitInTheSenderWhilePingsAreAnswered() async throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(.inbox)
        let block = ByteSlice([UInt8](repeating: 9, count: 1 << 20))
        var sent = 0
        var pings: [Duration] = []
        nonisolated(unsafe) var answered: [Duration] = []  // the loop is virtual: one thread
        for _ in 0..<50 {
            while sent < 100, (try? puma.session.trySend(block, to: lynx.id, .reliable(.bulk))) != nil {
                sent += 1
            }
            puma.session.ping(lynx.id) { if case .success(let time) = $0 { answered.append(time) } }
            try place.run(.milliseconds(200))
        }
        pings = answered
        let limits = SessionLimits()
        #expect(sent << 20 <= limits.sendBuffer + limits.receiveWindow + 1 << 20)
        #expect(pings.count == 50)
        #expect(pings.allSatisfy { $0 < .milliseconds(5) })
        let unread = try #require(lynx.statistics.peers[puma.id]).bytesUnread
        #expect(unread <= 2 << 20)

        var read = 0
        while read < 100 {
            while sent < 100, (try? puma.session.trySend(block, to: lynx.id, .reliable(.bulk))) != nil {
                sent += 1
            }
            while let message = lynx.session.messages.poll() {
                #expect(message.payload.count == 1 << 20)
                read += 1
            }
            try place.run(.milliseconds(1))
            try #require(place.loop.now < Moment(nanoseconds: 60_000_000_000), "the transfer does not end")
        }
        #expect(sent == 100)
    }

    @Test func aSmallMessageOnTheMainLaneOvertakesABulkTransfer() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.bytesPerSecond = 1 << 20
        let (puma, lynx) = try place.pair(plan: plan) {
            $0.limits.sendBuffer = 32 << 20
            $0.limits.receiveWindow = 16 << 20
        }
        try puma.session.trySend([UInt8](repeating: 1, count: 8 << 20), to: lynx.id, .reliable(.bulk))
        try place.run(.seconds(1))
        let asked = place.loop.now
        try puma.session.trySend(Array("your move".utf8), to: lynx.id)
        let arrived = try place.loop.run(until: { lynx.messages.count > 0 }, within: .seconds(20))
        #expect(arrived)
        #expect(lynx.texts.first == "your move")
        #expect(place.loop.now - asked < .milliseconds(900))
        try place.run(.seconds(20))
        #expect(lynx.messages.count == 2)
    }

    @Test func aFullBulkLaneLeavesRoomOnTheMainLane() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        puma.faults.stall()
        let block = ByteSlice([UInt8](repeating: 1, count: 100_000))
        while (try? puma.session.trySend(block, to: lynx.id, .reliable(.bulk))) != nil {}
        try puma.session.trySend(Array("your move".utf8), to: lynx.id)
        puma.faults.release()
        try place.run(.seconds(5))
        #expect(lynx.texts.contains("your move"))
    }

    @Test func unreliableMessagesAreDroppedNotQueuedWhenTheLinkIsBackedUp() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair { $0.datagrams = false }
        try puma.session.trySend(Array("quick".utf8), to: lynx.id, .unreliable)
        try place.run(.milliseconds(10))
        #expect(lynx.texts == ["quick"])
        #expect(lynx.messages.first?.origin.isReliable == false)

        puma.faults.stall()
        for number in 0..<2_000 {
            try puma.session.trySend(
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1_000), to: lynx.id, .unreliable)
            if number % 50 == 0 { try place.run(.milliseconds(1)) }
        }
        let dropped = try #require(puma.statistics.peers[lynx.id]).unreliableDropped
        #expect(dropped > 1_000)
        puma.faults.release()
        try place.run(.seconds(1))
        #expect(lynx.messages.count + dropped == 2_001)
    }

    /// Puma and Lynx, whose link takes no more bytes of Puma until the faults release it.
    private func pairWithBackedUpLink(
        in place: Neighbourhood
    ) throws -> (puma: Neighbourhood.Member, lynx: Neighbourhood.Member) {
        let (puma, lynx) = try place.pair { $0.datagrams = false }
        puma.faults.stall()
        let block = ByteSlice([UInt8](repeating: 1, count: 100_000))
        while (try? puma.session.trySend(block, to: lynx.id, .reliable(.bulk))) != nil {}
        try place.run(.seconds(1))
        return (puma, lynx)
    }

    @Test func ofEachKeyTheNewestMessageWaitsForALinkThatIsBackedUp() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pairWithBackedUpLink(in: place)
        for number in 0..<50 as Range<UInt8> {
            for key in 0..<3 as Range<UInt8> {
                try puma.session.trySend([key, number], to: lynx.id, .newest(key: key))
            }
            try place.run(.milliseconds(1))
        }
        #expect(lynx.messages.allSatisfy { $0.origin.isReliable })
        puma.faults.release()
        try place.run(.seconds(5))
        let values = lynx.messages.filter { !$0.origin.isReliable }.map(\.bytes)
        #expect(values == [[0, 49], [1, 49], [2, 49]])
        #expect(try #require(puma.statistics.peers[lynx.id]).unreliableDropped == 3 * 49)
        // Where there is room, each one travels.
        for number in 0..<3 as Range<UInt8> {
            try puma.session.trySend([9, number], to: lynx.id, .newest(key: 9))
            try place.run(.milliseconds(10))
        }
        #expect(lynx.messages.suffix(3).map(\.bytes) == [[9, 0], [9, 1], [9, 2]])
    }

    /// A pipe that was never backed up does not report room.
    @Test func messagesOfKeysThatDoNotFitIntoOneWriteFollowWithoutAnythingElseToSend() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair { $0.datagrams = false }
        puma.faults.plan.bytesPerSecond = 100_000
        let values = (0..<16 as Range<UInt8>).map { [UInt8](repeating: $0, count: 8_192) }
        for value in values { try puma.session.trySend(value, to: lynx.id, .newest(key: value[0])) }
        // Less than the silence after which a ping leaves, which would take them along.
        try place.run(.seconds(4))
        #expect(lynx.messages.map(\.bytes) == values)
        #expect(try #require(puma.statistics.peers[lynx.id]).unreliableDropped == 0)
    }

    @Test func messagesOfKeysThatWaitForALinkThatIsLostCountAsDropped() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try pairWithBackedUpLink(in: place)
        for key in 0..<3 as Range<UInt8> {
            try puma.session.trySend([key], to: lynx.id, .newest(key: key))
        }
        try place.run(.milliseconds(10))
        puma.faults.cut()
        puma.faults.release()
        try place.run(.seconds(5))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(lynx.messages.allSatisfy { $0.origin.isReliable })
        #expect(try #require(puma.statistics.peers[lynx.id]).unreliableDropped == 3)
    }

    @Test func unreliableMessagesAreNotSentAgainAfterACut() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        puma.faults.block()
        try puma.session.trySend(Array("into the void".utf8), to: lynx.id, .unreliable)
        try puma.session.trySend(Array("kept".utf8), to: lynx.id)
        try place.run(.milliseconds(10))
        puma.faults.cut()
        puma.faults.unblock()
        try place.run(.seconds(20))
        #expect(lynx.texts == ["kept"])
    }

    @Test func sendingToAllReachesAllAndReportsThePeersNotReached() throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: .server)
        let guests = (0..<3).map { place.join("Guest\($0)", role: .client) }
        try place.run(.seconds(1))
        for guest in guests { guest.session.invite(host.id) { _ in } }
        try place.run(.seconds(1))
        #expect(host.session.connectedPeerIDs == guests.map(\.id).sorted())
        try host.session.trySend(ByteSlice("to all".utf8), to: host.session.connectedPeerIDs)
        try place.run(.seconds(1))
        #expect(guests.map(\.texts) == [["to all"], ["to all"], ["to all"]])

        let stranger = Identity.ephemeral(seed: 99).peerID
        let error = #expect(throws: PartialSendError.self) {
            try host.session.trySend(ByteSlice("some".utf8), to: [guests[0].id, stranger, guests[2].id])
        }
        #expect(error?.failures.keys.map { $0 } == [stranger])
        #expect(error?.failures[stranger]?.cause == .notConnected)
        try place.run(.seconds(1))
        #expect(guests[0].texts == ["to all", "some"])
        #expect(guests[1].texts == ["to all"])
        #expect(guests[2].texts == ["to all", "some"])
    }

    @Test func aHandlerMaySendAndDisconnect() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        lynx.messageReaction = { bytes, origin, session in
            try? session.trySend(bytes.reversed(), to: origin.peer)
            if bytes == Array("bye".utf8) { session.disconnect(origin.peer) }
        }
        try puma.session.trySend(Array("one".utf8), to: lynx.id)
        try puma.session.trySend(Array("bye".utf8), to: lynx.id)
        try puma.session.trySend(Array("three".utf8), to: lynx.id)
        try place.run(.seconds(1))
        #expect(puma.texts.prefix(2) == ["eno", "eyb"])
        #expect(puma.lastCause(of: lynx.id)?.cause == .peerLeft)
    }

    @Test func oneTurnWritesForAsLongAsThePipeHasRoom() throws {
        let peer = try ScriptedPeer()
        try peer.beginConversation()
        peer.pipe.room = 1_000
        let messages = (0..<40 as Range<UInt8>).map { [UInt8](repeating: $0, count: 100) }
        for message in messages { try peer.session.trySend(message, to: ScriptedPeer.peer) }
        try peer.loop.runQueued()
        #expect(try peer.takeFrames() == messages.map { .init(.message, $0) })
    }
}
