import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests the addresses that are dialled for a peer that was found at several addresses.
struct DiallerTests {
    @Test func aPeerHasAtMost64AddressesToDial() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let peer = Identity.ephemeral().peerID
        let many = (1...100).map { SocketAddress(.v4(0x0A00_0000 + UInt32($0)), port: 4000) }
        let result: Result<[TransportAddress], NighError> = try Room.result { result in
            loop.execute {
                let dialler = Dialler(on: loop, interface: "lo", addresses: { _ in many }) { _, _ in }
                dialler.places(behind: TCPDestination.address(of: peer), found: result)
            }
        }
        #expect(try result.get() == many.prefix(64).map(\.transportAddress))
    }
}
