import Testing

@testable import NighCore

/// Tests two links under real TLS when an attacker on the way, or the other end, cheats.
@Suite struct LinkSecurityTests {
    private static let dialler = Identity.ephemeral(seed: 1)
    private static let accepter = Identity.ephemeral(seed: 2)

    private func settings(
        _ identity: Identity, claiming claimed: PeerID? = nil, isPlain: Bool = false
    ) throws -> LinkMachine.Settings {
        var hello = Frames.hello(seed: 1)
        hello.peer = claimed ?? identity.peerID
        return LinkMachine.Settings(
            hello: hello, timings: SessionTimings().link,
            offer: isPlain ? .plaintext : .tls(try TLSContext(identity)))
    }

    private func pair(
        dialling: LinkMachine.Settings? = nil, expected: PeerID? = nil, accepting: LinkMachine.Settings? = nil
    ) throws -> LinkPair {
        LinkPair(
            dialling: try dialling ?? settings(Self.dialler), expected: expected,
            accepting: try accepting ?? settings(Self.accepter))
    }

    private func open() throws -> LinkPair {
        let pair = try pair()
        try pair.deliverAll()
        return pair
    }

    @Test func `Both sides know the others key`() throws {
        let pair = try open()
        #expect(
            pair.dialling.plainNotes == [.secured, .opened]
                && pair.accepting.plainNotes == [.secured, .opened])
        #expect(pair.dialling.machine.provenPeer == Self.accepter.peerID)
        #expect(pair.accepting.machine.provenPeer == Self.dialler.peerID)
    }

    /// Bits without a meaning are ignored today and may get one in a later version, so a change of them must be
    /// detected.
    @Test(
        arguments: [(5, 0x01), (5, 0x04), (5, 0x80), (6, 0x01), (7, 0x80)], [LinkSide.dialling, .accepting])
    func `Both sides detect a changed preface`(_ change: (byte: Int, bits: UInt8), of side: LinkSide) throws {
        let pair = try pair()
        let (from, to) = pair.ends(side)
        var bytes = from.gather()
        bytes[change.byte] ^= change.bits
        to.receive(bytes)
        try pair.deliverAll()
        #expect(pair.dialling.closed?.cause == .insecure(.prefaceChanged))
        #expect(pair.accepting.closed?.cause == .insecure(.prefaceChanged))
        #expect(!pair.dialling.notes.contains(.opened) && !pair.accepting.notes.contains(.opened))
    }

    /// From then on, libssl waits for a record that never comes to its end.
    @Test func `A link whose record was made longer is lost`() throws {
        let pair = try open()
        let start = pair.now
        pair.accepting.isHeldUp = true
        pair.accepting.ping(1, [1])
        var bytes = pair.accepting.gather()
        bytes[3] = 0x3F
        pair.dialling.receive(bytes)
        for _ in 0..<10 where pair.dialling.closed == nil {
            try pair.pass(.seconds(4))
            pair.accepting.ping(1, [1])
            pair.dialling.receive(pair.accepting.gather())
        }
        #expect(pair.dialling.closed?.cause == .silent)
        #expect(pair.now <= start + .seconds(32))
    }

    /// This change would make both sides use plaintext if one of them accepted it.
    @Test(arguments: [LinkSide.dialling, .accepting])
    func `A downgrade is refused by the side that sees it`(of side: LinkSide) throws {
        let pair = try pair()
        let (from, to) = pair.ends(side)
        var bytes = from.gather()
        bytes[5] = Preface.Security.plaintext.rawValue
        to.receive(bytes)
        #expect(to.closed?.cause == .noCommonSecurity(theyEncrypt: false))
        try pair.deliverAll()
        #expect(!from.notes.contains(.opened))
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func `Both sides report which one does not encrypt`(side plain: LinkSide) throws {
        let pair = try pair(
            dialling: settings(Self.dialler, isPlain: plain == .dialling),
            accepting: settings(Self.accepter, isPlain: plain == .accepting))
        try pair.deliverAll()
        let (plainEnd, other) = pair.ends(plain)
        #expect(plainEnd.closed?.cause == .noCommonSecurity(theyEncrypt: true))
        #expect(other.closed?.cause == .noCommonSecurity(theyEncrypt: false))
    }

    @Test(arguments: [LinkSide.dialling, .accepting])
    func `A peer that claims another PeerID is refused`(side liar: LinkSide) throws {
        let victim = Identity.ephemeral(seed: 3).peerID
        let pair = try pair(
            dialling: settings(Self.dialler, claiming: liar == .dialling ? victim : nil),
            accepting: settings(Self.accepter, claiming: liar == .accepting ? victim : nil))
        try pair.deliverAll()
        let (lying, other) = pair.ends(liar)
        #expect(other.closed?.cause == .insecure(.claimsAnotherPeer(victim)))
        #expect(other.closed?.code == .claimsAnotherPeer)
        #expect(lying.closed?.isByPeer == true && lying.closed?.code == .claimsAnotherPeer)
        #expect(!other.notes.contains(.opened))
    }

    @Test func `A wrong peer that answers does not learn the dialler`() throws {
        let wanted = Identity.ephemeral(seed: 3).peerID
        let pair = try pair(expected: wanted)
        try pair.deliverAll()
        #expect(
            pair.dialling.closed?.cause == .wrongPeer(expected: wanted, found: Self.accepter.peerID))
        #expect(
            pair.accepting.closed?.cause
                == .insecure(.certificateRefused("it is bad, or another peer was expected")))
        #expect(pair.accepting.machine.provenPeer == nil && pair.accepting.machine.peerHello == nil)
    }

    /// One read returns everything that arrived meanwhile, however many writes that was.
    @Test func `Messages read before a changed bit are delivered`() throws {
        let pair = try open()
        let messages: [[UInt8]] = [[1], [2, 2], [3, 3, 3], [4]]
        let writes = messages.map { message in
            message.withUnsafeBytes { pair.dialling.machine.sendUnreliable($0) }
            return pair.dialling.gather()
        }
        var bytes = Array(writes.joined())
        bytes[writes[0].count + writes[1].count + 20] ^= 0x10
        let before = pair.accepting.notes.count
        pair.accepting.ping(1)
        pair.accepting.machine.receive(ByteSlice(bytes), now: pair.now)
        // An answer that is written before all steps were taken does not influence them.
        let alert = pair.accepting.gather()
        pair.accepting.step()
        #expect(
            Array(pair.accepting.notes.dropFirst(before)) == [
                .unreliable([1]), .unreliable([2, 2]),
                .closed(.init(cause: .insecure(.damaged), code: nil, isByPeer: false)),
            ])
        pair.dialling.receive(alert)
        #expect(pair.dialling.closed?.cause == .insecure(.refused("bytes were changed on the way")))
    }

    private func opensPackets(_ opening: DatagramCipher, sealedBy sealing: DatagramCipher) -> Bool {
        var packet = [UInt8](repeating: 0, count: 64)
        return packet.withUnsafeMutableBytes { bytes in
            let length = sealing.seal(bytes, headerCount: 16, count: 20, number: 5)
            let sealed = UnsafeMutableRawBufferPointer(rebasing: bytes[..<length])
            return opening.open(sealed, headerCount: 16, number: 5) != nil
        }
    }

    private func datagramOffer(_ connection: UInt64) -> DatagramOffer {
        DatagramOffer(connection: connection, longestPacket: 1_200, place: [])
    }

    @Test func `The keys of packets belong to the connections of both sides`() throws {
        let pair = try open()
        let sent = pair.dialling.machine.datagramCiphers(ours: datagramOffer(1), theirs: datagramOffer(2))
        let sender = try #require(sent)
        for (dialling, accepting, opens) in [(1, 2, true), (3, 2, false), (1, 3, false)]
            as [(UInt64, UInt64, Bool)]
        {
            let received = pair.accepting.machine.datagramCiphers(
                ours: datagramOffer(accepting), theirs: datagramOffer(dialling))
            let receiver = try #require(received)
            #expect(
                opensPackets(receiver.opening, sealedBy: sender.sealing) == opens,
                "\(dialling) and \(accepting)")
        }
    }

    /// As the page of the protocol says: of 64 exported bytes, the first half is for what the dialling side sends.
    @Test func `Packets are sealed with the half of their own side`() throws {
        nonisolated(unsafe) var channel: (any SecureChannel)?  // all of it happens in this function
        let offer = SecureChannelOffer.tls(try TLSContext(Self.dialler))
        var hello = Frames.hello(seed: 1)
        hello.peer = Self.dialler.peerID
        let pair = try pair(
            dialling: LinkMachine.Settings(
                hello: hello, timings: SessionTimings().link,
                offer: SecureChannelOffer(accepted: offer.accepted) { kind, side, expected, ticket in
                    let made = offer.make(kind, side, expected, ticket)
                    channel = made
                    return made
                }))
        try pair.deliverAll()
        let (ours, theirs) = (datagramOffer(1), datagramOffer(2))
        let context: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]
        let secret = try #require(
            channel?.keyingMaterial(label: "EXPORTER-nigh datagrams 1", context: context, count: 64))
        let protection = try #require(channel).datagramProtection
        for (sender, half) in [
            (pair.dialling.machine.datagramCiphers(ours: ours, theirs: theirs), secret.halves.0),
            (pair.accepting.machine.datagramCiphers(ours: theirs, theirs: ours), secret.halves.1),
        ] {
            let sealing = try #require(sender).sealing
            let opening = DatagramCipher(protection, secret: half, isSealing: false)
            #expect(opensPackets(opening, sealedBy: sealing))
        }
    }
}
