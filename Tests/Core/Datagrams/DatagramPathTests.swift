import NighTestKit
import Testing

@testable import NighCore

/// A path between two ends that a test connects by hand.
@Suite("A datagram path") struct DatagramPathTests {
    /// Two ends, the packets between them, and what they have delivered.
    private final class Pair {
        var ends: InlineArray<2, DatagramPath>
        var now = Moment(nanoseconds: 0)
        var delivered: [[[UInt8]]] = [[], []]
        /// Where the packets of each end seem to come from.
        var sources = [DatagramSource(1), DatagramSource(2)]
        /// All packets of each end, with their destinations.
        var packets: [[(bytes: [UInt8], to: DatagramSource)]] = [[], []]
        private var rounds = 0
        /// Whether a packet of this end to that place arrives.
        var passes: (Int, [UInt8], DatagramSource) -> Bool = { _, _, _ in true }

        init(_ protection: DatagramProtection = .aes128) {
            ends = InlineArray { index in
                DatagramPath(
                    offer: DatagramOffer(
                        connection: UInt64(77 + index), longestPacket: 8_952, place: [UInt8(index)]),
                    longestMessage: 8_192, generator: SeededGenerator(seed: UInt64(index)),
                    now: Moment(nanoseconds: 0))
            }
            for index in 0..<2 {
                ends[index].accept(
                    ends[1 - index].offer, at: sources[1 - index],
                    sealing: Self.cipher(protection, index, true),
                    opening: Self.cipher(protection, 1 - index, false), now: now)
            }
        }

        /// A pair that has found that packets pass.
        static func open(_ protection: DatagramProtection = .aes128) -> Pair {
            let pair = Pair(protection)
            pair.run(.seconds(1))
            return pair
        }

        func isOpen(_ index: Int) -> Bool { ends[index].isOpen }

        private static func cipher(
            _ kind: DatagramProtection, _ side: Int, _ isSealing: Bool
        ) -> DatagramCipher {
            let secret = SecretBytes(count: DatagramCipher.secretByteCount)
            secret.withBytes { $0[0] = UInt8(side + 1) }
            return DatagramCipher(kind, secret: secret, isSealing: isSealing)
        }

        /// Gives the packets of each end to the other one, until there are none, and lets time pass.
        func run(_ span: Moment.Span = .zero) {
            let end = now + span
            while true {
                while exchange() {}
                let next = min(ends[0].deadline, ends[1].deadline)
                guard next <= end else { break }
                now = max(now, next)
                for index in 0..<2 where ends[index].deadline <= now { ends[index].timeArrived(now: now) }
            }
            now = end
        }

        private func exchange() -> Bool {
            rounds += 1
            guard rounds < 10_000 else {
                Issue.record("the two ends never come to rest")
                return false
            }
            var sent: [(Int, [UInt8], DatagramSource)] = []
            for index in 0..<2 {
                ends[index].output.drain { sent.append((index, Array($0), $1)) }
            }
            for (index, bytes, place) in sent {
                packets[index].append((bytes, place))
                if passes(index, bytes, place) { give(bytes, to: 1 - index, from: sources[index]) }
            }
            return !sent.isEmpty
        }

        func give(_ packet: [UInt8], to index: Int, from source: DatagramSource) {
            var packet = packet
            packet.withUnsafeMutableBytes { bytes in
                guard let message = ends[index].receive(bytes, from: source, now: now) else { return }
                delivered[index].append(Array(message.bytes))
            }
        }

        func ping(_ call: UInt64 = 1, padding: Int = 0) {
            ends[0].send(PacketPings.Request(call: call, padding: padding), now: now)
        }

        /// How many bytes an end has sent to a place.
        func byteCount(from index: Int, to place: DatagramSource) -> Int {
            packets[index].reduce(0) { $0 + ($1.to == place ? $1.bytes.count : 0) }
        }

        @discardableResult
        func send(
            _ bytes: [UInt8], _ order: DatagramOrder = .sequenced, from index: Int = 0
        ) -> DatagramPath.Sending {
            bytes.withUnsafeBytes { ends[index].send($0, order, now: now) }
        }
    }

    @Test func `is used once each side has answered over it, and not before`() {
        let pair = Pair()
        #expect(pair.send([1]) == .notOpen)
        var isUp = false
        pair.passes = { index, _, _ in index == 0 || isUp }
        pair.run(.milliseconds(500))
        #expect(!pair.isOpen(0) && !pair.isOpen(1))
        isUp = true
        pair.run(.milliseconds(500))
        #expect(pair.isOpen(0) && pair.isOpen(1))
        #expect(pair.send([1]) == .queued)
        pair.run()
        #expect(pair.delivered[1] == [[1]])
    }

    @Test func `counts what passes, and nothing as lost, late, repeated, rejected or dropped if all is well`()
    {
        let pair = Pair.open()
        let before = pair.packets[0].count
        for _ in 0..<20 {
            pair.send([1, 2, 3])
            pair.run(.milliseconds(100))
        }
        // While reports come, no answer has to be asked for.
        #expect(pair.packets[0].count == before + 20)
        for index in 0..<2 {
            let counts = pair.ends[index].statistics
            #expect(counts.messagesSent == (index == 0 ? 20 : 0))
            #expect(counts.messagesReceived == (index == 0 ? 0 : 20))
            #expect(counts.packetsSent == pair.packets[index].count)
            #expect(counts.packetsReceived == pair.packets[1 - index].count)
            let bad = [
                counts.packetsLost, counts.duplicates, counts.late, counts.rejected, counts.droppedByPace,
                counts.droppedByRoom, counts.droppedBySize, counts.moves,
            ]
            #expect(bad.allSatisfy { $0 == 0 }, "\(counts)")
        }
    }

    @Test(arguments: [true, false])
    func `is no longer tried half a minute after it was blocked, until a ping or a message is to be sent`(
        isPing: Bool
    ) {
        let pair = Pair()
        pair.passes = { _, _, _ in false }
        pair.run(.seconds(40))
        pair.passes = { _, _, _ in true }
        let before = pair.packets[0].count
        pair.run(.seconds(60))
        #expect(pair.packets[0].count == before && !pair.isOpen(0))
        if isPing {
            pair.ping()
        } else {
            pair.send([1])
        }
        pair.run()
        #expect(pair.isOpen(0))
    }

    @Test
    func `is not checked again before a message if another one left less than 15 s ago, answered or not`() {
        let pair = Pair()
        pair.run(.milliseconds(14_900))
        pair.passes = { index, _, _ in index == 0 }
        #expect(pair.send([1]) == .queued)
        pair.run(.milliseconds(150))
        #expect(pair.send([2]) == .queued)
        pair.run()
        #expect(pair.delivered[1] == [[1], [2]])
    }

    @Test func `is checked again before a message if nothing has been sent or has come for 15 s`() {
        let pair = Pair.open()
        pair.run(.seconds(15))
        #expect(pair.send([1]) == .notOpen)
        pair.run()
        #expect(pair.send([2]) == .queued)
        pair.run()
        #expect(pair.delivered[1] == [[2]])
    }

    @Test func `pads a ping by as many bytes as were asked for, up to the longest packet in use`() {
        let pair = Pair.open()
        let before = pair.packets[0].count
        for padding in [0, 100, 10_000] { pair.ping(padding: padding) }
        pair.run()
        // A ping is a header of 16 bytes, a kind, a token of 8 and a tag of 16.
        #expect(pair.packets[0][before...].map(\.bytes.count) == [41, 141, 1_200])
        #expect(pair.ends[0].takePingResults().count == 3)
    }

    @Test(arguments: [0, 1, 2, 3])
    func `delivers nothing that is repeated, forged, cut short, or sealed for another path`(_ seed: UInt64) {
        let pair = Pair.open()
        for number in 0..<50 as Range<UInt8> {
            pair.send([number])
            pair.run(.milliseconds(5))
        }
        let genuine = pair.packets[0].map(\.bytes)
        let before = pair.delivered[1]
        #expect(before.count == 50)
        var random = SeededGenerator(seed: seed)
        let foreign = Pair.open(.aes256).packets[0].map(\.bytes)
        for _ in 0..<20_000 {
            var packet =
                Int.random(in: 0..<4, using: &random) == 0
                ? foreign.randomElement(using: &random)! : genuine.randomElement(using: &random)!
            switch Int.random(in: 0..<5, using: &random) {
            case 0: break
            case 1:
                packet[Int.random(in: 0..<packet.count, using: &random)] ^= UInt8.random(
                    in: 1...255, using: &random)
            case 2: packet = Array(packet.prefix(Int.random(in: 0..<packet.count, using: &random)))
            case 3:
                // The next numbers, with any content.
                let next = UInt64.random(in: 0..<10_000_000, using: &random)
                packet.withUnsafeMutableBytes {
                    DatagramPacket.writeHeader(connection: 78, number: next, to: $0)
                }
            default: packet = Frames.random(.random(in: 1..<100, using: &random), &random)
            }
            pair.give(packet, to: 1, from: DatagramSource(UInt64.random(in: 1..<6, using: &random)))
        }
        #expect(pair.delivered[1] == before)
        // None of them is answered, and the path works as before.
        let sent = pair.packets[1].count
        pair.run()
        #expect(pair.packets[1].count == sent)
        pair.send([99])
        pair.run()
        #expect(pair.delivered[1] == before + [[99]])
    }

    @Test(
        "follows the other side to another address once that has answered, and sends no more there before than came from it",
        arguments: [1, 20])
    func moving(_ messageLength: Int) {
        let pair = Pair.open()
        pair.sources[0] = DatagramSource(9)
        // Nothing arrives at the new address yet.
        pair.passes = { index, _, place in index == 0 || place != DatagramSource(9) }
        var received = 0
        for _ in 0..<100 {
            pair.send(Array(repeating: 7, count: messageLength))
            received += messageLength + 2 + 16 + 16
            pair.run(.milliseconds(1))
            #expect(pair.byteCount(from: 1, to: DatagramSource(9)) <= received)
        }
        pair.passes = { index, _, place in index == 0 || place == DatagramSource(9) }
        for _ in 0..<5 {
            pair.send([1])
            pair.run(.milliseconds(10))
        }
        #expect(pair.ends[1].statistics.moves == 1)
        pair.send([5], from: 1)
        pair.run()
        #expect(pair.delivered[0].last == [5])
    }

    @Test func `answers pings from a new address with no more bytes than came from it`() {
        let pair = Pair.open()
        let elsewhere = DatagramSource(9)
        pair.sources[0] = elsewhere
        // Nothing arrives at the new address, so it never answers.
        pair.passes = { index, _, place in index == 0 || place != elsewhere }
        let before = pair.packets[0].count
        for number in 0..<20 as Range<UInt64> {
            pair.ping(number)
            pair.run(.milliseconds(1))
            let received = pair.packets[0][before...].reduce(0) { $0 + $1.bytes.count }
            let sent = pair.byteCount(from: 1, to: elsewhere)
            #expect(sent > 0 && sent <= received)
        }
    }

    @Test(arguments: [0, 1]) func `follows both sides if they move at once, as soon as one packet arrives`(
        _ sender: Int
    ) {
        let pair = Pair.open()
        pair.sources = [DatagramSource(8), DatagramSource(9)]
        // Of what was sent to the former places, one packet still arrives.
        var isUnderWay = true
        pair.passes = { [unowned pair] index, _, place in
            defer { isUnderWay = false }
            return isUnderWay || place == pair.sources[1 - index]
        }
        let first = [UInt8](repeating: 1, count: 20)
        pair.send(first, from: sender)
        pair.run(.milliseconds(100))
        for number in 2..<5 as Range<UInt8> {
            for end in 0..<2 { pair.send([number], from: end) }
            pair.run(.milliseconds(100))
        }
        #expect(pair.delivered[1 - sender] == [first, [2], [3], [4]])
        #expect(pair.delivered[sender] == [[2], [3], [4]])
        #expect((0..<2).map { pair.ends[$0].statistics.moves } == [1, 1])
        #expect(pair.packets[0].count + pair.packets[1].count < 60)
    }

    @Test(arguments: [1_200, 1_400, 1_500, 5_000, 9_000])
    func `finds how long packets may be, and sends messages in parts that fit`(_ limit: Int) {
        let pair = Pair()
        pair.passes = { _, bytes, _ in bytes.count <= limit }
        pair.run(.seconds(1))
        let message = (0..<8_192).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for _ in 0..<3 {
            pair.send(message)
            pair.run(.seconds(3))
        }
        #expect(pair.delivered[1] == [message, message, message])
        let longest = [1_200, 1_392, 1_452, 1_472, 4_052, 8_952].last { $0 <= limit }
        #expect(pair.ends[0].longestPacket == longest)
        #expect(pair.isOpen(0))
    }

    @Test func `sends shorter packets when longer ones no longer pass`() {
        let pair = Pair.open()
        let message = [UInt8](repeating: 1, count: 8_192)
        pair.send(message)
        pair.run(.seconds(2))
        #expect(pair.ends[0].longestPacket == 8_952)
        pair.passes = { _, bytes, _ in bytes.count <= 1_300 }
        pair.delivered[1] = []
        pair.send(message)
        pair.run(.seconds(1))
        pair.send(message)
        pair.run(.seconds(1))
        #expect(pair.delivered[1] == [message])
        #expect(pair.isOpen(0) && pair.ends[0].longestPacket == 1_200)
    }

    @Test func `drops a message of which a part is lost, and delivers the next`() {
        let pair = Pair.open()
        let longest = 4_100
        pair.passes = { _, bytes, _ in bytes.count <= longest }
        // The first long message has the path find out how long packets may be.
        pair.send(Array(repeating: 0, count: 5_000))
        pair.run(.seconds(5))
        pair.delivered[1] = []
        var isLost = true
        pair.passes = { index, bytes, _ in
            if bytes.count > longest { return false }
            guard index == 0, bytes.count > 500, isLost else { return true }
            isLost = false
            return false
        }
        pair.send(Array(repeating: 1, count: 8_192))
        pair.send(Array(repeating: 2, count: 8_192))
        pair.run(.seconds(1))
        #expect(pair.delivered[1].map { $0.first } == [2] && pair.delivered[1].first?.count == 8_192)
    }

    @Test func `keeps of a key's messages the newest while the path is full, and sends it as soon as it can`()
    {
        let pair = Pair.open()
        let filler = [UInt8](repeating: 0, count: 1_000)
        while pair.send(filler) == .queued { pair.run() }
        #expect(pair.ends[0].statistics.droppedByPace == 1)
        // The first waits, and each other takes the place of the one before.
        for _ in 0..<3 { #expect(pair.send(filler, .newest(key: 4)) == .queued) }
        #expect(pair.ends[0].statistics.droppedByPace == 3)
        for number in 0..<10 as Range<UInt8> { #expect(pair.send([number], .newest(key: 3)) == .queued) }
        pair.run(.seconds(1))
        let received = pair.delivered[1].filter { $0.count == 1 }.map { $0[0] }
        #expect(received.last == 9 && received == received.sorted() && Set(received).count == received.count)
    }

    @Test(arguments: [DatagramOrder.unordered, .sequenced, .newest(key: 0)])
    func `delivers messages of the order that their programs chose`(_ order: DatagramOrder) {
        let pair = Pair.open()
        var held: [[UInt8]] = []
        pair.passes = { index, bytes, _ in
            guard index == 0 else { return true }
            held.append(bytes)
            return false
        }
        for number in 0..<3 as Range<UInt8> { pair.send([number], order) }
        pair.run()
        for packet in held.reversed() { pair.give(packet, to: 1, from: pair.sources[0]) }
        #expect(pair.delivered[1] == (order == .unordered ? [[2], [1], [0]] : [[2]]))
    }
}
