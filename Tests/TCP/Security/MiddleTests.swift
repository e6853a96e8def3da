import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests two sessions over real sockets that an attacker damages, or that do not agree on encryption.
/// `LinkSecurityTests` has what a link detects.
struct MiddleTests {
    @Test(arguments: [true, false])
    func `An encrypted and a plaintext session report which side encrypts`(callerEncrypts: Bool) throws {
        let room = Room()
        // Repeated, because what each side is told must not depend on which side is faster.
        for _ in 0..<20 {
            let puma = try room.join("Puma") { $0.security = callerEncrypts ? .encrypted : .none }
            let lynx = try room.join("Lynx") { $0.security = callerEncrypts ? .none : .encrypted }
            let error = #expect(throws: NighError.self) { try room.call(puma, port: lynx.port).get() }
            #expect(error?.cause == .noCommonSecurity(theyEncrypt: !callerEncrypts))
            try room.wait("the link to end", inside: lynx) { $0.inspection.links == 0 }
            #expect(try room.statistics(lynx).linksEnded == ["no common security": 1])
        }
    }

    /// Changes one bit in each of several links, behind the handshake and at another place each time, in
    /// one conversation after the other.
    @Test(arguments: [LinkSide.dialling, .accepting])
    func `A bit changed in transit costs only a link`(from side: LinkSide) throws {
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
