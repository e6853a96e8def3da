import COpenSSL
import Testing

@testable import NighCore

@Suite struct TLSChannelTests {
    private static func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ seed) }
    }

    @Test(arguments: [1, 2, 7, 100, 1_000, Int.max])
    func `Both sides learn the others identity`(split: Int) throws {
        let pair = try ChannelPair(split: split)
        #expect(pair.dialling.provenPeer == nil && pair.accepting.provenPeer == nil)
        try pair.shakeHands()
        #expect(pair.dialling.isEstablished && pair.accepting.isEstablished)
        #expect(pair.dialling.provenPeer == ChannelPair.accepter.peerID)
        #expect(pair.accepting.provenPeer == ChannelPair.dialler.peerID)
        #expect(!pair.dialling.wasResumed && !pair.accepting.wasResumed)
        #expect(try pair.exchange([1, 2, 3]))
    }

    @Test(arguments: [0, 1, 100, 16_383, 16_384, 16_385, 32_768, 65_536, 100_000, 1 << 20])
    func `Bytes arrive as they were sent`(count: Int) throws {
        let pair = try ChannelPair.established()
        let bytes = Self.pattern(count)
        #expect(try pair.exchange(bytes))
        pair.split = 777
        #expect(try pair.exchange(bytes))
    }

    @Test func `Many small slices become few records`() throws {
        let pair = try ChannelPair.established()
        let slices = (0..<1_000).map { Self.pattern($0 % 90, seed: $0) }
        let count = slices.reduce(0) { $0 + $1.count }
        let before = pair.fromDialling.count
        #expect(try pair.send(slices) == slices.flatMap { $0 })
        let records = (count + TLSContext.recordSize - 1) / TLSContext.recordSize
        #expect(pair.fromDialling.count - before == count + records * 22)
    }

    @Test func `Payloads and keys are not readable on the wire`() throws {
        let pair = try ChannelPair.established()
        let secret = Array("a secret that nobody else may read".utf8)
        _ = try pair.send([secret, [UInt8](repeating: 0, count: 100_000), secret])
        _ = try pair.send([secret], from: .accepting)
        for bytes in [pair.fromDialling, pair.fromAccepting] {
            for hidden in [secret, ChannelPair.dialler.publicKey, ChannelPair.accepter.publicKey] {
                #expect(!contains(bytes, hidden))
            }
        }
        #expect(contains(pair.fromDialling, Array("nigh/1".utf8)), "the search finds what is there")
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == part[0] && bytes[$0...].starts(with: part) }
    }

    @Test func `The end is reported and the other direction continues`() throws {
        let pair = try ChannelPair.established()
        pair.dialling.end(wire: &pair.toAccepting)
        #expect(!pair.toAccepting.isEmpty)
        try pair.pump()
        #expect(pair.readByAccepting.isEmpty)
        let error = #expect(throws: NighError.self) { try pair.send([[1]]) }
        #expect(error?.cause == .closed)
        // The end is sent only once. What comes after it does not count.
        pair.dialling.end(wire: &pair.toAccepting)
        #expect(pair.toAccepting.isEmpty)
        pair.toAccepting.append(ByteSlice([1, 2, 3]))
        try pair.pump()
        #expect(pair.readByAccepting.isEmpty)
        #expect(try pair.send([[5]], from: .accepting) == [5])
        pair.accepting.end(wire: &pair.toDialling)
        try pair.pump()
    }

    @Test func `An end before the handshake sends nothing`() throws {
        let pair = try ChannelPair()
        try pair.dialling.begin(wire: &pair.toAccepting)
        let before = pair.toAccepting.byteCount
        pair.dialling.end(wire: &pair.toAccepting)
        #expect(pair.toAccepting.byteCount == before)
        #expect(throws: NighError.self) { try pair.send([[1]]) }
    }

    @Test func `Keys are renewed before their limit`() throws {
        let often = ChannelPair(
            try TLSContext(ChannelPair.dialler, recordsPerKey: 3), try TLSContext(ChannelPair.accepter))
        try often.shakeHands()
        let before = often.fromDialling.count
        for number in 0..<UInt8(30) {
            #expect(try often.exchange([number]))
        }
        #expect(often.fromDialling.count - before == 30 * 23 + 10 * 27, "a record that says so each time")
    }

    private func secret(
        _ channel: TLSChannel, _ label: String = "EXPORTER-nigh", _ context: [UInt8] = [1]
    ) -> [UInt8]? {
        channel.keyingMaterial(label: label, context: context, count: 32)?.withBytes { Array($0) }
    }

    @Test func `Only both ends compute the same secret`() throws {
        let pair = try ChannelPair()
        #expect(secret(pair.dialling) == nil)
        try pair.shakeHands()
        let ours = try #require(secret(pair.dialling))
        #expect(ours.count == 32 && secret(pair.accepting) == ours)
        #expect(secret(pair.dialling, "EXPORTER-other") != ours)
        #expect(secret(pair.dialling, "EXPORTER-nigh", [2]) != ours)
        #expect(secret(pair.dialling, "EXPORTER-nigh", []) != ours)
        #expect(secret(try ChannelPair.established().dialling) != ours, "another handshake, another secret")
    }

    @Test func `A man in the middle gives each side another secret`() throws {
        let middle = try TLSContext(.ephemeral(seed: 66))
        let left = ChannelPair(try TLSContext(ChannelPair.dialler), middle)
        let right = ChannelPair(middle, try TLSContext(ChannelPair.accepter))
        try left.shakeHands()
        try right.shakeHands()
        #expect(secret(left.dialling) != secret(right.accepting))
        #expect(left.dialling.provenPeer == middle.peerID && right.accepting.provenPeer == middle.peerID)
    }

    @Test func `Many channels share the memory of a few`() throws {
        let context = try TLSContext(ChannelPair.dialler)
        let other = try TLSContext(ChannelPair.accepter)
        let count = TLSContext.activeChannelLimit * 2 + 1
        var pairs = (0..<count).map { _ in ChannelPair(context, other) }
        for pair in pairs {
            try pair.shakeHands()
            #expect(context.activeChannelCount <= TLSContext.activeChannelLimit)
        }
        // A record that has arrived only in part keeps its memory, however many other channels need some.
        let record = try pairs[0].sealed([7, 8, 9])
        try pairs[0].receive(Array(record.prefix(10)))
        for round in 0..<3 {
            for pair in pairs.dropFirst() {
                #expect(try pair.exchange(Self.pattern(20_000 + round)))
                #expect(other.activeChannelCount <= TLSContext.activeChannelLimit)
            }
        }
        try pairs[0].receive(Array(record.dropFirst(10)))
        #expect(pairs[0].readByAccepting.bytes == [7, 8, 9])
        pairs.removeAll()
        #expect(context.activeChannelCount == 0)
        #expect(other.activeChannelCount == 0)
    }

    @Test func `Slices in use are not overwritten`() throws {
        let pair = try ChannelPair.established()
        var kept: [(ByteSlice, UInt8)] = []
        for number in 0..<UInt8(100) {
            let count = 1_000 + Int(number) * 100
            pair.toAccepting.append(ByteSlice(try pair.sealed([UInt8](repeating: number, count: count))))
            try pair.pump()
            while let slice = pair.readByAccepting.popFirst() { kept.append((slice, number)) }
            if number % 3 == 0 { kept.removeFirst() }
        }
        for (slice, number) in kept { #expect(slice.bytes.allSatisfy { $0 == number }) }
    }

    @Test func `Foreign errors in the error queue are ignored`() throws {
        let pair = try ChannelPair.established()
        // A call of libcrypto that fails, as another part of the program may have made it.
        #expect(PEM_read_bio_X509(nil, nil, nil, nil) == nil)
        try #require(ERR_peek_error() != 0)
        #expect(try pair.send([[1]]) == [1])
        #expect(ERR_peek_error() == 0)
    }
}
