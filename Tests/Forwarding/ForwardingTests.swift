import NighCore
import NighTestKit
import Testing

@testable import NighForwarding

@Suite("A forwarded connection") struct ForwardingTests {
    @Test("carries bytes in both directions, and the end of each by itself")
    func halfClose() throws {
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
        #expect(pair.client.counts.open == 0 && pair.sessions.lynx.layer.counts.open == 0)
        try pair.close()
    }

    @Test("is reset at the other end if the program at one end crashes, whichever end that is")
    func resets() throws {
        for isOpeningSide in [true, false] {
            let pair = try ForwardingPair()
            let (puma, lynx, outcome) = try pair.open()
            puma.send(pattern(1_000))
            lynx.send(pattern(1_000))
            try pair.run()
            let (crashed, other) = isOpeningSide ? (puma, lynx) : (lynx, puma)
            crashed.crash()
            try pair.run()
            #expect(other.wasReset && outcome.isClosed && outcome.error != nil)
            try pair.close()
        }
    }

    @Test("is reset at both ends if the program at one end crashes after the other has finished")
    func resetAfterEnd() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, outcome) = try pair.open()
        puma.finish()
        try pair.run()
        lynx.crash()
        try pair.run()
        #expect(puma.wasReset && outcome.isClosed && outcome.error != nil)
        try pair.close()
    }

    @Test("slows the program at one end to the speed of the one at the other, and keeps little")
    func slowReaders() throws {
        for isOpeningSide in [true, false] {
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
    }

    @Test("loses and repeats nothing while the link is cut again and again")
    func cuts() throws {
        let pair = try ForwardingPair()
        pair.sessions.puma.faults.plan.bytesPerSecond = 200_000
        let (puma, lynx, outcome) = try pair.open()
        let (up, down) = (pattern(2_000_000), pattern(2_000_000, 99))
        puma.send(up)
        lynx.send(down)
        puma.finish()
        lynx.finish()
        for _ in 0..<20 {
            try pair.run(.milliseconds(900))
            pair.sessions.puma.faults.cut()
        }
        pair.sessions.puma.faults.plan.bytesPerSecond = nil
        try pair.run(.seconds(60))
        #expect(lynx.received == up && puma.received == down)
        #expect(outcome.isClosed && outcome.error == nil)
        try pair.close()
    }

    @Test("waits for another link as long as both sides keep their conversation")
    func grace() throws {
        let pair = try ForwardingPair { $0.timings.grace = .seconds(600) }
        let (puma, lynx, outcome) = try pair.open()
        #expect(outcome.grace == .seconds(600))
        let members = [pair.sessions.puma, pair.sessions.lynx]
        for member in members {
            member.faults.block(dials: .refuse)
            member.faults.cut()
        }
        puma.send(pattern(50_000))
        try pair.run(.seconds(540))
        #expect(lynx.received.isEmpty && !outcome.isClosed)
        for member in members { member.faults.unblock() }
        try pair.run(.seconds(10))
        #expect(lynx.received == pattern(50_000) && !outcome.isClosed)
        for member in members {
            member.faults.block(dials: .refuse)
            member.faults.cut()
        }
        try pair.run(.seconds(640))
        #expect(outcome.isClosed && outcome.error != nil && puma.wasReset && lynx.wasReset)
        try pair.close()
    }

    @Test("is one of 64 that carry bytes at the same time")
    func many() throws {
        let pair = try ForwardingPair()
        var outcomes: [ForwardingPair.Outcome] = []
        var programs: [Program] = []
        for _ in 0..<64 {
            let (program, outcome) = pair.connect()
            programs.append(program)
            outcomes.append(outcome)
        }
        try pair.run()
        #expect(pair.ports.accepted.count == 64)
        for (number, program) in programs.enumerated() {
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
        for (number, program) in programs.enumerated() {
            #expect(program.received == pattern(40_000, number))
        }
        #expect(outcomes.allSatisfy { $0.isClosed && $0.error == nil })
        try pair.close()
    }

    @Test("grows its window with what the link carries in a round trip, so that a long way is no slow one")
    func longWay() throws {
        let pair = try ForwardingPair { $0.limits.streamWindow = 32 << 10 }
        let (puma, lynx, _) = try pair.open()
        lynx.keeps = false
        for member in [pair.sessions.puma, pair.sessions.lynx] {
            member.faults.plan.delay = .milliseconds(25)
            member.faults.plan.direction = .outgoing
            member.faults.cut()
        }
        puma.sendsForever = true
        try pair.run(.seconds(5))
        let before = lynx.receivedCount
        try pair.run(.seconds(2))
        // 32 KiB in each 50 ms would be 1.3 MB. The link here carries 256 KiB each way at once.
        #expect(lynx.receivedCount - before > 10_000_000, "\(lynx.receivedCount - before)")
        puma.sendsForever = false
        try pair.close()
    }

    @Test("keeps its window on a slow link, where messages would only wait longer")
    func slowLink() throws {
        let pair = try ForwardingPair()
        let (puma, lynx, _) = try pair.open()
        lynx.keeps = false
        for member in [pair.sessions.puma, pair.sessions.lynx] {
            member.faults.plan.delay = .milliseconds(25)
            member.faults.plan.bytesPerSecond = 200_000
            member.faults.plan.direction = .outgoing
            member.faults.cut()
        }
        puma.sendsForever = true
        try pair.run(.seconds(60))
        let most = 2 * (256 << 10) + 4 * (16 << 10)
        #expect(puma.taken - lynx.receivedCount <= most, "\(puma.taken - lynx.receivedCount)")
        puma.sendsForever = false
        try pair.close()
    }
}
