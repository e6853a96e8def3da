import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests two sessions with an attacker between them.
@Suite struct MiddleTests {
    private static let middle = Identity.ephemeral(seed: 66)

    private func failure(_ result: Result<PeerID, NighError>) -> NighError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test func anInviterByAddressSeesOnlyTheManInTheMiddle() throws {
        let room = Room()
        let puma = try room.join("Puma")
        let lynx = try room.join("Lynx")
        let impersonator = try Impersonator(Self.middle, rewrites: true)
        let relay = try Relay(to: lynx.port) { impersonator }
        defer { relay.end() }
        #expect(try room.call(puma, port: relay.port) == .success(Self.middle.peerID))
        try room.wait("a conversation", lynx) { $0.state(of: Self.middle.peerID) == .connected }
        #expect(puma.states(of: lynx.id).isEmpty && lynx.states(of: puma.id).isEmpty)
        // A user who trusts whoever answers first talks to the attacker. Comparing digits reveals that.
        try puma.session.trySend(Array("do you hear me?".utf8), to: Self.middle.peerID)
        try room.wait("the message", lynx) { $0.texts == ["do you hear me?"] }
    }

    @Test func aManInTheMiddleThatForwardsHellosIsDetected() throws {
        let room = Room()
        let puma = try room.join("Puma")
        let lynx = try room.join("Lynx")
        let relay = try Relay(to: lynx.port) { try! Impersonator(Self.middle, rewrites: false) }
        defer { relay.end() }
        let error = failure(try room.call(puma, port: relay.port))
        // Either side may notice first; the other is told.
        let ended = try room.statistics(puma).linksEnded
        #expect(error != nil && puma.states(of: lynx.id).isEmpty, "\(String(describing: error))")
        #expect(ended["claimed another PeerID"] == 1 || ended["protocol violation"] == 1, "\(ended)")
        try room.wait("the links to end", inside: lynx) { $0.inspection.links == 0 }
        #expect(lynx.states(of: puma.id).isEmpty && lynx.invitations.isEmpty)
    }

    @Test func anImpostorOfAKnownPeerDoesNotLearnTheDialler() throws {
        let room = Room()
        let lynx = try room.join("Lynx")
        let relay = try Relay(to: lynx.port) { Changer() }
        defer { relay.end() }
        let address = TransportAddress(scheme: "tcp", value: "127.0.0.1:\(relay.port)")
        let puma = try room.join("Puma", role: .client, knowing: [address]) {
            // Otherwise the check of the address could meet an impersonator before the invitation does.
            $0.timings.addressCheck = .seconds(3_600)
        }
        try room.wait("Puma to find Lynx", puma) { $0.state(of: lynx.id) == .available }
        // One for each connection. After the first one fails, Puma asks again who is at the address,
        // and sends its certificate for that.
        let impersonators = try (0..<8).map { _ in try Impersonator(Self.middle, rewrites: true) }
        let supply = Supply(impersonators)
        relay.become { supply.next() }
        let error = try #require(failure(try room.invite(puma, lynx.id)))
        #expect(error.cause == .wrongPeer(expected: lynx.id, found: Self.middle.peerID), "\(error)")
        #expect(impersonators[0].wait { !$0.failures.isEmpty })
        relay.end()
        #expect(impersonators[0].dialler == nil)
        guard case .insecure(.certificateRefused)? = impersonators[0].failures.first?.cause else {
            Issue.record("\(impersonators[0].failures)")
            return
        }
        #expect(try room.statistics(puma).linksEnded["wrong peer"] == 1)
    }

    @Test(arguments: [(6, UInt8(1)), (7, 0x80), (5, 0x04)], [LinkSide.dialling, .accepting])
    func aChangedPrefaceIsReportedToTheProgram(_ change: (position: Int, bits: UInt8), side: LinkSide) throws
    {
        let room = Room()
        let puma = try room.join("Puma")
        let lynx = try room.join("Lynx")
        let relay = try Relay(to: lynx.port) { Changer(change.bits, at: change.position, from: side) }
        defer { relay.end() }
        let error = try #require(failure(try room.call(puma, port: relay.port)))
        #expect(error.cause == .insecure(.prefaceChanged), "\(error)")
        for probe in [puma, lynx] {
            try room.wait("the link to end", inside: probe) { $0.inspection.links == 0 }
            #expect(try room.statistics(probe).linksEnded == ["preface changed": 1])
        }
    }

    /// Bit 1 is cleared and bit 0 is set, as if the sender could not encrypt.
    @Test(arguments: [LinkSide.dialling, .accepting])
    func aDowngradeIsRefusedByTheSideThatSeesIt(of side: LinkSide) throws {
        let room = Room()
        let puma = try room.join("Puma")
        let lynx = try room.join("Lynx")
        let relay = try Relay(to: lynx.port) { Changer(3, at: 5, from: side) }
        defer { relay.end() }
        let error = try #require(failure(try room.call(puma, port: relay.port)))
        if side == .accepting { #expect(error.cause == .noCommonSecurity(theyEncrypt: false), "\(error)") }
        try room.wait("the link to end", inside: lynx) { $0.inspection.links == 0 }
        let seen = try room.statistics(side == .dialling ? lynx : puma).linksEnded
        #expect(seen["no common security"] == 1, "\(seen)")
        #expect(puma.states(of: lynx.id).isEmpty && lynx.states(of: puma.id).isEmpty)
    }

    @Test(arguments: [true, false])
    func anEncryptedAndAPlaintextSessionReportWhichSideEncrypts(callerEncrypts: Bool) throws {
        let room = Room()
        // Repeated, because what each side is told must not depend on which side is faster.
        for _ in 0..<20 {
            let puma = try room.join("Puma") { $0.security = callerEncrypts ? .encrypted : .none }
            let lynx = try room.join("Lynx") { $0.security = callerEncrypts ? .none : .encrypted }
            let error = try #require(failure(try room.call(puma, port: lynx.port)))
            #expect(error.cause == .noCommonSecurity(theyEncrypt: !callerEncrypts), "\(error)")
            try room.wait("the link to end", inside: lynx) { $0.inspection.links == 0 }
            #expect(try room.statistics(lynx).linksEnded == ["no common security": 1])
        }
    }

    /// Changes one bit in each of several links, behind the handshake and at another place each time, in
    /// one conversation after the other.
    @Test(arguments: [LinkSide.dialling, .accepting])
    func aBitChangedInTransitCostsOnlyALink(from side: LinkSide) throws {
        let room = Room()
        // When the length of a record is changed, the other side waits for the rest, up to 16 KiB, until keep-alive has
        // sent that much, some 70 bytes at a time.
        let impatient: (inout SessionConfiguration) -> Void = {
            $0.timings.pingAfter = .milliseconds(10)
            $0.timings.loseAfter = .seconds(5)
        }
        let puma = try room.join("Puma", adjust: impatient)
        let lynx = try room.join("Lynx", adjust: impatient)
        let relay = try Relay(to: lynx.port) { Changer() }
        defer { relay.end() }
        let lap = Lap()
        // Each link has one bit changed, at the position that the lap gives.
        relay.become {
            let position = lap.next()
            return Changer(UInt8(1) << UInt8(position & 7), at: position, from: side)
        }
        #expect(try room.call(puma, port: relay.port) == .success(lynx.id))
        var sent = 0
        while lap.count < 8, sent < 4_000 {
            // Of different lengths, so that the changed byte is sometimes in the content and sometimes in a tag.
            let words = "\(sent) " + String(repeating: "x", count: sent % 300)
            try puma.session.trySend(Array(words.utf8), to: lynx.id)
            try lynx.session.trySend(Array(words.utf8), to: puma.id)
            sent += 1
            guard sent % 4 == 0 else { continue }
            let count = sent
            try room.wait("what was sent", lynx) { $0.messages.count >= count }
            try room.wait("what was sent", puma) { $0.messages.count >= count }
        }
        #expect(lap.count >= 8)
        let count = sent
        try room.wait("everything", lynx) { $0.messages.count >= count }
        try room.wait("everything", puma) { $0.messages.count >= count }
        for probe in [puma, lynx] {
            #expect(probe.texts.map { Int($0.split(separator: " ")[0]) } == Array(0..<sent))
        }
        let (there, here) = (try room.statistics(lynx), try room.statistics(puma))
        let (receiver, other) = side == .dialling ? (there, here) : (here, there)
        #expect((receiver.linksEnded["TLS damaged"] ?? 0) >= 5, "\(receiver.linksEnded) \(other.linksEnded)")
        #expect((here.peers[lynx.id]?.reconnects ?? 0) >= 7)
        #expect(puma.states(of: lynx.id).filter { $0 == .disconnected }.isEmpty)
    }

    /// The position of the changed bit in each link: behind the handshake, and another one each time.
    private final class Lap: @unchecked Sendable {
        private let monitor = Monitor()
        private var links = 0

        var count: Int { monitor.read { links } }

        func next() -> Int {
            monitor.change {
                links += 1
                return 2_000 + links * 777
            }
        }
    }
}

/// Hands out one impersonator after another.
///
/// `@unchecked Sendable`: used only by the relay's thread.
private final class Supply: @unchecked Sendable {
    private var rest: ArraySlice<Impersonator>

    init(_ impersonators: [Impersonator]) { rest = impersonators[...] }

    func next() -> Impersonator { rest.count > 1 ? rest.removeFirst() : rest[rest.startIndex] }
}
