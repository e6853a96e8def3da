import CUV
import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

@testable import NighTCP

struct NetworkWatchTests {
    /// `@unchecked Sendable`: the watch is used on its loop, the rest is guarded by the monitor.
    private final class Notes: @unchecked Sendable {
        let monitor = Monitor()
        var watch: NetworkWatch?
        var descriptor: Int32?
        var asked = 0
    }

    /// Where more happens than the kernel keeps for it, the socket has an error once. That must not be the last it hears.
    @Test func aFloodOfChangesDoesNotMakeItDeaf() throws {
        let loop = UVEventLoop()
        defer { loop.shutdown() }
        let notes = Notes()
        loop.execute {
            let watch = NetworkWatch(on: loop) {}
            notes.watch = watch
            var size: Int32 = 0
            setsockopt(watch.descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
            // Asked of the very socket, the kernel's answers come in as changes do, and at some point find no room.
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

    /// Whether what waits in the socket is read in time.
    private func isRead(_ notes: Notes, on loop: UVEventLoop) -> Bool {
        let monitor = Monitor()
        return monitor.wait(within: .seconds(5)) {
            guard let descriptor = notes.descriptor else { return false }
            loop.execute { monitor.change {} }
            return happening(descriptor) == 0
        }
    }
}

/// Asks the kernel for its first interface; false when the socket reports that an answer was lost.
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

/// What there is to hear, with the error left where it is.
private func happening(_ descriptor: Int32) -> Int32 {
    var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    poll(&state, 1, 0)
    return Int32(state.revents)
}
