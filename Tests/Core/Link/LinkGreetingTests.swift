import Testing

@testable import NighCore

@Suite struct LinkGreetingTests {
    @Test func twoLinksCompleteTheHandshake() throws {
        let pair = LinkPair()
        #expect(pair.dialling.machine.version == nil && pair.accepting.machine.version == nil)
        try pair.deliverAll()
        for (end, seed) in [(pair.dialling, UInt8(2)), (pair.accepting, 1)] {
            #expect(end.machine.phase == .open)
            #expect(end.machine.version == 1)
            #expect(end.machine.peerHello == Frames.hello(seed: seed))
            #expect(end.plainNotes == [.opened])
            #expect(end.machine.end == nil)
        }
    }

    @Test func theHandshakeCompletesWithAnySplitOfTheBytes() throws {
        for seed in 0..<50 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let pair = LinkPair(split: { Int.random(in: 1...Int(1 + seed % 20), using: &generator) })
            try pair.deliverAll()
            #expect(pair.dialling.machine.phase == .open)
            #expect(pair.accepting.machine.phase == .open)
            #expect(pair.dialling.plainNotes == [.opened])
        }
    }

    @Test func emptySlicesAreIgnored() throws {
        let pair = LinkPair()
        pair.dialling.receive([], now: pair.now)
        let bytes = pair.accepting.gather()
        #expect(bytes == Preface(security: .plaintext).bytes)
        for byte in bytes {
            pair.dialling.receive([byte], now: pair.now)
            pair.dialling.receive([], now: pair.now)
        }
        #expect(pair.dialling.machine.phase == .greeting)
        try pair.deliverAll()
        pair.dialling.receive([], now: pair.now)
        #expect(pair.dialling.plainNotes == [.opened])
    }

    @Test func nothingButThePrefaceLeavesBeforeTheOthersPreface() {
        let pair = LinkPair()
        #expect(pair.dialling.gather() == Preface(security: .plaintext).bytes)
        #expect(pair.dialling.gather() == [])
        pair.dialling.machine.ping(token: 1, payload: [], now: pair.now)
        pair.dialling.machine.send(Standing())
        #expect(pair.dialling.gather() == [])
    }

    @Test func theHighestCommonVersionIsChosen() throws {
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, versions: 1...2)))
        try pair.deliverAll()
        #expect(pair.dialling.machine.version == 1)
        #expect(pair.accepting.machine.version == 1)
    }

    @Test func withoutACommonVersionBothSidesGetTheReason() throws {
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, versions: 2...3)))
        try pair.deliverAll()
        let (ours, theirs) = (pair.dialling.closed, pair.accepting.closed)
        #expect(ours?.cause == .noCommonVersion(ours: 2...3, theirs: 1...1))
        #expect(theirs?.cause == .noCommonVersion(ours: 1...1, theirs: 2...3))
        #expect(pair.dialling.notes.count == 1)
        #expect(pair.dialling.machine.deadline == .never)
    }

    @Test func withoutCommonSecurityBothSidesGetTheReason() throws {
        let pair = LinkPair(accepting: LinkPair.settings(seed: 2, security: .tls13))
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .noCommonSecurity(theyEncrypt: true))
        #expect(pair.accepting.closed?.cause == .noCommonSecurity(theyEncrypt: false))
    }

    @Test func aPeerOfAnotherServiceIsRejected() throws {
        let pair = LinkPair(
            accepting: LinkPair.settings(seed: 2, hello: Frames.hello(seed: 2, service: "chess")))
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .wrongService("chess"))
        #expect(pair.accepting.closed?.cause == .wrongService("test"))
    }

    @Test func aDialToItselfIsDetected() throws {
        let own = Frames.hello(seed: 1, incarnation: 5)
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1, hello: own),
            accepting: LinkPair.settings(seed: 1, hello: own))
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .selfDial)
        #expect(pair.accepting.closed?.cause == .selfDial)
    }

    @Test func anotherProgramWithTheSameIdentityIsDetected() throws {
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, incarnation: 5)),
            accepting: LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, incarnation: 6)))
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .sameIdentity)
        #expect(pair.accepting.closed?.cause == .sameIdentity)
    }

    @Test func anInvalidPrefaceEndsTheLink() {
        for bytes in ["GET / HTTP/1.1\r\n", "NIGHT-OF-THE", "NIGH\u{2}\u{1}\u{0}\u{0}"].map({ Array($0.utf8) }
        ) {
            let pair = LinkPair()
            for byte in bytes { pair.accepting.receive([byte], now: pair.now) }
            guard case .protocolViolation? = pair.accepting.closed?.cause else {
                Issue.record("\(bytes) was taken for a preface")
                continue
            }
            #expect(pair.accepting.notes.count == 1)
            // Its own preface leaves, so that the other side knows whom it met. No frame follows
            // to a side that could not read it.
            #expect(pair.accepting.gather() == Preface(security: .plaintext).bytes)
        }
    }

    @Test func framesBeforeTheHelloAreRefused() {
        for type in FrameType.allCases where type != .hello && type != .close {
            let pair = LinkPair()
            pair.accepting.receive(
                Preface(security: .plaintext).bytes + Frames.frame(type, [1]), now: pair.now)
            #expect(pair.accepting.closed?.cause == .protocolViolation("a frame before the hello"))
            #expect(pair.accepting.closed?.code == .protocolViolation)
        }
    }

    @Test func aLongFrameBeforeTheHelloIsRefusedAtItsHeader() {
        let pair = LinkPair()
        pair.accepting.receive(
            Preface(security: .plaintext).bytes + Frames.header(FrameType.hello.rawValue, 4_097),
            now: pair.now)
        #expect(
            pair.accepting.closed?.cause
                == .protocolViolation("a frame of type 1 announces 4097 bytes, the limit is 4096"))
    }

    @Test func aCloseInsteadOfTheHelloIsReceived() {
        let pair = LinkPair()
        let close = LinkClose(.tooManyLinks, "full house")
        pair.dialling.receive(
            Preface(security: .plaintext).bytes + Frames.frame(.close, close.payload), now: pair.now)
        #expect(pair.dialling.closed == .init(cause: .busy, code: .tooManyLinks, isByPeer: true))
    }

    @Test func aSecondHelloEndsTheLink() throws {
        let pair = try LinkPair.open()
        pair.accepting.receive(Frames.frame(.hello, Frames.hello(seed: 1).payload), now: pair.now)
        #expect(pair.accepting.closed?.cause == .protocolViolation("a second hello"))
        try pair.deliverAll()
        #expect(
            pair.dialling.closed?.cause == .protocolViolation("reported by the other side: a second hello"))
        #expect(pair.dialling.closed?.isByPeer == true)
    }

    @Test func aSilentHandshakeTimesOut() throws {
        let pair = LinkPair()
        pair.dialling.isHeldUp = true
        pair.accepting.isHeldUp = true
        let start = pair.now
        #expect(pair.dialling.machine.deadline == start + .seconds(10))
        try pair.pass(.seconds(9))
        #expect(pair.dialling.notes.isEmpty)
        try pair.pass(.seconds(2))
        for end in [pair.dialling, pair.accepting] {
            #expect(end.closed == .init(cause: .timedOut, code: .tooSlow, isByPeer: false))
            #expect(end.times == [start + .seconds(10)])
            #expect(end.machine.deadline == .never)
        }
    }

    @Test func tricklingBytesDoNotExtendTheHandshake() {
        let pair = LinkPair()
        var now = pair.now
        let hello = Preface(security: .plaintext).bytes + Frames.frame(.hello, Frames.hello(seed: 1).payload)
        for byte in hello {
            now = now + .seconds(1)
            pair.accepting.receive([byte], now: now)
            _ = pair.accepting.machine.timeArrived(now: now)
            pair.accepting.step(now: now)
        }
        #expect(pair.accepting.closed?.cause == .timedOut)
        #expect(pair.accepting.times == [pair.now + .seconds(10)])
    }

    @Test func aHandshakeTimeoutOfZeroEndsTheLinkAtOnce() throws {
        let pair = LinkPair(accepting: LinkPair.settings(seed: 2) { $0.handshake = .zero })
        #expect(pair.accepting.machine.deadline == pair.now)
        _ = pair.accepting.machine.timeArrived(now: pair.now)
        pair.accepting.step(now: pair.now)
        #expect(pair.accepting.closed?.cause == .timedOut)
    }

    @Test func aChannelThatFailsEndsTheLink() {
        final class Broken: SecureChannel {
            let isEstablished = false
            let provenPeer: PeerID? = nil
            let wasResumed = false
            let heldByteCount = 0
            func begin(wire: inout ByteQueue) throws(NighError) { throw NighError(.securing, .refused) }
            func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) {
                Issue.record("a channel that did not begin was fed")
            }
            func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) {}
            func end(wire: inout ByteQueue) {}
            func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes? { nil }
            let datagramProtection = DatagramProtection.checksum
            func sendTicket(wire: inout ByteQueue) {}
            func takeTicket() -> ResumptionTicket? { nil }
            func releaseIdleMemory() {}
        }
        let pair = LinkPair(dialling: LinkPair.settings(seed: 1, makeChannel: { Broken() }))
        pair.dialling.receive(Preface(security: .plaintext).bytes + [1, 2, 3], now: pair.now)
        #expect(pair.dialling.closed?.cause == .refused)
    }
}
