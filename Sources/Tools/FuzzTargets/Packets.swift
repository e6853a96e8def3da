import NighCore

/// A datagram path, its honest other end, and a hostile network between them. The network drops, repeats, delays and
/// changes packets, makes up others, and delivers them from any address. If only a checksum protects the packets,
/// nobody can tell made-up packets from genuine ones. If they are sealed, no made-up packet is genuine.
///
/// Nothing may come twice. With sealing, nothing may come that the other end did not send, and the path must work once
/// the network behaves. Memory is bounded. An address that has not answered gets no more bytes than came from it.
struct HostileNetwork: ~Copyable {
    private static let longestMessage = 8_192
    private static let protections: [DatagramProtection] = [.checksum, .aes128, .aes256, .chaCha20]
    private static let home = [DatagramSource(1), DatagramSource(2)]
    private static let sources = (1..<6).map { DatagramSource(UInt64($0)) }

    private struct Packet {
        var bytes: [UInt8]
        /// The packet before it was sealed.
        var plain: [UInt8]
    }

    /// Collects the packets of an end as its tap gets them.
    private final class Plaintexts {
        var sent: [[UInt8]] = []
        var received: [[UInt8]] = []
    }

    private let protection: DatagramProtection
    private var ends: InlineArray<2, DatagramPath>
    private let plaintexts = [Plaintexts(), Plaintexts()]
    private var now = Moment(nanoseconds: 0)
    /// Where the packets of the second end come from, if the network behaves.
    private var place = home[1]
    /// The packets of each end that have been sent: they may still come, and again.
    private var sent: [[Packet]] = [[], []]
    /// The messages of each end that have not been delivered, by their number. The network may deliver each once.
    private var undelivered: [[UInt64: [UInt8]]] = [[:], [:]]
    private var nextMessage: UInt64 = 1
    private var delivered = 0

    // The state of the first end, which the network attacks, for the rules that it must keep.
    private var accepted: Set<UInt64> = []
    private var highest: UInt64?
    private var bytesFrom: [DatagramSource: Int] = [:]
    private var bytesTo: [DatagramSource: Int] = [:]
    private var proven: Set<DatagramSource> = [home[1]]
    /// Where each token was sent in a probe.
    private var probed: [[UInt8]: DatagramSource] = [:]

    static func run(_ input: inout Input) throws {
        var network = HostileNetwork(input.pick(protections))
        try network.play(&input)
    }

    private init(_ protection: DatagramProtection) {
        self.protection = protection
        ends = InlineArray { index in
            let offer = DatagramOffer(
                connection: UInt64(77 + index), longestPacket: [1_472, 1_200][index], place: [UInt8(index)])
            return DatagramPath(
                offer: offer, longestMessage: Self.longestMessage,
                generator: SeededGenerator(seed: UInt64(index)), now: Moment(nanoseconds: 0))
        }
        for (own, plaintexts) in plaintexts.enumerated() {
            ends[own].tap = PacketTap(
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

    private mutating func play(_ input: inout Input) throws {
        for own in 0..<2 {
            if own == 0, !input.isUsual() { try attack(&input) }
            ends[own].accept(
                ends[1 - own].offer, at: Self.home[1 - own], sealing: cipher(own, isSealing: true),
                opening: cipher(1 - own, isSealing: false), now: now)
        }
        if input.isUsual() { try behave(for: .milliseconds(200)) }
        while !input.isAtEnd {
            switch input.number(below: 8) {
            case 0:
                send(
                    input.pick([0, 40, 1_200, Self.longestMessage - 8]), from: input.number(below: 2), &input)
            case 1, 2: try deliverAny(&input)
            case 3, 4: try attack(&input)
            case 5: try beginMessages(&input)
            case 6: try pass(to: now + .milliseconds(Int64(input.number(below: 400))))
            default:
                if !input.isUsual() { place = input.pick(Self.sources) }
                try behave(for: .milliseconds(input.pick([1, 60, 1_000])))
            }
            try collect()
        }
        guard protection != .checksum else { return }
        // Regardless of all before, the path works once the network does, and delivers only messages that were sent.
        try pass(to: now + .seconds(16))
        for round in 0..<8 {
            for own in 0..<2 { send(40, from: own, &input) }
            try behave(for: .milliseconds(600))
            try expect(round <= 5 || ends[0].isOpen && ends[1].isOpen, "the path does not open again")
        }
        let before = delivered
        send(40, from: 1, &input)
        try behave(for: .milliseconds(100))
        try expect(delivered > before, "nothing is delivered at the end")
    }

    /// Sends a message that differs from all others.
    private mutating func send(_ count: Int, from own: Int, _ input: inout Input) {
        let number = nextMessage
        nextMessage += 1
        let bytes = withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: UInt8(own), count: count)
        undelivered[own][number] = bytes
        let order = DatagramOrder(rawValue: input.byte())
        _ = bytes.withUnsafeBytes { ends[own].send($0, order, now: now) }
    }

    /// Delivers one of the packets that were sent, again or for the first time, from any address.
    private mutating func deliverAny(_ input: inout Input) throws {
        let own = 1 - input.number(below: 2)
        guard !sent[own].isEmpty else { return }
        let packet = sent[own][max(0, sent[own].count - 1 - input.number(below: 256))]
        let source = input.isUsual(oneIn: 4) ? Self.home[own] : input.pick(Self.sources)
        try deliver(packet.bytes, to: 1 - own, from: source, isGenuine: true)
    }

    /// Gives the first end a packet that its other end did not make. It is a changed packet of the other end, or it has
    /// any number, and its content comes from the input or from the other end, or answers a probe.
    private mutating func attack(_ input: inout Input) throws {
        let source = input.pick(Self.sources)
        let original = sent[1].last?.bytes
        if !input.isUsual(), let original {
            let packet = input.edited(original)
            let isKnown = sent[1].contains { $0.bytes == packet }
            guard !packet.isEmpty else { return }
            return try deliver(packet, to: 0, from: source, isGenuine: protection == .checksum || isKnown)
        }
        var content = input.content()
        let probe = sent[0].last { $0.plain.count >= 25 && $0.plain[16] == 1 }?.plain
        switch input.number(below: 4) {
        case 1: content += [UInt8](repeating: 1, count: input.number(below: Self.longestMessage))
        case 2: content = Array(sent[1].last?.plain.dropFirst(16) ?? [])
        case 3: if let probe { content = [2] + probe[17..<25] }
        default: break
        }
        let near = (highest ?? 0) &+ UInt64(input.number(below: 20)) &- 8
        let number = input.pick([near, near &- 1_024, near &+ 2_000, .max, 1 << 22])
        let packet = Self.sealed(content, number: number)
        try deliver(packet, to: 0, from: source, isGenuine: protection == .checksum)
    }

    /// Gives the first end parts of many messages. The rest of these messages never comes.
    private mutating func beginMessages(_ input: inout Input) throws {
        let first = highest.map { $0 &+ 1 } ?? 0
        for offset in 0..<UInt64(input.number(below: 24)) {
            let header: [UInt8] = [4, 0, 9, 0, 0, UInt8(offset), 0, input.pick([2, 255])]
            let content = header + [UInt8](repeating: 1, count: input.pick([1, 4_000, 8_000]))
            let packet = Self.sealed(content, number: first &+ offset)
            try deliver(packet, to: 0, from: Self.home[1], isGenuine: protection == .checksum)
        }
    }

    /// A packet for the first end with a checksum, which needs no secret.
    private static func sealed(_ content: [UInt8], number: UInt64, connection: UInt64 = 77) -> [UInt8] {
        let headerCount = DatagramPacket.headerByteCount
        let checksum = DatagramCipher(.checksum, secret: nil, isSealing: true)
        var packet = [UInt8](repeating: 0, count: headerCount) + content
        let count = packet.count
        packet += [UInt8](repeating: 0, count: checksum.tagByteCount)
        packet.withUnsafeMutableBytes {
            DatagramPacket.writeHeader(connection: connection, number: number, to: $0)
            _ = checksum.seal($0, headerCount: headerCount, count: count, number: number)
        }
        return packet
    }

    /// Changes a packet that only a checksum protects. Mostly the checksum is right again afterwards.
    static func edited(_ packet: UnsafeRawBufferPointer, _ input: inout Input) -> [UInt8] {
        guard input.isUsual(oneIn: 4) else { return input.edited(Array(packet)) }
        let tagCount = DatagramCipher(.checksum, secret: nil, isSealing: false).tagByteCount
        let content = Array(packet[DatagramPacket.headerByteCount...].dropLast(tagCount))
        let number = DatagramPacket.number(of: packet)
        return sealed(
            input.edited(content), number: input.pick([number, number &+ 1, number &+ 1_024, .max]),
            connection: DatagramPacket.connection(of: packet) ?? 0)
    }

    // MARK: The network

    /// Takes the packets of both ends, and checks where those of the first go.
    private mutating func collect() throws {
        for own in 0..<2 {
            var packets: [(bytes: [UInt8], destination: DatagramSource)] = []
            ends[own].output.drain { packets.append((Array($0), $1)) }
            let plain = plaintexts[own].sent
            plaintexts[own].sent = []
            try expect(plain.count == packets.count, "a tap that has missed a packet")
            for (packet, plain) in zip(packets, plain) {
                sent[own].append(Packet(bytes: packet.bytes, plain: plain))
                guard own == 0 else { continue }
                let isTaken = packet.bytes.count <= ends[1].offer.longestPacket
                try expect(isTaken, "\(packet.bytes.count) bytes, which the other end does not take")
                bytesTo[packet.destination, default: 0] += packet.bytes.count
                if plain[16] == 1 { probed[Array(plain[17..<25])] = packet.destination }
                let (came, went) = (bytesFrom[packet.destination] ?? 0, bytesTo[packet.destination] ?? 0)
                let mayGo = proven.contains(packet.destination) || went <= came
                try expect(mayGo, "\(went) bytes went to an address that has not answered, \(came) came")
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
        if own == 0 { try check(packet, from: source, isGenuine, before, ends[own].statistics) }
        plaintexts[own].received = []
        let held = ends[own].heldByteCounts
        let isBounded = held.incomplete <= 8 * Self.longestMessage && held.waiting <= 16 * Self.longestMessage
        try expect(isBounded, "\(held) bytes are held")
        if let message {
            try expect(message.count <= Self.longestMessage, "a message of \(message.count) bytes")
            delivered += 1
            let number = message.count < 8 ? 0 : message.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
            let isRight =
                protection == .checksum || undelivered[1 - own].removeValue(forKey: number) == message
            try expect(isRight, "a message that was not sent, or came before: \(message.prefix(20))")
        }
        try collect()
    }

    /// Checks what the first end has made of a packet.
    private mutating func check(
        _ packet: [UInt8], from source: DatagramSource, _ isGenuine: Bool, _ before: DatagramStatistics,
        _ after: DatagramStatistics
    ) throws {
        let isAccepted = after.packetsReceived != before.packetsReceived
        try expect(plaintexts[0].received.count == (isAccepted ? 1 : 0), "a tap that is wrong")
        guard isAccepted else {
            let isIdle = after.messagesReceived == before.messagesReceived && after.moves == before.moves
            return try expect(isIdle, "a packet that is not accepted has done something")
        }
        try expect(isGenuine, "a forged packet is accepted: \(packet.prefix(40))")
        let plain = plaintexts[0].received[0]
        try expect(plain.prefix(16) == packet.prefix(16), "a tap with another header")
        let number = packet[8..<16].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        try expect(accepted.insert(number).inserted, "the packet \(number) is accepted twice")
        let isRecent = highest.map { $0 <= number || $0 - number < 1_024 } ?? true
        try expect(isRecent, "the packet \(number) is accepted behind \(highest ?? 0)")
        highest = max(highest ?? 0, number)
        bytesFrom[source, default: 0] += packet.count
        guard after.moves != before.moves else { return }
        guard plain.count >= 25, plain[16] == 2, let place = probed[Array(plain[17..<25])] else {
            throw Finding(description: "the path moved without an answer")
        }
        proven.insert(place)
    }

    private mutating func takeTurns() throws {
        for own in 0..<2 where ends[own].deadline <= now { ends[own].timeArrived(now: now) }
        try collect()
    }

    private var deadline: Moment { min(ends[0].deadline, ends[1].deadline) }

    /// Lets time pass, and drops whatever is sent.
    private mutating func pass(to end: Moment) throws {
        var turns = 0
        while deadline <= end {
            now = max(now, deadline)
            try takeTurns()
            turns += 1
            try expect(turns <= 20_000, "a deadline that does not pass")
        }
        now = max(now, end)
    }

    /// Delivers everything that is sent from now on, at once and in order, for that time.
    private mutating func behave(for span: Moment.Span) throws {
        let end = now + span
        var turns = 0
        // Packets that the ends have sent, and nobody has collected, are delivered, too.
        var done = sent.map(\.count)
        try collect()
        while true {
            turns += 1
            try expect(turns <= 20_000, "two ends that never come to rest")
            for own in 0..<2 where done[own] < sent[own].count {
                let packets = Array(sent[own][done[own]...])
                done[own] = sent[own].count
                for packet in packets {
                    let source = own == 0 ? Self.home[0] : place
                    try deliver(packet.bytes, to: 1 - own, from: source, isGenuine: true)
                }
                for own in 0..<2 { done[own] = min(done[own], sent[own].count) }
            }
            guard done == sent.map(\.count) else { continue }
            guard deadline <= end else { break }
            now = max(now, deadline)
            try takeTurns()
            for own in 0..<2 { done[own] = min(done[own], sent[own].count) }
        }
        now = max(now, end)
    }
}

/// Two ends of a stream over packets, and a channel that loses, repeats and changes packets. As long as it changes
/// none, each end reads the beginning of what the other has written. In all cases no end holds more than its window,
/// and no packet is longer than agreed.
enum SequencedTarget {
    static func run(_ input: inout Input) throws {
        let sizes = SequencedStream.Sizes(
            packet: 64 + input.number(below: 200), window: 1 + input.number(below: 900))
        let resends = input.isUsual()
        let isHostile = !input.isUsual()
        var now = Moment(nanoseconds: 0)
        let patience = SequencedStream.Patience(answer: .milliseconds(100), nanosecondsPerByte: 1_000)
        let end = SequencedStream(
            sizes, theirWindow: sizes.window, patience: resends ? patience : nil, at: now)
        var ends = [end, end]
        var (written, read) = ([[UInt8](), []], [[UInt8](), []])
        var seen: [[UInt8]] = [SequencedStream.abort]
        while !input.isAtEnd {
            let side = input.number(below: 2)
            switch input.number(below: 8) {
            case 0:
                let bytes = (0..<input.number(below: 400)).map {
                    UInt8(truncatingIfNeeded: $0 + written[side].count)
                }
                written[side] += bytes
                var queue = ByteQueue()
                queue.append(ByteSlice(bytes))
                ends[side].write(&queue)
            case 1:
                now = now + .milliseconds(Int64(input.number(below: 300)))
                ends[side].resend(at: now)
            case 2: if let bytes = ends[side].read() { read[side] += bytes.bytes }
            case 3:
                guard isHostile else { continue }
                let packet = input.edited(input.isUsual() ? input.pick(seen) : input.content())
                guard ends[side].receive(ByteSlice(packet), at: now) == nil else { return }
            default:
                guard let packet = ends[1 - side].nextPacket(at: now) else { continue }
                try expect(packet.count <= sizes.packet, "a packet of \(packet.count) bytes")
                seen.append(packet)
                let copies = [1, 1, 1, 1, 1, 1, 0, 2][input.number(below: 8)]
                for _ in 0..<copies {
                    guard ends[side].receive(ByteSlice(packet), at: now) == nil else { return }
                }
            }
            try expect(ends.allSatisfy { $0.heldCount <= sizes.window }, "more is held than \(sizes.window)")
            let isRight = isHostile || written[1].starts(with: read[0]) && written[0].starts(with: read[1])
            try expect(isRight, "other bytes are read than were written")
        }
    }
}
