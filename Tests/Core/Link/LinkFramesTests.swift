import Testing

@testable import NighCore

@Suite struct LinkFramesTests {
    @Test func `Every kind of frame is understood`() throws {
        let pair = try LinkPair.open()
        let request = ConversationRequest(
            conversation: .max, attempt: .max, standing: Standing(), timeoutMilliseconds: 0, context: [1])
        let acceptance = ConversationAcceptance(conversation: 2, attempt: 3, standing: Standing())
        let refusal = ConversationRefusal(conversation: 2, code: .busy, retryAfterSeconds: 9, reason: "later")
        var standing = Standing()
        standing.received = [.max, 1]
        standing.granted = [.max, 2]
        pair.dialling.machine.send(request, isResume: false)
        pair.dialling.machine.send(request, isResume: true)
        pair.dialling.machine.send(acceptance)
        pair.dialling.machine.send(refusal)
        pair.dialling.machine.send(standing)
        ByteSlice([4, 5]).withUnsafeBytes { pair.dialling.machine.sendUnreliable($0) }
        try pair.deliverAll()
        let frames: [(FrameType, [UInt8])] = [
            (.message, [6]), (.bulkMessage, []), (.begin, [0, 0, 0, 9]),
            (.bulkBegin, [0xFF, 0xFF, 0xFF, 0xFF]), (.piece, [7]), (.bulkPiece, [8]),
        ]
        pair.accepting.receive(frames.flatMap { Frames.frame($0, $1) })
        #expect(
            pair.accepting.notes == [
                .request(request, isResume: false), .request(request, isResume: true), .accepted(acceptance),
                .refused(refusal), .acknowledged(standing), .unreliable([4, 5]),
                .message(.main, [6]), .message(.bulk, []), .begin(.main, 9), .begin(.bulk, Int(UInt32.max)),
                .piece(.main, [7]), .piece(.bulk, [8]),
            ])
    }

    @Test func `Truncated frames end the link`() throws {
        let request = ConversationRequest(conversation: 1, attempt: 1, standing: Standing(), context: [1])
        let whole: [(FrameType, [UInt8])] = [
            (.invite, request.payload), (.resume, request.payload),
            (.accept, ConversationAcceptance(conversation: 1, attempt: 1, standing: Standing()).payload),
            (.decline, ConversationRefusal(conversation: 1, code: .full, reason: "x").payload),
            (.acknowledge, [UInt8](repeating: 0, count: 32)), (.begin, [0, 0, 0, 1]),
            (.close, LinkClose(.left, "bye").payload), (.ping, [UInt8](repeating: 0, count: 8)),
            (.pong, [UInt8](repeating: 0, count: 8)),
        ]
        for (type, payload) in whole {
            for count in 0..<payload.count {
                let end = try LinkPair.end(after: Frames.frame(type, Array(payload.prefix(count))))
                #expect(end?.code == .protocolViolation, "\(type) of \(count) bytes")
            }
        }
    }

    @Test(
        arguments: [
            (.crossed, 0, true), (.crossed, 3, true), (.crossed, 4_096, true), (.crossed, 4_097, false),
            (.introduction, 0, false), (.introduction, 1, true), (.introduction, 512, true),
            (.introduction, 513, false),
        ] as [(FrameType, Int, Bool)])
    func `The context of a crossed invitation and an introduction have limits`(
        type: FrameType, count: Int, isAllowed: Bool
    ) throws {
        let pair = try LinkPair.open()
        let payload = [UInt8](repeating: 7, count: count)
        pair.accepting.receive(type, payload)
        if isAllowed {
            #expect(pair.accepting.notes == [type == .crossed ? .crossed(payload) : .introduced(payload)])
        } else {
            #expect(pair.accepting.closed?.code == .protocolViolation)
        }
    }

    @Test func `Unknown frames are skipped or end the link`() throws {
        let pair = try LinkPair.open()
        let known = Set(FrameType.allCases.map(\.rawValue))
        let optional = (FrameType.firstOptional...UInt8.max).filter { !known.contains($0) }
        let frames = optional.flatMap { Frames.frame($0, [1, 2, 3]) }
        pair.accepting.receive(frames + Frames.frame(.message, [9]))
        #expect(pair.accepting.notes == [.message(.main, [9])])
        #expect(pair.accepting.machine.statistics.framesSkipped == optional.count)
        for type in 0..<FrameType.firstOptional where !known.contains(type) {
            let end = try LinkPair.end(after: Frames.frame(type, [1]))
            #expect(end?.cause == .protocolViolation("unknown critical frame type \(type)"))
        }
    }

    @Test func `A frame over the agreed limit ends the link with a close frame`() throws {
        let pair = try LinkPair.open()
        pair.accepting.receive(Frames.header(FrameType.message.rawValue, 16_385))
        let words = "a frame of type 16 announces 16385 bytes, the limit is 16384"
        #expect(pair.accepting.closed?.cause == .protocolViolation(words))
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .protocolViolation("reported by the other side: \(words)"))
    }

    @Test func `Pings are answered with their payload`() throws {
        let pair = try LinkPair.open()
        pair.latency = .milliseconds(30)
        let payload = [UInt8](repeating: 0xAB, count: 1_024)
        pair.dialling.ping(42, payload)
        try pair.deliverAll()
        #expect(pair.dialling.notes == [.pong(42, .milliseconds(60))])
        let roundTrip = pair.dialling.machine.statistics.roundTrip
        #expect(roundTrip.last == .milliseconds(60) && roundTrip.minimum == .zero)
        // An eighth of the first 60 ms, because the first ping took no time.
        #expect(roundTrip.smoothed == .microseconds(7_500))

        pair.accepting.receive(.ping, [1, 2, 3, 4, 5, 6, 7, 8] + payload)
        #expect(pair.accepting.gather() == Frames.frame(.pong, [1, 2, 3, 4, 5, 6, 7, 8] + payload))
        pair.accepting.receive(.ping, [UInt8](repeating: 0, count: 8 + 1_025))
        #expect(pair.accepting.closed?.cause == .protocolViolation("a ping of 1033 bytes"))
    }

    @Test func `An unexpected pong is ignored`() throws {
        let pair = try LinkPair.open()
        pair.dialling.ping(7)
        for token in [[0, 8], [0, 7], [0, 7], [0xFF, 8]] as [[UInt8]] {
            pair.dialling.receive(.pong, [token[0], 0, 0, 0, 0, 0, 0, token[1]])
        }
        #expect(pair.dialling.notes == [.pong(7, .zero)])
        #expect(pair.dialling.machine.phase == .open)
    }

    @Test func `A flood of pings is read only as fast as its answers are sent`() throws {
        let pair = try LinkPair.open()
        let ping = Frames.frame(.ping, [UInt8](repeating: 1, count: 8 + 1_024))
        var fed = 0
        while pair.accepting.machine.wantsToRead, fed < 10_000 {
            pair.accepting.receive(ping)
            fed += 1
        }
        #expect(!pair.accepting.wantsToRead)
        #expect(fed * ping.count <= (64 << 10) + ping.count)
        #expect(pair.accepting.gather().count == fed * ping.count)
        #expect(pair.accepting.wantsToRead)
    }

    @Test func `Own pings without answers are forgotten`() throws {
        let pair = try LinkPair.open()
        for token in 0..<10_000 as Range<UInt64> {
            pair.dialling.ping(token)
            _ = pair.dialling.gather()
            pair.now = pair.now + .milliseconds(1)
        }
        for token in 0..<10_000 as Range<UInt64> {
            pair.dialling.receive(.pong, withUnsafeBytes(of: token.bigEndian, Array.init))
        }
        #expect(pair.dialling.notes.count == LinkMachine.maximumPendingPings)
    }

    @Test func `A close reaches the other side with its code`() throws {
        for code in LinkClose.Code.allCases.prefix(16) {
            let pair = try LinkPair.open()
            pair.dialling.machine.close(code, "bis bald")
            #expect(pair.dialling.machine.end == .init(cause: .left, code: code, isByPeer: false))
            try pair.deliverAll()
            let end = LinkMachine.LinkEnd(
                cause: LinkClose(code, "bis bald").cause, code: code, isByPeer: true)
            #expect(pair.accepting.closed == end)
            // The side that closes gets no event: it knows.
            #expect(pair.dialling.notes.isEmpty)
            #expect(pair.accepting.gather() == [])
        }
    }

    @Test func `Frames after a close are ignored`() throws {
        let pair = try LinkPair.open()
        pair.accepting.receive(
            Frames.frame(.message, [1]) + Frames.frame(.close, LinkClose(.left).payload)
                + Frames.frame(.message, [2]))
        pair.accepting.receive(.message, [3])
        #expect(pair.accepting.notes.first == .message(.main, [1]))
        #expect(pair.accepting.notes.count == 2)
        #expect(pair.accepting.closed?.cause == .peerLeft)

        let other = try LinkPair.open()
        other.dialling.machine.close(.left)
        other.dialling.machine.close(.cancelled)
        other.dialling.ping(1)
        other.dialling.machine.send(Standing())
        other.dialling.receive(.message, [1])
        #expect(other.dialling.notes.isEmpty)
        #expect(other.dialling.gather() == Frames.frame(.close, LinkClose(.left).payload))
        #expect(other.dialling.gather() == [])
    }

    @Test func `A link with a broken pipe reports nothing more`() throws {
        let pair = try LinkPair.open()
        pair.dialling.ping(1)
        pair.dialling.machine.pipeClosed()
        pair.dialling.step()
        #expect(pair.dialling.notes.isEmpty)
        #expect(pair.dialling.machine.deadline == .never)
        pair.dialling.machine.close(.left)
        #expect(pair.dialling.machine.end?.cause == .linkLost)
    }

    @Test func `Unreliable messages are dropped where they would wait`() throws {
        let pair = try LinkPair.open()
        ByteSlice([1, 2, 3]).withUnsafeBytes { pair.dialling.machine.sendUnreliable($0) }
        #expect(pair.dialling.machine.unreliableByteCount == 7)
        #expect(pair.dialling.gather(budget: 0) == [])
        #expect(pair.dialling.machine.unreliableByteCount == 0)
        #expect(pair.dialling.machine.statistics.unreliableDropped == 1)
        for _ in 0..<3 { ByteSlice([1]).withUnsafeBytes { pair.dialling.machine.sendUnreliable($0) } }
        pair.dialling.machine.dropUnreliable()
        #expect(pair.dialling.machine.statistics.unreliableDropped == 4)
        ByteSlice([9]).withUnsafeBytes { pair.dialling.machine.sendUnreliable($0) }
        #expect(pair.dialling.gather() == Frames.frame(.unreliable, [9]))
        #expect(pair.dialling.machine.statistics.unreliableSent == 1)
    }

    @Test func `Random bytes on an open link close it at most once`() throws {
        var generator = SeededGenerator(seed: 77)
        for _ in 0..<300 {
            let pair = try LinkPair.open()
            for slice in Frames.cut(Frames.random(2_000, &generator), atMost: 100, &generator) {
                pair.accepting.receive(slice)
            }
            #expect(pair.accepting.notes.count { if case .closed = $0 { true } else { false } } <= 1)
        }
    }
}
