import Testing

@testable import NighCore

/// Tests that a link with only keep-alive traffic makes its channel release the memory that only other traffic needs.
@Suite struct RestingLinkTests {
    /// Changes no bytes, and counts how often it was told to release memory.
    private final class Channel: SecureChannel {
        private let inner = PlaintextChannel()
        private(set) var releases = 0

        var isEstablished: Bool { inner.isEstablished }
        var provenPeer: PeerID? { nil }
        var wasResumed: Bool { false }
        var heldByteCount: Int { inner.heldByteCount }
        func begin(wire: inout ByteQueue) throws(NighError) { inner.begin(wire: &wire) }
        func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError) {
            inner.receive(bytes, plain: &plain, wire: &wire)
        }
        func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) throws(NighError) {
            inner.seal(&plain, into: &wire)
        }
        func end(wire: inout ByteQueue) { inner.end(wire: &wire) }
        func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes? { nil }
        var datagramProtection: DatagramProtection { .checksum }
        func sendTicket(wire: inout ByteQueue) {}
        func takeTicket() -> ResumptionTicket? { nil }
        func releaseIdleMemory() { releases += 1 }
    }

    /// Returns a pair whose hellos are exchanged, and the channel of its dialling side.
    private static func open() throws -> (channel: Channel, pair: LinkPair) {
        // The link is used only on this thread.
        nonisolated(unsafe) let channel = Channel()
        let pair = LinkPair(dialling: LinkPair.settings(seed: 1, makeChannel: { channel }))
        try pair.deliverAll()
        return (channel, pair)
    }

    @Test func memoryIsReleasedAfterEachPingAndPong() throws {
        let (channel, pair) = try Self.open()
        #expect(channel.releases == 0, "the hellos are traffic")
        try pair.pass(.seconds(5))
        let first = channel.releases
        // Once when the ping has left, and once when its answer has arrived.
        #expect(first >= 2)
        try pair.pass(.seconds(5))
        #expect(channel.releases >= first + 2)
    }

    @Test func trafficKeepsItsMemoryUntilTheLinkIsQuietAgain() throws {
        let (channel, pair) = try Self.open()
        try pair.pass(.seconds(5))
        let resting = channel.releases
        pair.dialling.receive(Frames.frame(.message, [UInt8](repeating: 1, count: 300)), now: pair.now)
        for _ in 0..<10 { pair.dialling.receive(Frames.frame(.message, [1]), now: pair.now) }
        #expect(channel.releases == resting)
        try pair.pass(.seconds(6))
        #expect(channel.releases > resting)
    }

    /// 256 bytes at once still count as keep-alive.
    @Test func smallFramesDoNotCountAsTraffic() throws {
        let (channel, pair) = try Self.open()
        try pair.pass(.seconds(5))
        let before = channel.releases
        let most = Frames.frame(.message, [UInt8](repeating: 1, count: 252))
        pair.dialling.receive(most, now: pair.now)
        pair.dialling.receive(most, now: pair.now)
        #expect(channel.releases == before + 2)
    }
}
