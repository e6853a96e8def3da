import NighTestKit
import Testing

@testable import NighCore

/// Tests a peer that breaks the protocol: both sides report it, and the peer is told what it did.
@Suite struct ViolationTests {
    private let place = Neighbourhood()

    @Test func aPeerThatBreaksTheProtocolGetsTheReason() throws {
        let (first, second) = try place.pair()
        let driver = first.session.driver
        let link = try #require(driver.machine.peers[second.id]?.link)
        link.machine.control.write(.piece, payload: [1, 2, 3])
        driver.machine.markDirty(link)
        driver.flushSoon()
        try place.run(.seconds(1))
        #expect(second.lastCause(of: first.id)?.cause == .protocolViolation("a piece without a message"))
        #expect(
            first.lastCause(of: second.id)?.cause
                == .protocolViolation("reported by the other side: a piece without a message"))
    }
}
