import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests flow control with two whole sessions.
@Suite struct FlowControlTests {
    /// Both directions of a new conversation accept a whole window at once, whichever side invited.
    @Test(arguments: [true, false])
    func theFirstBurstMayFillTheWindow(inviterSends: Bool) throws {
        let place = Neighbourhood()
        let (first, second) = try place.pair()
        let (sender, receiver) = inviterSends ? (first, second) : (second, first)
        for _ in 0..<200 {
            try sender.session.trySend([UInt8](repeating: 1, count: 1_000), to: receiver.id)
        }
        try place.run(.seconds(1))
        #expect(receiver.messages.count == 200)
        #expect(first.state(of: second.id) == .connected)
        #expect(second.state(of: first.id) == .connected)
    }

    /// A reader that comes late gets everything, on either lane, and the sender is blocked meanwhile.
    @Test(arguments: Lane.allCases)
    func aLateReaderGetsEverything(lane: Lane) throws {
        let place = Neighbourhood()
        let (first, second) = try place.pair(.inbox)
        var sent = 0
        var read = 0
        while sent < 3_000 {
            do {
                try first.session.trySend(
                    [UInt8](repeating: UInt8(sent & 0xFF), count: 1_000), to: second.id, .reliable(lane))
                sent += 1
            } catch {
                try place.run(.seconds(2))
                let waiting = second.statistics.peers[first.id]?.bytesUnread ?? 0
                #expect(waiting <= 300 * 1_000, "more than the window waits to be read")
                while let message = second.session.messages.poll() {
                    #expect(message.bytes.first == UInt8(read & 0xFF))
                    read += 1
                }
                try place.run(.seconds(1))
            }
        }
        for _ in 0..<20 {
            try place.run(.seconds(1))
            while second.session.messages.poll() != nil { read += 1 }
        }
        #expect(read == sent)
    }

    /// A program that polls is told that messages wait, after the event that the peer is connected.
    @Test func waitingMessagesAreAnnounced() throws {
        let place = Neighbourhood()
        let puma = place.join("puma")
        let lynx = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "lynx")),
            identity: .ephemeral(seed: 99), transports: [MemoryTransport(hub: place.hub)], loop: place.loop)
        // All of it happens on the virtual loop, which runs in this thread.
        nonisolated(unsafe) var seen: [String] = []
        lynx.start(
            onEvent: { event in
                switch event {
                case .invited(let invitation): invitation.accept()
                case .connected, .reconnected: seen.append("connected")
                default: break
                }
            },
            onWaitingMessages: { [weak lynx] in
                while let message = lynx?.messages.poll() { seen.append("\(message.bytes.count)") }
            })
        try place.run(.seconds(1))
        puma.session.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        for size in [0, 10, 100_000] {
            try puma.session.trySend([UInt8](repeating: 1, count: size), to: lynx.id)
        }
        try place.run(.seconds(1))
        #expect(seen == ["connected", "0", "10", "100000"])
        lynx.close {}
        try place.run(.seconds(1))
    }

    /// Both sides must count a message in pieces exactly alike. Room that one side forgets never comes back to the
    /// other.
    @Test func piecesNeverExhaustTheWindow() throws {
        let place = Neighbourhood()
        let (first, second) = try place.pair { $0.limits.receiveWindow = 16 << 10 }
        let message = ByteSlice([UInt8](repeating: 7, count: 40_000))
        for _ in 0..<1_600 {
            try first.session.trySend(message, to: second.id)
            try place.loop.runQueued()
        }
        try place.run(.milliseconds(200))
        #expect(second.messages.count == 1_600)
        let counts = try #require(first.statistics.peers[second.id])
        #expect(counts.bytesWaiting == 0)
    }
}
