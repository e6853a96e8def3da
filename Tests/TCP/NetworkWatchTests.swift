import CUV
import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighMDNS
@testable import NighTCP

struct NetworkWatchTests {
    /// `@unchecked Sendable`: the watch is used on its loop; the monitor guards the rest.
    private final class Notes: @unchecked Sendable {
        let monitor = Monitor()
        var watch: NetworkWatch?
        var descriptor: Int32?
        var asked = 0
        /// The interfaces after each change.
        var names: [String] = []
    }

    /// When more changes than the kernel keeps, the socket reports an error once. The watch must go on after that.
    @Test func aFloodOfChangesDoesNotStopTheWatch() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let notes = Notes()
        loop.execute {
            let watch = NetworkWatch(on: loop) {}
            notes.watch = watch
            var size: Int32 = 0
            setsockopt(watch.descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
            // Answers to questions on the same socket arrive as changes do, and at some point there is no room for
            // them.
            while ask(watch.descriptor) {}
            notes.monitor.change { notes.descriptor = watch.descriptor }
        }
        try #require(notes.monitor.wait(within: .seconds(20)) { notes.descriptor != nil })
        try #require(isRead(notes, on: loop), "nobody hears of the error")
        for number in 1...3 {
            loop.execute {
                guard let watch = notes.watch, ask(watch.descriptor) else { return }
                notes.monitor.change { notes.asked += 1 }
            }
            try #require(notes.monitor.wait(within: .seconds(20)) { notes.asked == number })
            #expect(isRead(notes, on: loop), "nobody reads what the kernel says")
        }
        loop.execute { notes.watch?.stop() }
    }

    /// Otherwise a program that is out of descriptors would break all its connections.
    @Test func addressesThatCannotBeReadStayAsTheyWere() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let notes = Notes()
        let address = try #require(SocketAddress(numeric: "10.0.0.1", port: 0))
        func interface(_ name: String) -> [NetworkWatch.InterfaceAddress] {
            [.init(interface: name, index: 2, address: address, isLoopback: false, isUp: true)]
        }
        let answers = [interface("eth0"), nil, nil, interface("wlan0")]
        loop.execute {
            let watch = NetworkWatch(on: loop) {
                defer { notes.asked += 1 }
                return answers[min(notes.asked, answers.count - 1)]
            } changed: {
                notes.monitor.change { notes.names += notes.watch?.addresses.map(\.interface) ?? [] }
            }
            notes.watch = watch
            _ = ask(watch.descriptor)
        }
        #expect(notes.monitor.wait(within: .seconds(20)) { !notes.names.isEmpty })
        #expect(notes.names == ["wlan0"])
        loop.execute { notes.watch?.stop() }
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func noAddressesAreReadWithoutDescriptors() async {
        await #expect(processExitsWith: .success) {
            #expect(NetworkWatch.readAddresses()?.isEmpty == false)
            ResourceLimits.limitDescriptors()
            #expect(NetworkWatch.readAddresses() == nil)
            #expect(NetworkInterface.usable() == nil)
        }
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test func aWatchThatBeginsWithoutDescriptorsHearsOfChangesOnceThereAreSome() async {
        await #expect(processExitsWith: .success) {
            let loop = UVEventLoop()
            let notes = Notes()
            ResourceLimits.limitDescriptors()
            loop.execute {
                let watch = NetworkWatch(on: loop) {
                    notes.monitor.change { notes.names += notes.watch?.addresses.map(\.interface) ?? [] }
                }
                notes.watch = watch
                notes.monitor.change { notes.descriptor = watch.descriptor }
            }
            try #require(notes.monitor.wait(within: .seconds(20)) { notes.descriptor == -1 })
            ResourceLimits.limitDescriptors(leaving: 100)
            try #require(notes.monitor.wait(within: .seconds(20)) { !notes.names.isEmpty })
            loop.execute { notes.monitor.change { notes.descriptor = notes.watch?.descriptor } }
            #expect(notes.monitor.wait(within: .seconds(20)) { notes.descriptor ?? -1 >= 0 })
        }
    }

    /// Returns whether everything in the socket is read within 5 s.
    private func isRead(_ notes: Notes, on loop: UVEventLoop) -> Bool {
        let monitor = Monitor()
        return monitor.wait(within: .seconds(5)) {
            guard let descriptor = notes.descriptor else { return false }
            loop.execute { monitor.change {} }
            return happening(descriptor) == 0
        }
    }
}

/// Asks the kernel for its first interface. Returns false when the socket reports that an answer was lost.
private func ask(_ descriptor: Int32) -> Bool {
    var request = (nlmsghdr(), ifinfomsg())
    request.0.nlmsg_len = UInt32(MemoryLayout.size(ofValue: request))
    request.0.nlmsg_type = UInt16(RTM_GETLINK)
    request.0.nlmsg_flags = UInt16(NLM_F_REQUEST)
    request.1.ifi_index = 1
    let sent = withUnsafeBytes(of: &request) {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
    }
    guard sent > 0 else { return false }
    return happening(descriptor) & POLLERR == 0
}

/// The events of the socket, without clearing its error.
private func happening(_ descriptor: Int32) -> Int32 {
    var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    poll(&state, 1, 0)
    return Int32(state.revents)
}
