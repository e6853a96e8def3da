import NighCore
import NighTestKit
import Testing

@testable import NighForwarding

@Suite("A forwarded connection") struct ForwardingTests {
    @Test func `A connection carries bytes in both directions, and the end of each by itself`() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, outcome) = try pair.open()
        let (question, answer) = (pattern(300_000), pattern(500_000, 7))
        puma.send(question)
        puma.finish()
        try pair.run()
        #expect(lynx.received == question && lynx.hasEnd)
        #expect(!puma.hasEnd && !outcome.isClosed)
        lynx.send(answer)
        lynx.finish()
        try pair.run()
        #expect(puma.received == answer && puma.hasEnd)
        #expect(outcome.isClosed && outcome.error == nil)
        #expect(pair.openCounts == [0, 0])
        try pair.close()
    }

    @Test(arguments: [true, false], [true, false])
    func `A program that crashes resets the connection at the other end`(
        isOpeningSide: Bool, otherHasFinished: Bool
    ) throws {
        let pair = try ForwardingPair()
        let (puma, lynx, outcome) = try pair.open()
        let (crashed, other) = isOpeningSide ? (puma, lynx) : (lynx, puma)
        crashed.send(pattern(1_000))
        other.send(pattern(1_000))
        if otherHasFinished { other.finish() }
        try pair.run()
        crashed.crash()
        try pair.run()
        #expect(other.wasReset && outcome.isClosed && outcome.error != nil)
        try pair.close()
    }

    @Test(arguments: [true, false])
    func `A program is slowed to the speed of the one at the other end`(isOpeningSide: Bool) throws {
        let pair = try ForwardingPair { $0.limits.streamWindow = 100_000 }
        let (puma, lynx, _) = try pair.open()
        let (writer, reader) = isOpeningSide ? (puma, lynx) : (lynx, puma)
        reader.keeps = false
        reader.reads = 0
        writer.sendsForever = true
        try pair.run(.seconds(60))
        // Written and not sent, received and not read, what the program's socket holds, and a read on each side.
        let most = 2 * 100_000 + (64 << 10) + 4 * (16 << 10)
        #expect(writer.taken > 100_000 && writer.taken <= most, "\(writer.taken)")
        for round in 1...5 {
            reader.reads = round * 1_000_000
            try pair.run(.seconds(10))
            #expect(writer.taken >= round * 1_000_000 && writer.taken <= round * 1_000_000 + most)
        }
        writer.sendsForever = false
        try pair.close()
    }

    @Test func `A connection loses and repeats nothing while the link is cut again and again`() throws {
        let pair = try ForwardingPair()
        pair.puma.faults.plan.bytesPerSecond = 200_000
        let (puma, lynx, outcome) = try pair.open()
        let (up, down) = (pattern(2_000_000), pattern(2_000_000, 99))
        puma.send(up)
        lynx.send(down)
        puma.finish()
        lynx.finish()
        for _ in 0..<20 {
            try pair.run(.milliseconds(900))
            pair.puma.faults.cut()
        }
        pair.puma.faults.plan.bytesPerSecond = nil
        try pair.run(.seconds(60))
        #expect(lynx.received == up && puma.received == down)
        #expect(outcome.isClosed && outcome.error == nil)
        try pair.close()
    }

    @Test func `A connection waits for another link as long as both sides keep their conversation`() throws {
        let pair = try ForwardingPair { $0.timings.grace = .seconds(600) }
        let (puma, lynx, outcome) = try pair.open()
        #expect(outcome.grace == .seconds(600))
        pair.loseLink()
        puma.send(pattern(50_000))
        try pair.run(.seconds(540))
        #expect(lynx.received.isEmpty && !outcome.isClosed)
        for member in pair.members { member.faults.unblock() }
        try pair.run(.seconds(10))
        #expect(lynx.received == pattern(50_000) && !outcome.isClosed)
        pair.loseLink()
        try pair.run(.seconds(640))
        #expect(outcome.isClosed && outcome.error != nil && puma.wasReset && lynx.wasReset)
        try pair.close()
    }

    @Test func `64 connections carry bytes at the same time`() throws {
        let pair = try ForwardingPair()
        let connections = (0..<64).map { _ in pair.connect() }
        try pair.run()
        #expect(pair.ports.accepted.count == 64)
        for (number, (program, _)) in connections.enumerated() {
            program.send(pattern(40_000, number))
            program.finish()
        }
        try pair.run(.seconds(5))
        for lynx in pair.ports.accepted {
            #expect(lynx.received.count == 40_000 && lynx.hasEnd)
            lynx.send(lynx.received)
            lynx.finish()
        }
        try pair.run(.seconds(5))
        for (number, (program, outcome)) in connections.enumerated() {
            #expect(program.received == pattern(40_000, number))
            #expect(outcome.isClosed && outcome.error == nil)
        }
        try pair.close()
    }

    @Test func `A connection grows its window with what the link carries in a round trip`() throws {
        let pair = try ForwardingPair { $0.limits.streamWindow = 32 << 10 }
        let (puma, lynx, _) = try pair.open()
        lynx.keeps = false
        pair.delayLinks()
        puma.sendsForever = true
        try pair.run(.seconds(5))
        let before = lynx.receivedCount
        try pair.run(.seconds(2))
        // 32 KiB in each 50 ms would be 1.3 MB. The link here carries 256 KiB each way at once.
        #expect(lynx.receivedCount - before > 10_000_000, "\(lynx.receivedCount - before)")
        puma.sendsForever = false
        try pair.close()
    }

    @Test func `A connection keeps its window on a slow link`() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, _) = try pair.open()
        lynx.keeps = false
        pair.delayLinks(bytesPerSecond: 200_000)
        puma.sendsForever = true
        try pair.run(.seconds(60))
        let most = 2 * (256 << 10) + 4 * (16 << 10)
        #expect(puma.taken - lynx.receivedCount <= most, "\(puma.taken - lynx.receivedCount)")
        puma.sendsForever = false
        try pair.close()
    }
}
