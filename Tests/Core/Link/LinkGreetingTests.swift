import Testing

@testable import NighCore

@Suite struct LinkGreetingTests {
    private static let preface = Preface(security: .plaintext).bytes

    @Test func `Two links complete the handshake`() throws {
        let pair = LinkPair()
        #expect(pair.dialling.machine.version == nil && pair.accepting.machine.version == nil)
        try pair.deliverAll()
        for (end, seed) in [(pair.dialling, UInt8(2)), (pair.accepting, 1)] {
            #expect(end.machine.phase == .open && end.machine.end == nil)
            #expect(end.machine.version == 1)
            #expect(end.machine.peerHello == Frames.hello(seed: seed))
            #expect(end.plainNotes == [.opened])
        }
        let (dialling, accepting) = (pair.dialling.machine.statistics, pair.accepting.machine.statistics)
        #expect(dialling.bytesSent == accepting.bytesReceived && dialling.bytesSent > 8)
        #expect(accepting.bytesSent == dialling.bytesReceived)
    }

    @Test func `The handshake completes with any split of the bytes`() throws {
        for seed in 0..<50 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let pair = LinkPair(split: { Int.random(in: 1...Int(1 + seed % 20), using: &generator) })
            try pair.deliverAll()
            #expect(pair.dialling.machine.phase == .open)
            #expect(pair.accepting.machine.phase == .open)
            #expect(pair.dialling.plainNotes == [.opened])
        }
    }

    @Test func `Empty slices are ignored`() throws {
        let pair = LinkPair()
        pair.dialling.receive([])
        #expect(pair.accepting.gather() == Self.preface)
        for byte in Self.preface {
            pair.dialling.receive([byte])
            pair.dialling.receive([])
        }
        #expect(pair.dialling.machine.phase == .greeting)
        try pair.deliverAll()
        pair.dialling.receive([])
        #expect(pair.dialling.plainNotes == [.opened])
    }

    @Test func `Nothing but the preface leaves before the others preface`() {
        let pair = LinkPair()
        #expect(pair.dialling.gather() == Self.preface)
        #expect(pair.dialling.gather() == [])
        pair.dialling.ping(1)
        pair.dialling.machine.send(Standing())
        #expect(pair.dialling.gather() == [])
    }

    @Test func `The highest common version is chosen`() throws {
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, versions: 1...2)))
        try pair.deliverAll()
        #expect(pair.dialling.machine.version == 1 && pair.accepting.machine.version == 1)
    }

    @Test func `If two sides cannot link, both get the reason`() throws {
        typealias Settings = LinkMachine.Settings
        let plain = LinkPair.settings(seed: 1)
        let cases: [(dialling: Settings, accepting: Settings, ours: NighError.Cause, theirs: NighError.Cause)]
        cases = [
            (
                LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, versions: 2...3)),
                LinkPair.settings(seed: 2), .noCommonVersion(ours: 2...3, theirs: 1...1),
                .noCommonVersion(ours: 1...1, theirs: 2...3)
            ),
            (
                plain, LinkPair.settings(seed: 2, security: .tls13), .noCommonSecurity(theyEncrypt: true),
                .noCommonSecurity(theyEncrypt: false)
            ),
            (
                plain, LinkPair.settings(seed: 2, hello: Frames.hello(seed: 2, service: "chess")),
                .wrongService("chess"), .wrongService("test")
            ),
            (plain, plain, .selfDial, .selfDial),
            (
                plain, LinkPair.settings(seed: 1, hello: Frames.hello(seed: 1, incarnation: 6)),
                .sameIdentity, .sameIdentity
            ),
        ]
        for (dialling, accepting, ours, theirs) in cases {
            let pair = LinkPair(dialling: dialling, accepting: accepting)
            try pair.deliverAll()
            #expect(pair.dialling.closed?.cause == ours && pair.accepting.closed?.cause == theirs)
            #expect(pair.dialling.notes.count == 1 && pair.dialling.machine.deadline == .never)
        }
    }

    @Test func `An invalid preface ends the link`() {
        for text in ["GET / HTTP/1.1\r\n", "NIGHT-OF-THE", "NIGH\u{2}\u{1}\u{0}\u{0}"] {
            let pair = LinkPair()
            for byte in text.utf8 { pair.accepting.receive([byte]) }
            guard case .protocolViolation? = pair.accepting.closed?.cause else {
                Issue.record("\(text) was taken for a preface")
                continue
            }
            #expect(pair.accepting.notes.count == 1)
            // Its own preface leaves, so that the other side knows whom it met. No frame follows
            // to a side that could not read it.
            #expect(pair.accepting.gather() == Self.preface)
        }
    }

    @Test func `Frames before the hello are refused`() {
        for type in FrameType.allCases where type != .hello && type != .close {
            let pair = LinkPair()
            pair.accepting.receive(Self.preface + Frames.frame(type, [1]))
            #expect(pair.accepting.closed?.cause == .protocolViolation("a frame before the hello"))
            #expect(pair.accepting.closed?.code == .protocolViolation)
        }
        let pair = LinkPair()
        pair.accepting.receive(Self.preface + Frames.header(FrameType.hello.rawValue, 4_097))
        #expect(
            pair.accepting.closed?.cause
                == .protocolViolation("a frame of type 1 announces 4097 bytes, the limit is 4096"))
    }

    @Test func `A close instead of the hello is received`() {
        let pair = LinkPair()
        let close = LinkClose(.tooManyLinks, "full house")
        pair.dialling.receive(Self.preface + Frames.frame(.close, close.payload))
        #expect(pair.dialling.closed == .init(cause: .busy, code: .tooManyLinks, isByPeer: true))
    }

    @Test func `A second hello ends the link`() throws {
        let end = try LinkPair.end(after: Frames.frame(.hello, Frames.hello(seed: 1).payload))
        #expect(end?.cause == .protocolViolation("a second hello"))
    }

    @Test func `A silent handshake times out`() throws {
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

    @Test func `Trickling bytes do not extend the handshake`() {
        let pair = LinkPair()
        let start = pair.now
        for byte in Self.preface + Frames.frame(.hello, Frames.hello(seed: 1).payload) {
            pair.now = pair.now + .seconds(1)
            pair.accepting.receive([byte])
            pair.accepting.timeArrives()
        }
        #expect(pair.accepting.closed?.cause == .timedOut)
        #expect(pair.accepting.times == [start + .seconds(10)])
    }

    @Test func `A handshake timeout of zero ends the link at once`() {
        let pair = LinkPair(accepting: LinkPair.settings(seed: 2) { $0.handshake = .zero })
        #expect(pair.accepting.machine.deadline == pair.now)
        pair.accepting.timeArrives()
        #expect(pair.accepting.closed?.cause == .timedOut)
    }

    @Test func `A channel that fails ends the link`() {
        // The link is used only on this thread.
        nonisolated(unsafe) let channel = CountingChannel(failing: NighError(.securing, .refused))
        let pair = LinkPair(dialling: LinkPair.settings(seed: 1, makeChannel: { channel }))
        pair.dialling.receive(Self.preface + [1, 2, 3])
        #expect(pair.dialling.closed?.cause == .refused)
        #expect(channel.receipts == 0)
    }
}
