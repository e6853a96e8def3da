import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests what goes wrong only when sessions meet more than once, or after a while.
@Suite struct LongLivedTests {
    private let network = SimulatedNetwork()

    /// The guest does not browse, and forgets the host each time. A host with the role `peer` remembers the guest.
    @Test(arguments: [SessionRole.server, .peer])
    func `A peer whose address is given by hand can be invited again and again`(role: SessionRole) throws {
        let host = network.join("Host", role: role)
        let guest = network.join("Guest", role: .server)
        try network.run(for: .seconds(1))
        for _ in 0..<5 {
            try network.invite(at: host.address, from: guest)
            try network.disconnect(guest, from: host)
            #expect(guest.machine.peers.isEmpty)
            #expect(host.state(of: guest.id) == (role == .peer ? .available : .unavailable))
        }
        #expect(
            guest.states(of: host.id).prefix(6)
                == [.available, .connecting, .connected, .disconnected, .unavailable, .available])
        #expect(guest.outcomes == [Result<PeerID, NighError>](repeating: .success(host.id), count: 5))
    }

    @Test func `Reconnecting gives a peer no extra room in the inbox`() throws {
        let reader = network.join("Reader", reading: .inbox)
        let writer = network.join("Writer") { $0.timings.linger = .milliseconds(500) }
        try network.run(for: .seconds(1))
        let window = SessionLimits().receiveWindow
        for _ in 0..<6 {
            try network.invite(reader, from: writer)
            while (try? writer.session.trySend([UInt8](repeating: 1, count: 8_000), to: reader.id)) != nil {}
            try network.run(for: .seconds(1))
            writer.session.disconnect(reader.id)
            try network.run(for: .seconds(2))
        }
        let unread = reader.readAll().reduce(0) { $0 + $1.payload.count }
        #expect(unread > window / 2 && unread <= window + 16_384)

        // Once everything is read, there is room again.
        try network.run(for: .seconds(1))
        try network.invite(reader, from: writer)
        try writer.session.trySend(Array("again".utf8), to: reader.id)
        try network.run(for: .seconds(1))
        #expect(reader.session.messages.poll()?.bytes == Array("again".utf8))
    }

    @Test func `Room made during the hellos of the next link is reported`() throws {
        let plan = try FaultPlan(parsing: "delay=100ms")
        let puma = network.join("Puma", plan: plan, reading: .inbox) { $0.limits.receiveWindow = 8_192 }
        let lynx = network.join("Lynx", plan: plan)
        try network.run(for: .seconds(1))
        puma.invite(lynx)
        try network.run(for: .seconds(5))
        for _ in 0..<60 { try lynx.session.trySend([UInt8](repeating: 1, count: 1_000), to: puma.id) }
        try network.run(for: .seconds(2))
        puma.faults.cut()
        // The dialling side has reported its room, and waits for the answer.
        try network.run(for: .milliseconds(700))
        #expect(puma.state(of: lynx.id) == .reconnecting)
        var count = puma.readAll().count
        #expect(count > 5)
        for _ in 0..<30 {
            try network.run(for: .milliseconds(500))
            count += puma.readAll().count
        }
        #expect(count == 60)
    }

    /// An occasional transfer must not keep its memory forever.
    @Test func `The memory of a large message is released when no other follows`() throws {
        let (puma, lynx) = try network.connectedPair()
        try puma.session.trySend([UInt8](repeating: 1, count: 300_000), to: lynx.id)
        try network.run(for: .seconds(1))
        let chunks = [puma, lynx].map { $0.machine.largeChunks }
        #expect(chunks.map(\.extent.count) == [1, 1])
        try network.run(for: .seconds(10))
        #expect(chunks.map(\.extent.count) == [0, 0])
    }

    private struct Weak {
        weak var pipe: WatchedPipe?
    }

    /// A closed pipe is kept only until it has sent its last bytes, because a session that closes waits for them.
    @Test func `A closed pipe is released once it has sent its last bytes`() throws {
        nonisolated(unsafe) var pipes: [Weak] = []  // the loop is virtual: one thread
        let puma = network.join(
            "Puma", plan: try FaultPlan(parsing: "delay=50ms"),
            through: WatchedPipe.watching { pipes.append(Weak(pipe: $0)) })
        let lynx = network.join("Lynx")
        try network.run(for: .seconds(1))
        for _ in 0..<5 {
            try network.invite(lynx, from: puma)
            try network.disconnect(puma, from: lynx)
        }
        #expect(pipes.count == 5 && pipes.count { $0.pipe != nil } <= 1)
    }

    @Test func `Fifty kills and restarts leave one peer and no ghost`() throws {
        let host = network.join("Host", role: .server)
        let seed: UInt64 = 4_711
        let id = Identity.ephemeral(seed: seed).peerID
        for life in 0..<50 {
            let guest = network.join("Guest", number: seed)
            try network.run(for: .seconds(1))
            try network.invite(host, from: guest)
            try #require(guest.outcomes == [.success(host.id)], "life \(life)")
            try guest.session.trySend(Array("life \(life)".utf8), to: host.id)
            try network.run(for: .milliseconds(100))
            try #require(host.texts.last == "life \(life)" && host.session.connectedPeerIDs == [id])
            try #require(host.machine.links.count == 1, "life \(life)")
            // Killed: no goodbye leaves any more, whatever the process still tries.
            guest.faults.block()
            if life % 2 == 0 { guest.faults.cut() }
            guest.session.close {}
            if life % 3 == 0 { try network.run(for: .seconds(20)) }
        }
        try network.run(for: .seconds(60))
        #expect(host.machine.peers.isEmpty && host.machine.links.isEmpty)
        #expect(host.texts == (0..<50).map { "life \($0)" })
    }
}
