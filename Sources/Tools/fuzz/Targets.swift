import NighCore
import NighTestKit

/// A part of Nigh that takes bytes from strangers, or what was made of such bytes.
enum Target: String, CaseIterable {
    /// The frame decoder, beside a simple one that must agree with it.
    case decoder
    /// One link machine.
    case link
    /// A whole session with its driver, dialled and dialling.
    case session
    /// Names, records and messages of DNS.
    case records
    /// The directory of services, fed with records.
    case directory
    /// The neighbours that announcements name.
    case neighbours
    /// TCP addresses.
    case addresses
    /// Advertisements as bytes.
    case advertisements
    /// A TLS channel, in its handshake and after it.
    case tls
    /// Two sides that are being paired.
    case pairing
    /// The trust store's file.
    case trust
    /// What Bluetooth devices report about their services.
    case services
    /// The requests of browsers.
    case http
    /// The frames of a WebSocket, beside a simple reader that must agree.
    case websocket
    /// The first message of a guest, and the beginning of its link.
    case guestEntry = "guest-entry"
    /// The bytes of a serial line, and the packets of a pipe in them.
    case serial
    /// Records of links.
    case traces
    /// The content of packets beside a link, and what each side says about its place for them.
    case packets
    /// A datagram path between two ends, with a hostile network between them.
    case paths
    /// The two ends of a stream over packets, with a hostile channel between them.
    case sequenced
    /// The two sides of a transfer of files.
    case files
    /// What peers say about groups.
    case groups
    /// The messages of a channel in the bytes of a stream.
    case channels
    /// The two sides of the calls between two programs.
    case calls
    /// The actors of a program, and a peer that calls, lists and answers what it likes.
    case actors
    /// The answer at the beginning of a forwarded connection.
    case forwarding
    /// Values as CBOR.
    case cbor
    /// Two sides of a code exchange, with somebody in between.
    case codes
    /// What peers say about each other, and the tokens with which they are introduced.
    case introductions
    /// A table of Four in a Row, with everybody at it.
    case table

    /// Runs the input that follows from `seed`. Throws a finding if something is wrong.
    func run(seed: UInt64, corpus: [Scenario], frames: [[UInt8]]) throws {
        var mutator = Mutator(seed: seed, scenarios: corpus, frames: frames)
        switch self {
        case .decoder: try Self.decode(&mutator)
        case .link: try Self.link(&mutator)
        case .session: try Self.session(&mutator)
        case .records: try RecordTarget.run(&mutator)
        case .directory: try DirectoryTarget.run(&mutator)
        case .neighbours: try NeighbourTarget.run(&mutator)
        case .addresses: try AddressTarget.run(&mutator)
        case .advertisements: try AdvertisementTarget.run(&mutator)
        case .tls: try TLSTarget.run(&mutator)
        case .pairing: try PairingTarget.run(&mutator)
        case .trust: try TrustTarget.run(&mutator)
        case .services: try ServiceSearchTarget.run(&mutator)
        case .http: try HTTPTarget.run(&mutator)
        case .websocket: try WebSocketTarget.run(&mutator)
        case .guestEntry: try GuestEntryTarget.run(&mutator)
        case .serial: try SerialTarget.run(&mutator)
        case .traces: try LinkRecordTarget.run(&mutator)
        case .packets: try PacketTarget.run(&mutator)
        case .paths: try DatagramPathTarget.run(&mutator)
        case .sequenced: try SequencedTarget.run(&mutator)
        case .files: try FilesTarget.run(&mutator)
        case .groups: try GroupTarget.run(&mutator)
        case .channels: try ChannelTarget.run(&mutator)
        case .calls: try CallTarget.run(&mutator)
        case .actors: try ActorTarget.run(&mutator)
        case .forwarding: try ForwardingTarget.run(&mutator)
        case .cbor: try CBORTarget.run(&mutator)
        case .codes: try CodeTarget.run(&mutator)
        case .introductions: try IntroductionTarget.run(&mutator)
        case .table: try TableTarget.run(&mutator)
        }
    }

    // MARK: The decoder

    private static func decode(_ mutator: inout Mutator) throws {
        let limit = [64, 4_096, 8_192][mutator.number(below: 3)]
        let bytes = mutator.stream().dropFirst(mutator.number(below: 2)).flatMap { $0 }
        let reference = PlainDecoding(of: bytes, limit: limit)
        var decoder = FrameDecoder(maximumPayload: limit)
        var decoding = Decoding()
        var fed = 0
        for slice in mutator.cut(bytes) {
            decoder.feed(slice)
            fed += slice.count
            try decoding.drain(&decoder)
            if decoding.error != nil { break }
            let held = decoder.unparsedByteCount
            if held > limit + 4 || held > fed { throw Finding("the decoder holds \(held) of \(fed) bytes") }
        }
        if decoding.error != reference.error {
            throw Finding(
                "\(String(describing: decoding.error)), expected \(String(describing: reference.error))")
        }
        if decoding.digest != reference.digest { throw Finding("other frames than those that arrived") }
    }

    // MARK: A link

    static let hellos = (0..<2).map { own in
        let configuration = SessionHarness.configuration(own)
        var hello = Hello(
            peer: SessionHarness.identities[own].peerID, incarnation: 7, service: configuration.service,
            name: configuration.name, maximumFrame: configuration.limits.frame,
            maximumMessage: configuration.limits.message)
        hello.streams = StreamTerms(
            streams: configuration.limits.streams, window: configuration.limits.streamWindow,
            for: SessionHarness.acceptsMore(own) ? [.files, .channel, .calls] : [.calls])
        hello.acceptsKinds = SessionHarness.acceptsMore(own)
        return hello
    }
    static let timings = LinkTimings(
        handshake: .seconds(10), pingAfter: .seconds(5), loseAfter: .seconds(15))

    private static func link(_ mutator: inout Mutator) throws {
        var now = Moment(nanoseconds: 0)
        let own = mutator.number(below: 2)
        let link = LinkMachine(
            side: mutator.number(below: 2) == 0 ? .dialling : .accepting, hello: hellos[own],
            timings: timings, now: now)
        var watch = LinkWatch(link)
        for frame in mutator.stream() {
            for slice in mutator.cut(frame) {
                link.receive(slice, now: now)
                try watch.step(now: now, fed: slice.count)
            }
            switch mutator.number(below: 24) {
            case 0...5: watch.write()
            case 6:
                now = now + .milliseconds(Int64(mutator.number(below: 20_000)))
                try watch.pass(to: now)
            case 7: link.ping(token: UInt64(mutator.number(below: 9)), payload: [1], now: now)
            case 8: if mutator.number(below: 8) == 0 { link.close(.left) }
            case 9: if mutator.number(below: 8) == 0 { link.pipeClosed() }
            default: break
            }
        }
        // Without input, every link must end.
        for _ in 0..<3 {
            now = now + .seconds(20)
            try watch.pass(to: now)
        }
        if link.phase != .closed { throw Finding("the link is \(link.phase) after a minute of silence") }
    }

    // MARK: A session

    private static func session(_ mutator: inout Mutator) throws {
        // Far more work than any input needs: a session that never comes to rest is a finding, not a hang.
        let loop = VirtualEventLoop(workLimit: 20_000)
        do {
            try play(mutator.scenario(), on: loop)
            // A session that nobody holds any more has some last work to do. Then nothing is left of it.
            try loop.runQueued()
        } catch let lock as VirtualEventLoop.Livelock {
            throw Finding("\(lock)")
        }
    }

    private static func play(_ scenario: Scenario, on loop: VirtualEventLoop) throws {
        let harness = try SessionHarness(scenario.own, behavior: scenario.behavior, loop: loop)
        for event in scenario.events {
            try harness.perform(event)
            try check(harness)
        }
        // With no peer there any more, everything must be given up in time.
        for _ in 0..<3 {
            try harness.perform(.pass(milliseconds: 15_000))
            try check(harness)
        }
        try harness.close()
        try check(harness)
    }

    /// More than a session may hold for one link: an incomplete frame, and the answers that wait.
    private static let mostHeld = 8_192 + (64 << 10) + (64 << 10)

    private static func check(_ harness: SessionHarness) throws {
        let found = harness.session.inconsistencies
        if !found.isEmpty { throw Finding(found.joined(separator: "; ")) }
        let held = harness.session.mostBytesHeld
        if held > mostHeld { throw Finding("a link holds \(held) bytes") }
    }
}

/// Uses a link machine as its owner does, and checks that it keeps its promises.
struct LinkWatch {
    let link: LinkMachine
    private var isOver = false
    private(set) var isOpen = false
    private var queue = ByteQueue()

    init(_ link: LinkMachine) { self.link = link }

    /// Takes all steps that came of `fed` bytes.
    mutating func step(now: Moment, fed: Int) throws {
        var steps = 0
        while let step = link.next(now: now) {
            steps += 1
            if isOver { throw Finding("a step after the last") }
            // A frame has a header, and causes at most two steps: `responsiveAgain` and its own.
            if steps > fed / 4 + 3 { throw Finding("\(steps) steps of \(fed) bytes") }
            switch step {
            case .closed(let end):
                isOver = true
                if link.phase != .closed { throw Finding("closed, yet \(link.phase)") }
                if end.cause.description.isEmpty { throw Finding("closed without a cause") }
            case .opened:
                if isOpen { throw Finding("opened twice") }
                isOpen = true
            case .responsiveAgain, .secured: break
            case .request, .accepted, .refused, .crossed, .introduced, .acknowledged, .message, .kindMessage,
                .begin,
                .piece, .unreliable, .streamData, .streamControl, .datagrams, .pong, .pairing:
                if !isOpen { throw Finding("a step before the hello") }
            }
        }
        // Answers are bounded by how much the owner reads while they wait. Here it reads all of one frame.
        if link.heldByteCount > 8_196 + (64 << 10) + 200_000 {
            throw Finding("the link holds \(link.heldByteCount) bytes")
        }
        if !link.wantsToRead { write() }
    }

    mutating func write() {
        link.gather(into: &queue, budget: 1 << 16)
        queue.removeAll()
    }

    mutating func pass(to now: Moment) throws {
        var looks = 0
        while link.deadline <= now {
            _ = link.timeArrived(now: now)
            try step(now: now, fed: 0)
            looks += 1
            if looks > 5 { throw Finding("a deadline that does not pass") }
        }
        write()
    }
}

/// The output of a decoder, condensed: each frame as soon as it is complete, pieces as they come.
private struct Decoding {
    var error: WireError?
    /// A hash of the type and the bytes of everything handed out, so that pieces count the same however they are cut.
    private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    private var lastPiece: UInt8?

    mutating func drain(_ decoder: inout FrameDecoder) throws {
        do throws(WireError) {
            while true {
                // A session mostly asks for whole messages first.
                if digest & 3 > 0, let frame = decoder.nextWholeMessage() {
                    add(frame.type, frame.bytes)
                } else if let frame = try decoder.next() {
                    add(frame.type, frame.bytes)
                } else {
                    return
                }
            }
        } catch {
            self.error = error
        }
    }

    mutating func add(_ type: UInt8, _ bytes: some Collection<UInt8>) {
        for byte in bytes { add(byte) }
        // The ends of frames count. Those of pieces do not, because pieces are cut as they came.
        if type != 0x14, type != 0x15 {
            add(type)
            add(UInt8(truncatingIfNeeded: bytes.count))
        }
    }

    private mutating func add(_ byte: UInt8) { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
}

/// The frames in a stream, found in the simplest way.
private struct PlainDecoding {
    private var decoding = Decoding()
    var error: WireError? { decoding.error }
    var digest: UInt64 { decoding.digest }

    init(of bytes: [UInt8], limit: Int) {
        var rest = bytes[...]
        while rest.count >= 4 {
            let start = rest.startIndex
            let length = Int(rest[start]) << 16 | Int(rest[start + 1]) << 8 | Int(rest[start + 2])
            let type = rest[start + 3]
            let isPiece = type == 0x14 || type == 0x15
            guard length <= limit else {
                decoding.error = .oversize(type: type, length: length, limit: limit)
                return
            }
            if isPiece, length == 0 {
                decoding.error = .malformed("a piece without bytes")
                return
            }
            rest = rest.dropFirst(4)
            guard rest.count >= length else {
                if isPiece { decoding.add(type, rest) }
                return
            }
            decoding.add(type, rest.prefix(length))
            rest = rest.dropFirst(length)
        }
    }
}
