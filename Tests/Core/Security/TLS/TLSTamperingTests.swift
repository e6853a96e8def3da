import Testing

@testable import NighCore

/// Tests an attacker on the way who changes, cuts, repeats and forges bytes.
@Suite struct TLSTamperingTests {
    private let dialler: TLSContext
    private let accepter: TLSContext

    init() throws {
        dialler = try TLSContext(ChannelPair.dialler)
        accepter = try TLSContext(ChannelPair.accepter)
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func `Changed bytes of the handshake are detected`(side: LinkSide) throws {
        let clean = ChannelPair(dialler, accepter)
        try clean.shakeHands()
        let count = (side == .dialling ? clean.fromDialling : clean.fromAccepting).count
        #expect(count > 500)
        for position in 0..<count {
            let pair = ChannelPair(dialler, accepter)
            pair.tampering = (side, position)
            var isRefused = false
            do {
                try pair.shakeHands()
            } catch {
                isRefused = true
                #expect(isNamed(error.cause), "\(error) at \(position)")
            }
            // TLS 1.3 requires both sides to ignore the version in the first record of each side.
            if position == 1 || position == 2 { continue }
            // If a length was increased, the channel waits for the rest.
            let isDone =
                pair.dialling.isEstablished && pair.accepting.isEstablished
                && pair.dialling.heldByteCount == 0
            #expect(isRefused || !isDone, "byte \(position) was changed unnoticed")
        }
    }

    private func isNamed(_ cause: NighError.Cause) -> Bool {
        if case .insecure = cause { true } else { false }
    }

    @Test func `Changed bytes of a record are detected`() throws {
        let length = try ChannelPair.established().sealed([UInt8](repeating: 7, count: 40)).count
        for position in 0..<length {
            let pair = ChannelPair(dialler, accepter)
            try pair.shakeHands()
            var record = try pair.sealed([UInt8](repeating: 7, count: 40))
            record[position] ^= 0x10
            do {
                try pair.receive(record)
                // If a length was increased, the channel waits for the rest.
                #expect(position == 3 || position == 4, "byte \(position) was changed unnoticed")
            } catch {
                #expect(isNamed(error.cause) && error.stage == .receiving)
                // The other side is notified.
                try #require(!pair.toDialling.isEmpty)
                #expect(throws: NighError.self) { try pair.pump() }
            }
            #expect(pair.readByAccepting.isEmpty)
        }
    }

    @Test func `A repeated record and one behind a missing one are refused`() throws {
        for isRepeated in [true, false] {
            let pair = try ChannelPair.established()
            let (first, second) = (try pair.sealed([1, 2, 3]), try pair.sealed([4]))
            if isRepeated { try pair.receive(first) }
            let error = #expect(throws: NighError.self) { try pair.receive(isRepeated ? first : second) }
            #expect(error?.cause == .insecure(.damaged))
            #expect(pair.readByAccepting.bytes == (isRepeated ? [1, 2, 3] : []))
        }
    }

    @Test func `Records before a damaged one are delivered`() throws {
        let pair = try ChannelPair.established()
        let good = try pair.sealed([1, 2, 3]) + pair.sealed([4])
        var damaged = try pair.sealed([5])
        damaged[damaged.count - 1] ^= 1
        let error = #expect(throws: NighError.self) { try pair.receive(good + damaged + good) }
        #expect(error?.cause == .insecure(.damaged))
        #expect(pair.readByAccepting.bytes == [1, 2, 3, 4])
    }

    @Test func `A partial record yields no bytes`() throws {
        let pair = try ChannelPair.established()
        #expect(pair.accepting.heldByteCount == 0)
        let record = try pair.sealed([UInt8](repeating: 1, count: 1_000))
        try pair.receive(record.dropLast())
        #expect(pair.readByAccepting.isEmpty)
        #expect(pair.accepting.heldByteCount >= 1_000)
        // Received bytes are not forgotten, idle or not.
        pair.accepting.releaseIdleMemory()
        try pair.receive(record.suffix(1))
        #expect(pair.readByAccepting.byteCount == 1_000)
        #expect(pair.accepting.heldByteCount == 0)
    }

    @Test(arguments: [LinkSide.dialling, .accepting], [false, true])
    func `Nonsense is refused`(side: LinkSide, afterHandshake: Bool) throws {
        var generator = SeededGenerator(seed: 5)
        for round in 0..<200 {
            let pair = ChannelPair(dialler, accepter)
            if afterHandshake {
                try pair.shakeHands()
            } else {
                try pair.dialling.begin(wire: &pair.toAccepting)
                try pair.accepting.begin(wire: &pair.toDialling)
            }
            var bytes = (0..<1_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
            // Every second time, the bytes look like a record.
            if round % 2 == 0 {
                bytes.replaceSubrange(0..<5, with: [UInt8(20 + round % 8 / 2), 3, 3, 0, 200])
            }
            let channel = side == .dialling ? pair.dialling : pair.accepting
            var plain = ByteQueue()
            var wire = ByteQueue()
            #expect(throws: NighError.self) {
                try channel.receive(ByteSlice(bytes), plain: &plain, wire: &wire)
            }
            #expect(plain.isEmpty)
        }
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func `An endless handshake is aborted`(side: LinkSide) throws {
        let context = try TLSContext(ChannelPair.accepter)
        let channel = TLSChannel(context, side: side, expected: nil, ticket: nil)
        var plain = ByteQueue()
        var wire = ByteQueue()
        try channel.begin(wire: &wire)
        // A first message of 100,000 bytes, in records of 1,000.
        let type: UInt8 = side == .accepting ? 1 : 2
        var content: [UInt8] = [type, 1, 0x86, 0xA0]
        content += [UInt8](repeating: 0, count: 996)
        let first = ByteSlice([22, 3, 3, 3, 0xE8] + content)
        let next = ByteSlice([22, 3, 3, 3, 0xE8] + [UInt8](repeating: 0, count: 1_000))
        var fed = 0
        let error = #expect(throws: NighError.self) {
            try channel.receive(first, plain: &plain, wire: &wire)
            while fed < 1 << 20 {
                fed += next.count
                try channel.receive(next, plain: &plain, wire: &wire)
            }
        }
        #expect(fed <= TLSContext.handshakeLimit)
        if side == .accepting {
            #expect(error?.cause == .limit("bytes of a handshake", TLSContext.handshakeLimit))
        }
    }
}
