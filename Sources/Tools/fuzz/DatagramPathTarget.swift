import NighCore

/// A datagram path that has an honest other end, between them a network that does with packets what it likes: drops,
/// repeats, delays and changes them, makes up others, and lets them come from anywhere. If only a checksum protects the
/// packets, those that are made up are genuine as far as anybody can tell; if they are sealed, none is.
///
/// Nothing may come twice. With sealing, nothing may come that the other end did not send, and the path must work once
/// the network behaves. Memory is bounded. An address that has not answered gets no more bytes than came from it.
struct DatagramPathTarget {
    /// What a run has reached.
    struct Reach {
        var delivered = 0
        var accepted = 0
        var moves = 0
    }

    private static let longestMessage = 8_192
    private static let protections: [DatagramProtection] = [
        .checksum, .checksum, .aes128, .aes256, .chaCha20,
    ]
    /// The bytes of the messages that may be incomplete, and of those that may wait for room.
    private static let mostHeld = (incomplete: 8 * longestMessage, waiting: 16 * longestMessage)
    private static let home = [DatagramSource(1), DatagramSource(2)]
    private static let sources = (1..<6).map { DatagramSource(UInt64($0)) }

    private struct Packet {
        var bytes: [UInt8]
        var destination: DatagramSource
        /// The packet before it was sealed.
        var plain: [UInt8]
    }

    /// Collects the packets of an end as its tap gets them.
    private final class Plaintexts {
        var sent: [[UInt8]] = []
        var received: [[UInt8]] = []
    }

    private let protection: DatagramProtection
    private let ends: [DatagramPath]
    private let plaintexts = [Plaintexts(), Plaintexts()]
    private var now = Moment(nanoseconds: 0)
    /// Where the packets of the second end come from, if the network behaves.
    private var place = home[1]
    /// The packets of each end that have been sent: they may still come, and again.
    private var sent: [[Packet]] = [[], []]
    /// The messages of each end that have not been delivered, by their number. The network may deliver each once.
    private var undelivered: [[UInt64: [UInt8]]] = [[:], [:]]
    private var nextMessage: UInt64 = 1
    private var reach = Reach()

    // What must be true of the first end, which the network attacks.
    private var accepted: Set<UInt64> = []
    private var highest: UInt64?
    private var bytesFrom: [DatagramSource: Int] = [:]
    private var bytesTo: [DatagramSource: Int] = [:]
    private var proven: Set<DatagramSource> = [DatagramSource(2)]
    /// Where each token was sent in a probe.
    private var probed: [[UInt8]: DatagramSource] = [:]

    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Reach {
        var target = DatagramPathTarget(&mutator)
        try target.play(&mutator)
        return target.reach
    }

    private init(_ mutator: inout Mutator) {
        protection = mutator.pick(Self.protections)
        let paths = (0..<2).map { index in
            DatagramPath(
                offer: DatagramOffer(
                    connection: UInt64(77 + index), longestPacket: mutator.pick([1_200, 1_472, 8_952]),
                    place: [UInt8(index)]),
                longestMessage: Self.longestMessage, generator: mutator.generator.fork(),
                now: Moment(nanoseconds: 0))
        }
        ends = paths
        for (path, plaintexts) in zip(paths, plaintexts) {
            path.tap = PacketTap(
                received: { plaintexts.received.append(Array($0)) },
                sent: { plaintexts.sent.append(Array($0)) })
        }
    }

    private func cipher(_ side: Int, isSealing: Bool) -> DatagramCipher {
        guard protection != .checksum else {
            return DatagramCipher(.checksum, secret: nil, isSealing: isSealing)
        }
        let secret = SecretBytes(count: DatagramCipher.secretByteCount)
        secret.withBytes { $0[0] = UInt8(side + 1) }
        return DatagramCipher(protection, secret: secret, isSealing: isSealing)
    }

    // MARK: The play

    private mutating func play(_ mutator: inout Mutator) throws {
        for own in 0..<2 {
            if own == 0, mutator.oneIn(8) { try attack(&mutator) }
            ends[own].accept(
                ends[1 - own].offer, at: Self.home[1 - own], sealing: cipher(own, isSealing: true),
                opening: cipher(1 - own, isSealing: false), now: now)
        }
        if !mutator.oneIn(8) { try behave(for: .milliseconds(200)) }
        for _ in 0..<mutator.number(below: 40) {
            switch mutator.number(below: 16) {
            case 0...3: send(from: mutator.number(below: 2), &mutator)
            case 4...7: try deliverAny(&mutator)
            case 8...12: try attack(&mutator)
            case 13: try beginMessages(&mutator)
            case 14: try pass(to: now + .milliseconds(Int64(mutator.number(below: 400))))
            default:
                if mutator.oneIn(2) { place = mutator.pick(Self.sources) }
                try behave(for: .milliseconds(Int64(mutator.pick([1, 60, 1_000]))))
            }
            try collect()
        }
        guard protection != .checksum else { return }
        // Whatever has happened, the path works once the network does, and all that comes is what was sent.
        try pass(to: now + .seconds(16))
        for round in 0..<8 {
            for own in 0..<2 { send(from: own, &mutator) }
            try behave(for: .milliseconds(600))
            if round > 5, !ends.allSatisfy(\.isOpen) { throw Finding("the path does not open again") }
        }
        let before = reach.delivered
        send(from: 1, &mutator)
        try behave(for: .milliseconds(100))
        if reach.delivered == before { throw Finding("nothing is delivered at the end") }
    }

    /// Sends a message that no other is equal to.
    private mutating func send(from own: Int, _ mutator: inout Mutator) {
        let number = nextMessage
        nextMessage += 1
        let count = mutator.pick([0, 1, 40, 1_100, 1_200, 5_000, Self.longestMessage - 8])
        let bytes = withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: UInt8(own), count: count)
        let order = DatagramOrder(rawValue: UInt8(mutator.pick([0, 1, 1, 2, 3, 255])))
        undelivered[own][number] = bytes
        _ = bytes.withUnsafeBytes { ends[own].send($0, order, now: now) }
    }

    /// Lets a packet come that was sent once, perhaps changed, from any address.
    private mutating func deliverAny(_ mutator: inout Mutator) throws {
        let own = mutator.number(below: 2)
        guard !sent[own].isEmpty else { return }
        let recent = max(0, sent[own].count - 6)
        let packet = mutator.oneIn(2) ? mutator.pick(sent[own]) : mutator.pick(Array(sent[own][recent...]))
        let source = mutator.oneIn(4) ? mutator.pick(Self.sources) : Self.home[own]
        try deliver(packet.bytes, to: 1 - own, from: source, isGenuine: true)
    }

    /// Gives the first end a packet that its other end did not make.
    private mutating func attack(_ mutator: inout Mutator) throws {
        let known = sent[1].map(\.bytes)
        var content = mutator.perhapsChanged(mutator.pick(PacketTarget.contents), with: PacketTarget.contents)
        if mutator.oneIn(4), let plain = sent[1].last?.plain { content = Array(plain.dropFirst(16)) }
        if mutator.oneIn(4), let plain = plaintexts[0].sent.last ?? sent[0].last?.plain, plain.count >= 25 {
            // What an end has asked is answered.
            content = [2] + plain[17..<25]
        }
        if mutator.oneIn(4) {
            content =
                [4, UInt8(mutator.number(below: 4)), 0, 0, 0, UInt8(mutator.number(below: 12))]
                + [UInt8(mutator.number(below: 3)), mutator.pick([1, 2, 3, 3, 255])]
                + [UInt8](repeating: 1, count: mutator.pick([0, 1, 900, 4_000, 8_192]))
        }
        let near = (highest ?? 0) &+ UInt64(mutator.number(below: 20)) &- 8
        let number = mutator.pick([near, near, near &- 1_024, mutator.pick(Mutator.edges), 1 << 22])
        let connection = mutator.oneIn(16) ? mutator.generator.next() : 77
        var packet = PacketTarget.sealed(content, number: number, connection: connection)
        var isGenuine = protection == .checksum
        if mutator.oneIn(2) {
            // A packet of the other end, changed.
            if !known.isEmpty, mutator.oneIn(2) { packet = mutator.pick(known) }
            let before = packet
            for _ in 0...mutator.number(below: 3) { mutator.change(&packet, with: known + [before]) }
            isGenuine = isGenuine || known.contains(packet)
        }
        guard !packet.isEmpty else { return }
        try deliver(packet, to: 0, from: mutator.pick(Self.sources), isGenuine: isGenuine)
    }

    /// Gives the first end parts of many messages of which nothing more comes.
    private mutating func beginMessages(_ mutator: inout Mutator) throws {
        let first = highest.map { $0 &+ 1 } ?? 0
        for offset in 0..<UInt64(mutator.number(below: 24)) {
            let header: [UInt8] = [4, 0, 9, 0, 0, UInt8(offset), 0, mutator.pick([2, 255])]
            let content = header + [UInt8](repeating: 1, count: mutator.pick([1, 4_000, 8_000]))
            try deliver(
                PacketTarget.sealed(content, number: first &+ offset, connection: 77), to: 0,
                from: Self.home[1],
                isGenuine: protection == .checksum)
        }
    }

    // MARK: The network

    /// Takes the packets of both ends, and checks where those of the first go.
    private mutating func collect() throws {
        for own in 0..<2 {
            var packets: [(bytes: [UInt8], destination: DatagramSource)] = []
            ends[own].output.drain { packets.append((Array($0), $1)) }
            let plain = plaintexts[own].sent
            plaintexts[own].sent = []
            guard plain.count == packets.count else { throw Finding("a tap that has missed a packet") }
            for (packet, plain) in zip(packets, plain) {
                sent[own].append(Packet(bytes: packet.bytes, destination: packet.destination, plain: plain))
                guard own == 0 else { continue }
                if packet.bytes.count > ends[1].offer.longestPacket {
                    throw Finding(
                        "a packet of \(packet.bytes.count) bytes, which the other end does not take")
                }
                bytesTo[packet.destination, default: 0] += packet.bytes.count
                if plain[16] == 1 { probed[Array(plain[17..<25])] = packet.destination }
                guard !proven.contains(packet.destination) else { continue }
                let (came, went) = (bytesFrom[packet.destination] ?? 0, bytesTo[packet.destination] ?? 0)
                if went > came {
                    throw Finding(
                        "\(went) bytes went to an address that has not answered, and from which \(came) came")
                }
            }
            // The network remembers no more than a replay window, and something older.
            if sent[own].count > 1_200 { sent[own].removeFirst(sent[own].count - 1_100) }
        }
    }

    private mutating func deliver(
        _ packet: [UInt8], to own: Int, from source: DatagramSource, isGenuine: Bool
    ) throws {
        // A copy of its own size, so that the address sanitizer sees each byte beyond it.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packet.count, alignment: 1)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: packet)
        let before = ends[own].statistics
        let message = ends[own].receive(buffer, from: source, now: now).map { Array($0.bytes) }
        let after = ends[own].statistics
        if own == 0 {
            try check(packet, from: source, isGenuine, before, after)
        }
        plaintexts[own].received = []
        let held = ends[own].heldByteCounts
        if held.incomplete > Self.mostHeld.incomplete || held.waiting > Self.mostHeld.waiting {
            throw Finding("\(held) bytes are held")
        }
        guard let message else { return try collect() }
        if message.count > Self.longestMessage { throw Finding("a message of \(message.count) bytes") }
        reach.delivered += 1
        guard protection != .checksum else { return try collect() }
        let number = message.count < 8 ? 0 : message.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        guard undelivered[1 - own].removeValue(forKey: number) == message else {
            throw Finding("a message came that was not sent, or came a second time: \(message.prefix(20))")
        }
        try collect()
    }

    /// Checks what the first end has made of a packet.
    private mutating func check(
        _ packet: [UInt8], from source: DatagramSource, _ isGenuine: Bool, _ before: DatagramStatistics,
        _ after: DatagramStatistics
    ) throws {
        let isAccepted = after.packetsReceived != before.packetsReceived
        guard plaintexts[0].received.count == (isAccepted ? 1 : 0) else {
            throw Finding("a tap that is wrong")
        }
        guard isAccepted else {
            if after.messagesReceived != before.messagesReceived || after.moves != before.moves {
                throw Finding("a packet that is not accepted has done something")
            }
            return
        }
        reach.accepted += 1
        if !isGenuine { throw Finding("a forged packet is accepted: \(packet.prefix(40))") }
        let plain = plaintexts[0].received[0]
        guard plain[...].prefix(16) == packet[...].prefix(16) else {
            throw Finding("a tap with another header")
        }
        let number = packet[8..<16].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        if !accepted.insert(number).inserted { throw Finding("the packet \(number) is accepted twice") }
        if let highest, highest > number, highest - number >= 1_024 {
            throw Finding("the packet \(number) is accepted behind \(highest)")
        }
        highest = max(highest ?? 0, number)
        bytesFrom[source, default: 0] += packet.count
        guard after.moves != before.moves else { return }
        reach.moves += 1
        guard plain.count >= 25, plain[16] == 2, let place = probed[Array(plain[17..<25])] else {
            throw Finding("the path moved without an answer")
        }
        proven.insert(place)
    }

    /// Lets time pass, and drops whatever is sent.
    private mutating func pass(to end: Moment) throws {
        var turns = 0
        while let next = ends.map(\.deadline).min(), next <= end {
            now = max(now, next)
            for path in ends where path.deadline <= now { path.timeArrived(now: now) }
            try collect()
            turns += 1
            if turns > 20_000 { throw Finding("a deadline that does not pass") }
        }
        now = max(now, end)
    }

    /// Delivers everything that is sent from now on, at once and in order, for that time.
    private mutating func behave(for span: Moment.Span) throws {
        let end = now + span
        var done = sent.map(\.count)
        var turns = 0
        while true {
            try collect()
            for own in 0..<2 { done[own] = min(done[own], sent[own].count) }
            for own in 0..<2 where done[own] < sent[own].count {
                let packets = Array(sent[own][done[own]...])
                done[own] = sent[own].count
                for packet in packets {
                    let source = own == 0 ? Self.home[0] : place
                    try deliver(packet.bytes, to: 1 - own, from: source, isGenuine: true)
                }
            }
            turns += 1
            if turns > 20_000 { throw Finding("two ends that never come to rest") }
            guard done[0] == sent[0].count, done[1] == sent[1].count else { continue }
            guard let next = ends.map(\.deadline).min(), next <= end else { break }
            now = max(now, next)
            for path in ends where path.deadline <= now { path.timeArrived(now: now) }
        }
        now = max(now, end)
    }
}
