import NighCore
import NighRecord
import NighWeb

/// Frames, the links that they pass over, and the records of links.
enum Links {
    // MARK: The decoder

    /// A hash of the type and the bytes of everything that a decoder hands out. The ends of frames count. Those of
    /// pieces do not, because pieces are cut as they came.
    private struct Decoding: Equatable {
        var error: WireError?
        private var digest: UInt64 = 0xCBF2_9CE4_8422_2325

        mutating func add(_ type: UInt8, _ bytes: some Collection<UInt8>) {
            for byte in bytes { add(byte) }
            guard type != FrameType.piece.rawValue, type != FrameType.bulkPiece.rawValue else { return }
            add(type)
            add(UInt8(truncatingIfNeeded: bytes.count))
        }

        private mutating func add(_ byte: UInt8) { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    /// The frame decoder, beside the simplest one.
    static func decoder(_ input: inout Input) throws {
        let limit = input.pick([64, 300, 8_192])
        // A session mostly asks for whole messages first.
        var asksForWhole = Input(input.bytes(4))
        var cut = Input(input.bytes(2))
        let bytes = input.rest()
        var decoder = FrameDecoder(maximumPayload: limit)
        var decoding = Decoding()
        var fed = 0
        do throws(WireError) {
            for slice in cut.slices(of: bytes) {
                // Memory of its own, so that the address sanitizer sees each byte beyond it.
                decoder.feed(slice.copy())
                fed += slice.count
                while true {
                    if !asksForWhole.isUsual(), let frame = decoder.nextWholeMessage() {
                        decoding.add(frame.type, frame.bytes)
                    } else if let frame = try decoder.next() {
                        decoding.add(frame.type, frame.bytes)
                    } else {
                        break
                    }
                }
                let held = decoder.unparsedByteCount
                guard held <= limit + 4, held <= fed else {
                    throw .malformed("\(held) bytes of \(fed) are held")
                }
            }
        } catch {
            decoding.error = error
        }
        let expected = plain(bytes, limit)
        try expect(decoding == expected, "\(decoding), expected \(expected)")
    }

    private static func plain(_ bytes: [UInt8], _ limit: Int) -> Decoding {
        var decoding = Decoding()
        var rest = bytes[...]
        while rest.count >= 4 {
            let length = rest.prefix(3).reduce(0) { $0 << 8 | Int($1) }
            let type = rest[rest.startIndex + 3]
            let isPiece = type == FrameType.piece.rawValue || type == FrameType.bulkPiece.rawValue
            if length > limit {
                decoding.error = .oversize(type: type, length: length, limit: limit)
            } else if isPiece, length == 0 {
                decoding.error = .malformed("a piece without bytes")
            }
            guard decoding.error == nil else { break }
            rest = rest.dropFirst(4)
            if rest.count >= length || isPiece { decoding.add(type, rest.prefix(length)) }
            guard rest.count >= length else { break }
            rest = rest.dropFirst(length)
        }
        return decoding
    }

    // MARK: A link

    static func hello(_ identity: Identity, acceptsMore: Bool) -> Hello {
        var hello = Hello(
            peer: identity.peerID, incarnation: 7, service: "fuzz", name: DisplayName(fitting: "x"),
            maximumFrame: 8_192, maximumMessage: 40_000)
        hello.streams = StreamTerms(
            streams: 3, window: 5_000, for: acceptsMore ? [.files, .channel, .calls] : [.calls])
        hello.acceptsKinds = acceptsMore
        return hello
    }

    private static let timings = LinkTimings(
        handshake: .seconds(10), pingAfter: .seconds(5), loseAfter: .seconds(15))

    /// A link to a genuine one. The frames between the two are changed, left out, repeated and made up. The link may be
    /// that of a guest, which opens for one peer only.
    static func link(_ input: inout Input) throws {
        var now = Moment(nanoseconds: 0)
        let isGuest = !input.isUsual()
        let side: LinkSide = isGuest || input.isUsual() ? .accepting : .dialling
        let expected = isGuest ? Decoders.identities[1 + input.number(below: 2)].peerID : nil
        let own = hello(Decoders.identities[0], acceptsMore: input.isUsual())
        var watch = LinkWatch(
            LinkMachine(side: side, hello: own, timings: timings, expected: expected, now: now))
        var other = LinkMachine(
            side: side == .dialling ? .accepting : .dialling,
            hello: hello(Decoders.identities[1], acceptsMore: true), timings: timings, now: now)
        var router = FrameRouter()
        var edits = 0
        while !input.isAtEnd {
            switch input.number(below: 8) {
            case 0, 1, 2:
                var queue = ByteQueue()
                other.gather(into: &queue, budget: 1 << 16)
                edits = 1
                let frames =
                    router.frames(in: queue.bytes, changing: &edits, &input) + [FrameRouter.madeUp(&input)]
                for slice in input.slices(of: frames.flatMap(\.self)) {
                    watch.link.receive(slice, now: now)
                    try watch.step(now: now, fed: slice.count)
                }
            case 3:
                other.receive(ByteSlice(watch.takeWritten()), now: now)
                while other.next(now: now) != nil {}
            case 4:
                now = now + .milliseconds(Int64(input.number(below: 20_000)))
                try watch.pass(to: now)
                _ = other.timeArrived(now: now)
            case 5: watch.link.ping(token: UInt64(input.number(below: 9)), payload: [1], now: now)
            case 6: other.ping(token: UInt64(input.number(below: 9)), payload: [2], now: now)
            default: if input.isUsual() { other.close(.left) } else { watch.link.pipeClosed() }
            }
        }
        if let expected, watch.isOpen {
            try expect(watch.link.peerHello?.peer == expected, "a link opens for another guest")
        }
        // Without input, every link must end.
        for _ in 0..<3 {
            now = now + .seconds(20)
            try watch.pass(to: now)
        }
        try expect(watch.link.phase == .closed, "the link is \(watch.link.phase) after a minute of silence")
    }

    // MARK: Records of links

    /// Records of links, as killed programs, bad disks and people with an editor leave them: of a link over which the
    /// input passed, or the input itself.
    static func records(_ input: inout Input) throws {
        var cut = Input(input.bytes(2))
        var record = RecordFormat.header(time: 1_000, headLimit: nil)
        if input.isUsual() {
            var transcript = LinkTranscript(headLimit: input.pick([.max, 0, 7]), wallClock: { 1_000 })
            var events: [LinkEvent] = [.opened(LinkOpening(isDialled: input.isUsual(), scheme: "tcp"))]
            while !input.isAtEnd {
                let isSent = input.isUsual(), isPacket = input.isUsual(oneIn: 4)
                let bytes = ByteSlice(isPacket ? input.bytes(16) + input.content() : input.content())
                let event: LinkEvent = isSent ? .sent(bytes) : .received(bytes)
                let packet: LinkEvent = isSent ? .packetSent(bytes) : .packetReceived(bytes)
                events.append(isPacket ? packet : event)
            }
            events.append(.ended(LinkEnding(reason: "the link was lost", code: 3, isByPeer: false)))
            for (number, event) in events.enumerated() {
                transcript.convert(event, on: 1, at: Moment(nanoseconds: Int64(number) * 1_000_000)) {
                    RecordFormat.write($0, to: &record)
                }
            }
        } else {
            record += input.rest()
        }
        let whole = entries(in: [record])
        let parts = entries(in: cut.slices(of: record).map(\.bytes))
        try expect(
            whole.entries == parts.entries && whole.fault == parts.fault, "differs when it comes in pieces")
        var again = RecordFormat.header(time: 1_000, headLimit: nil)
        var capture = PacketCapture()
        for entry in whole.entries {
            RecordFormat.write(entry, to: &again)
            _ = capture.blocks(for: entry)
            guard case .frame(let frame) = entry.content, frame.isWhole else { continue }
            _ = try accepted(frame.payload.bytes) { bytes throws(WireError) in
                _ = try FrameContent(type: frame.type, reading: bytes)
            }
        }
        try expect(entries(in: [again]).entries == whole.entries, "entries differ when they are read again")
    }

    private static func entries(in parts: [[UInt8]]) -> (entries: [RecordEntry], fault: RecordReader.Fault?) {
        var reader = RecordReader()
        var entries: [RecordEntry] = []
        do throws(RecordReader.Fault) {
            for part in parts {
                reader.feed(part)
                while let entry = try reader.next() { entries.append(entry) }
            }
            return (entries, nil)
        } catch {
            return (entries, error)
        }
    }
}

/// Splits the plaintext of a link into its preface and its frames, and changes some of them.
struct FrameRouter {
    private var waiting: [UInt8] = []
    private var hasPreface = false
    /// The last frames, which may be sent again.
    private var seen: [[UInt8]] = []

    /// Returns the frames that are whole now. The input may change the next `edits` of them.
    mutating func frames(in bytes: [UInt8], changing edits: inout Int, _ input: inout Input) -> [[UInt8]] {
        waiting += bytes
        var frames: [[UInt8]] = []
        while true {
            let header = waiting.prefix(3).reduce(0) { $0 << 8 | Int($1) }
            let count = hasPreface ? 4 + header : 8
            guard waiting.count >= max(count, 4) else { return frames }
            let frame = Array(waiting.prefix(count))
            frames += edits > 0 ? changed(frame, &input) : [frame]
            edits = max(0, edits - 1)
            waiting.removeFirst(count)
            if hasPreface { seen = seen.suffix(15) + [frame] }
            hasPreface = true
        }
    }

    private func changed(_ frame: [UInt8], _ input: inout Input) -> [[UInt8]] {
        var edited = frame
        switch input.number(below: 8) {
        case 0: return [frame]
        case 1: return seen.isEmpty ? [frame] : [frame, input.pick(seen)]
        case 2: return []
        case 3: return Array(repeating: frame, count: 2 + input.number(below: 8))
        case 4: return [Self.madeUp(&input), frame]
        case 5: edited += input.content()
        case 6: return [input.edited(frame)]
        default: edited = input.edited(edited)
        }
        return [hasPreface ? Self.frame(edited.dropFirst(3).first ?? 0, Array(edited.dropFirst(4))) : edited]
    }

    /// A frame that the input makes up.
    static func madeUp(_ input: inout Input) -> [UInt8] {
        let type = input.byte()
        return type == 0 ? [] : frame(type, input.content())
    }

    private static func frame(_ type: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [16, 8, 0].map { UInt8(truncatingIfNeeded: payload.count >> $0) } + [type] + payload
    }
}

/// Uses a link machine as its owner does, and checks that it keeps its promises.
struct LinkWatch: ~Copyable {
    var link: LinkMachine
    private var isOver = false
    private(set) var isOpen = false
    private var written: [UInt8] = []

    init(_ link: consuming LinkMachine) { self.link = link }

    /// Takes all steps that result from `fed` bytes.
    mutating func step(now: Moment, fed: Int) throws {
        var steps = 0
        while let step = link.next(now: now) {
            steps += 1
            try expect(!isOver, "a step after the last")
            // A frame has a header, and causes at most two steps: `responsiveAgain` and its own.
            try expect(steps <= fed / 4 + 3, "\(steps) steps of \(fed) bytes")
            switch step {
            case .closed(let end):
                isOver = true
                let isRight = link.phase == .closed && !end.cause.description.isEmpty
                try expect(isRight, "closed, yet \(link.phase), because of \(end.cause)")
            case .opened:
                try expect(!isOpen, "opened twice")
                isOpen = true
            case .responsiveAgain, .secured: break
            default: try expect(isOpen, "a step before the hello")
            }
        }
        // Answers are bounded by how much the owner reads while they wait. Here it reads all of one frame.
        try expect(link.heldByteCount <= 8_196 + (64 << 10) + 200_000, "\(link.heldByteCount) bytes are held")
        if !link.wantsToRead { write() }
    }

    private mutating func write() {
        var queue = ByteQueue()
        link.gather(into: &queue, budget: 1 << 16)
        written += queue.bytes
    }

    mutating func takeWritten() -> [UInt8] {
        write()
        defer { written = [] }
        return written
    }

    mutating func pass(to now: Moment) throws {
        var looks = 0
        while link.deadline <= now {
            _ = link.timeArrived(now: now)
            try step(now: now, fed: 0)
            looks += 1
            try expect(looks <= 5, "a deadline that does not pass")
        }
        write()
    }
}
