import Glibc
import NighCore
import NighTestKit
import Testing

@testable import NighTCP

/// Unreliable messages over real UDP sockets, beside a connection over loopback.
@Suite("Unreliable messages beside a TCP connection") struct UDPTests {
    private func pair(_ room: Room, _ security: SessionSecurity) throws -> (SessionProbe, SessionProbe) {
        func adjust(_ configuration: inout SessionConfiguration) {
            configuration.datagrams = true
            configuration.security = security
        }
        let lynx = try room.join("lynx", adjust: adjust)
        let puma = try room.join("puma", role: .client, adjust: adjust)
        _ = try room.call(puma, port: lynx.port).get()
        return (puma, lynx)
    }

    private func statistics(_ probe: SessionProbe, of peer: PeerID) -> DatagramStatistics? {
        let result = Answer()
        probe.session.statistics { statistics in result.monitor.change { result.statistics = statistics } }
        _ = result.monitor.wait(within: .seconds(20)) { result.statistics != nil }
        return result.statistics?.peers[peer]?.datagrams
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Answer: @unchecked Sendable {
        let monitor = Monitor()
        var statistics: SessionStatistics?
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `travel as packets, and arrive once and in order`(_ security: SessionSecurity) throws {
        let room = Room()
        let (puma, lynx) = try pair(room, security)
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try room.wait("packets pass", puma) { probe in
            probe.events.contains {
                if case .peerChanged(let peer) = $0 { peer.hasDatagrams } else { false }
            }
        }
        for number in 1...200 as ClosedRange<UInt8> {
            let message = [number] + [UInt8](repeating: number, count: Int(number) * 40)
            try puma.session.trySend(message, to: lynx.id, .unreliable)
        }
        try puma.session.trySend([255], to: lynx.id)
        try room.wait("the reliable message comes", lynx) { $0.messages.contains { $0.origin.isReliable } }
        // A packet on its way is lost only if a buffer is full, so the last ones may still come.
        let counts = try #require(statistics(puma, of: lynx.id))
        #expect(
            counts.messagesSent + counts.droppedByPace + counts.droppedByRoom >= 200 && counts.rejected == 0)
        let numbers = lynx.messages.filter { !$0.origin.isReliable }.map(\.bytes[0])
        #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
        for message in lynx.messages where !message.origin.isReliable && message.bytes.count > 1 {
            #expect(message.bytes.count == Int(message.bytes[0]) * 40 + 1)
            let first = message.bytes[0]
            #expect(message.bytes.allSatisfy { $0 == first })
        }
    }
}
