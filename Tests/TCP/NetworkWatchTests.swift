import CUV
import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS
@testable import NighTCP

struct NetworkWatchTests {
    /// A watch on a loop of its own.
    ///
    /// `@unchecked Sendable`: the watch is used on its loop; the monitor guards the names.
    private final class Ground: @unchecked Sendable {
        let loop: UVEventLoop
        private let monitor = Monitor()
        private(set) var watch: NetworkWatch!
        /// The interfaces after each change.
        private(set) var names: [String] = []

        init(
            on loop: UVEventLoop = UVEventLoop(),
            read: @escaping @Sendable () -> [NetworkWatch.InterfaceAddress]? = NetworkWatch.readAddresses
        ) {
            self.loop = loop
            loop.call { [self] in
                watch = NetworkWatch(on: loop, read: read) { [unowned self] in
                    monitor.change { names += watch.addresses.map(\.interface) }
                }
            }
        }

        deinit {
            loop.call { [watch] in watch?.stop() }
            loop.shutdown()
        }

        var descriptor: Int32 { loop.call { [self] in watch.descriptor } }

        /// Asks the kernel for its first interface, whose answer comes as a change does. Returns false when the socket
        /// reports that an answer was lost.
        static func ask(_ descriptor: Int32) -> Bool {
            var request = (nlmsghdr(), ifinfomsg())
            request.0.nlmsg_len = UInt32(MemoryLayout.size(ofValue: request))
            request.0.nlmsg_type = UInt16(RTM_GETLINK)
            request.0.nlmsg_flags = UInt16(NLM_F_REQUEST)
            request.1.ifi_index = 1
            let sent = withUnsafeBytes(of: &request) {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            return sent > 0 && events(of: descriptor) & POLLERR == 0
        }

        /// The events of the socket. Asking for them does not clear its error.
        static func events(of descriptor: Int32) -> Int32 {
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            poll(&state, 1, 0)
            return Int32(state.revents)
        }

        func wait(until isTrue: () -> Bool) -> Bool { monitor.wait(within: .seconds(20), until: isTrue) }
    }

    /// When there are more changes than the kernel keeps, the socket reports an error once.
    @Test func `A flood of changes does not stop the watch`() throws {
        let ground = Ground()
        let descriptor = ground.descriptor
        func isRead() -> Bool { ground.wait { Ground.events(of: descriptor) == 0 } }
        ground.loop.call {
            var size: Int32 = 0
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
            while Ground.ask(descriptor) {}
        }
        try #require(isRead(), "the error is not read")
        for _ in 1...3 {
            #expect(ground.loop.call { Ground.ask(descriptor) })
            #expect(isRead(), "a change is not read")
        }
    }

    /// Otherwise a program that is out of descriptors would break all its connections.
    @Test func `Addresses that cannot be read stay as they were`() throws {
        let address = try #require(SocketAddress(numeric: "10.0.0.1", port: 0))
        let answers: [String?] = ["eth0", nil, nil, "wlan0"]
        let count = Guarded(0)
        let ground = Ground {
            let answer = answers[count.withLock { min($0, answers.count - 1) }]
            count.withLock { $0 += 1 }
            return answer.map {
                [.init(interface: $0, index: 2, address: address, isLoopback: false, isUp: true)]
            }
        }
        let descriptor = ground.descriptor
        #expect(Ground.ask(descriptor))
        #expect(ground.wait { !ground.names.isEmpty })
        #expect(ground.names == ["wlan0"])
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func `A watch that begins without descriptors reports changes once there are some`() async {
        await #expect(processExitsWith: .success) {
            #expect(NetworkWatch.readAddresses()?.isEmpty == false)
            let loop = UVEventLoop()
            ResourceLimits.limitDescriptors()
            #expect(NetworkWatch.readAddresses() == nil && NetworkInterface.usable() == nil)
            let ground = Ground(on: loop)
            #expect(ground.descriptor == -1)
            ResourceLimits.limitDescriptors(leaving: 100)
            #expect(ground.wait { !ground.names.isEmpty })
            #expect(ground.descriptor >= 0)
        }
    }
}
