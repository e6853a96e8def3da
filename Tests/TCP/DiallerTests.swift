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

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func aProbeWithoutDescriptorsHasNoResult() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let peer = Identity.ephemeral().peerID
            let addresses = [1, 2].map { SocketAddress(.v4(0x7F00_0000 + $0), port: 1) }
            func probe() throws -> Bool? {
                try Room.result { (report: @escaping @Sendable (Bool?) -> Void) in
                    loop.execute {
                        let dialler = Dialler(
                            on: loop, interface: "lo", addresses: { _ in addresses }, ended: { _, _ in })
                        dialler.probe(peer, timeout: .seconds(10)) { accepted in
                            withExtendedLifetime(dialler) { report(accepted) }
                        }
                    }
                }
            }
            let refused = try probe()
            #expect(refused == false)
            // After this turn of the loop, the probe has closed its sockets.
            _ = try Room.result { report in loop.execute { report(true) } }
            ResourceLimits.limitDescriptors()
            let untried = try probe()
            #expect(untried == nil)
            loop.shutdown()
        }
    }
}
