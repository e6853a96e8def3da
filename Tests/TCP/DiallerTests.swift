import NighCore
import NighSystem
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

/// Tests how one of several addresses is dialled.
struct DiallerTests {
    @Test func `A peer has at most 64 addresses to dial`() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let peer = Identity.ephemeral().peerID
        let many = (1...100).map { SocketAddress(.v4(0x0A00_0000 + UInt32($0)), port: 4000) }
        let result: Result<[TransportAddress], NighError> = try waitForReply { reply in
            loop.execute {
                let dialler = TCPDialler(on: loop, interface: "lo", addresses: { _ in many }) { _, _ in }
                dialler.places(behind: TCPDestination.address(of: peer), found: reply)
            }
        }
        #expect(try result.get() == many.prefix(64).map(\.transportAddress))
    }

    @Test func `A peer with one address that answers is reached, wherever that stands`() throws {
        let listener = PlainSocket()
        listener.listen()
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let addresses = [1, listener.port].map { SocketAddress(.v4(0x7F00_0001), port: $0) }
        for order in [addresses, addresses.reversed()] {
            let isReached: Bool? = try waitForReply { reply in
                loop.execute {
                    let dialler = TCPDialler(
                        on: loop, interface: "lo", addresses: { _ in order }, ended: { _, _ in })
                    dialler.probe(Identity.ephemeral().peerID, timeout: .seconds(10)) { accepted in
                        withExtendedLifetime(dialler) { reply(accepted) }
                    }
                }
            }
            #expect(isReached == true)
        }
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func `A probe without descriptors has no result`() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let peer = Identity.ephemeral().peerID
            let addresses = [1, 2].map { SocketAddress(.v4(0x7F00_0000 + $0), port: 1) }
            func probe() throws -> Bool? {
                try waitForReply { (reply: @escaping @Sendable (Bool?) -> Void) in
                    loop.execute {
                        let dialler = TCPDialler(
                            on: loop, interface: "lo", addresses: { _ in addresses }, ended: { _, _ in })
                        dialler.probe(peer, timeout: .seconds(10)) { accepted in
                            withExtendedLifetime(dialler) { reply(accepted) }
                        }
                    }
                }
            }
            let refused = try probe()
            #expect(refused == false)
            // After this turn of the loop, the probe has closed its sockets.
            loop.call {}
            ResourceLimits.limitDescriptors()
            let untried = try probe()
            #expect(untried == nil)
            loop.shutdown()
        }
    }

    /// A loop that ends closes the connection in progress. The race must not continue with the next address.
    @Test func `A race between addresses ends with its loop`() throws {
        let silent = SilentPort()
        let listener = PlainSocket()
        listener.listen()
        let addresses = [silent.port, listener.port].map { SocketAddress(.v4(0x7F00_0001), port: $0) }
        let race = Guarded<ConnectionRace?>(nil)
        let outcomes = Guarded(0)
        let loop = UVEventLoop()
        loop.call {
            let started = ConnectionRace(addresses, by: nil, on: loop) { _ in outcomes.withLock { $0 += 1 } }
            started.start()
            race.withLock { $0 = started }
            // Before the race tries the second address beside the first.
            loop.shutdown()
        }
        let stopper = LoopThread()
        let hasEnded = try waitForReply { (reply: @escaping @Sendable (Bool) -> Void) in
            try? stopper.start {
                loop.shutdown()
                reply(true)
            }
        }
        #expect(hasEnded && outcomes.withLock { $0 } == 0)
        stopper.join()
    }
}
