import NighTestKit
import Testing

@testable import NighCore

/// Tests how many strangers may wait at a session, how long, and which of them make room for others, in virtual time.
@Suite struct StrangerTests {
    private let door: Door

    /// The other end of a pipe to a session.
    private final class Stranger {
        var end: LinkMachine
        init(_ end: consuming LinkMachine) { self.end = end }
    }

    init() throws { door = try Door() }

    /// A session's machine, and the pipes that strangers open to it.
    private final class Door {
        var machine: SessionMachine
        var now = Moment(nanoseconds: 1_000)
        private static let host = Identity.ephemeral(seed: 1)
        private let context: TLSContext

        init(places: Int = 64) throws {
            var limits = SessionLimits()
            limits.unauthenticatedPipes = places
            let loop = VirtualEventLoop()
            machine = SessionMachine(
                reference: SessionReference(
                    loop: loop, directory: PortDirectory(), portNotifier: PortNotifier(loop: loop) {},
                    reports: SessionReports(readerLimit: 1), unreliableLimit: 0,
                    driverReference: SessionDriver.DriverReference()),
                hello: Self.hello(of: Self.host), limits: limits, timings: SessionTimings(),
                transports: [.init(scheme: "test", priority: 0)], offer: .tls(try TLSContext(Self.host)),
                security: .encrypted, trust: .ephemeral(), identity: Self.host.peerID, seed: 1)
            context = try TLSContext(.ephemeral(seed: 2))
        }

        private static func hello(of identity: Identity) -> Hello {
            var hello = Frames.hello()
            hello.peer = identity.peerID
            return hello
        }

        /// Opens a pipe; returns its link, or nil if the session refuses it.
        func openPipe() -> Link? { machine.pipeOpened(transport: 0, dial: nil, at: nil, now: now) }

        func openPipes(_ count: Int, speaking: Bool = false) -> [Link] {
            let links = (0..<count).compactMap { _ in openPipe() }
            if speaking { for link in links { beginHandshake(on: link) } }
            return links
        }

        /// Opens and breaks pipes.
        func comeAndGo(_ count: Int) {
            for _ in 0..<count {
                guard let link = openPipe() else { continue }
                machine.pipeClosed(link, error: nil, now: now)
            }
        }

        /// A peer that has opened a pipe and proven who it is.
        func provenPeer() throws -> (peer: Stranger, link: Link) {
            let (peer, link) = (honestPeer(), try #require(openPipe()))
            for _ in 0..<3 { exchange(peer, link) }
            try #require(link.machine.provenPeer != nil && peer.end.phase == .open)
            return (peer, link)
        }

        func receive(_ bytes: [UInt8], on link: Link) {
            machine.received(ByteSlice(bytes), on: link, now: now)
            while machine.nextDelivery(from: link, now: now) != nil {}
            machine.finishReceiving(on: link, now: now)
        }

        /// A peer that can do everything a peer must.
        func honestPeer() -> Stranger {
            Stranger(
                LinkMachine(
                    side: .dialling,
                    settings: .init(
                        hello: Self.hello(of: .ephemeral(seed: 2)), timings: SessionTimings().link,
                        offer: .tls(context)), now: now))
        }

        /// Delivers what `peer` and the session have to send to each other, once in each direction.
        func exchange(_ peer: Stranger, _ link: Link) {
            var bytes = ByteQueue()
            peer.end.gather(into: &bytes, budget: 1 << 20)
            receive(bytes.bytes, on: link)
            bytes.removeAll()
            link.machine.gather(into: &bytes, budget: 1 << 20)
            peer.end.receive(ByteSlice(bytes.bytes), now: now)
            while peer.end.next(now: now) != nil {}
        }

        /// Sends the first flight of a handshake that never continues.
        func beginHandshake(on link: Link) {
            var bytes = ByteQueue()
            honestPeer().end.gather(into: &bytes, budget: 1 << 20)
            receive(bytes.bytes, on: link)
        }

        func pass(_ duration: Duration) {
            let end = now + Moment.Span(duration)
            while machine.deadline <= end {
                now = max(now, machine.deadline)
                machine.timeArrived(now: now)
            }
            now = end
        }

        var refused: Int { machine.statistics.pipesRefused }
    }

    @Test func `Short-lived pipes leave nothing behind`() throws {
        for _ in 0..<10_000 {
            door.comeAndGo(1)
            while door.machine.nextDirective() != nil {}
            while door.machine.nextDirtyLink() != nil {}
        }
        #expect(door.machine.wakeupCount <= 512)
        // A stranger who is still there is checked when the time has come.
        let link = try #require(door.openPipe())
        door.now = door.now + .seconds(11)
        door.machine.timeArrived(now: door.now)
        #expect(link.purpose == .finished)
    }

    @Test func `A call by address is answered in time while pipes come and go`() throws {
        let token = CallToken(number: 1)
        door.machine.call(
            TransportAddress(scheme: "test", value: "nowhere"), context: [], timeout: .seconds(5),
            token: token, now: door.now)
        door.comeAndGo(1_000)
        door.now = door.now + .seconds(5)
        door.machine.timeArrived(now: door.now)
        var answers: [NighError.Cause] = []
        while let directive = door.machine.nextDirective() {
            if case .finish(token, .failure(let error)) = directive { answers.append(error.cause) }
        }
        #expect(answers == [.timedOut])
    }

    @Test func `A lost conversation ends in time while pipes come and go`() throws {
        let network = SimulatedNetwork()
        let (puma, lynx) = try network.connectedPair()
        puma.faults.block()
        puma.faults.cut()
        try network.run(for: .seconds(1))
        #expect(puma.machine.peers[lynx.id]?.conversation != nil)
        for _ in 0..<1_000 {
            let link = puma.machine.pipeOpened(transport: 0, dial: nil, at: nil, now: network.loop.now)
            puma.machine.pipeClosed(try #require(link), error: nil, now: network.loop.now)
        }
        while puma.machine.nextDirective() != nil {}
        while puma.machine.nextDirtyLink() != nil {}
        // A second of it is over.
        try network.run(for: puma.session.configuration.timings.grace)
        #expect(puma.machine.peers[lynx.id]?.conversation == nil)
    }

    @Test func `A pending invitation occupies its pipe`() throws {
        let network = SimulatedNetwork()
        let lynx = network.join("Lynx", accepting: false) { $0.limits.unauthenticatedPipes = 1 }
        let (puma, wolf) = try network.meet("Puma", "Wolf")
        for other in [puma, wolf] { try network.invite(lynx, from: other) }
        #expect(lynx.invitations.count == 1 && lynx.statistics.pipesRefused == 1)
        lynx.invitations[0].decline()
        #expect(lynx.session.inspection.strangers <= 1)
    }

    @Test func `The oldest silent link is closed to make room`() throws {
        let silent = door.openPipes(64)
        #expect(silent.count == 64 && door.refused == 0)
        let next = try #require(door.openPipe())
        #expect(door.machine.strangerCount == 64 && door.refused == 1)
        #expect(silent[0].purpose == .finished && silent[1].purpose == .unsettled)
        #expect(next.purpose == .unsettled)
    }

    @Test func `Silent links do not displace links that have begun`() throws {
        let speaking = door.openPipes(32, speaking: true)
        for _ in 0..<1_000 { #expect(door.openPipe() != nil) }
        #expect(speaking.allSatisfy { $0.purpose == .unsettled })
        #expect(door.machine.strangerCount == 64 && door.refused == 1_000 - 32)
    }

    @Test func `Handshakes that never end do not displace new links`() throws {
        let speaking = door.openPipes(64, speaking: true)
        let fresh = door.openPipes(32)
        #expect(fresh.count == 32 && fresh.allSatisfy { $0.purpose == .unsettled })
        #expect(speaking.prefix(32).allSatisfy { $0.purpose == .finished })
        #expect(speaking.dropFirst(32).allSatisfy { $0.purpose == .unsettled })
    }

    @Test func `An idle verified peer is closed to make room and gets the reason`() throws {
        let door = try Door(places: 3)
        let (peer, proven) = try door.provenPeer()
        for _ in 0..<3 { #expect(door.openPipes(1, speaking: true).count == 1) }
        #expect(proven.purpose == .finished)
        door.exchange(peer, proven)
        #expect(peer.end.end?.code == .tooManyLinks)
    }

    /// A stranger opens 1,000 connections per second and sends nothing, or begins handshakes, or does either at random.
    /// The round trip to the honest peer takes 20 ms.
    @Test(arguments: [0.0, 0.5, 1.0])
    func `An honest peer connects during a flood`(ofHandshakes share: Double) throws {
        var random = SeededGenerator(seed: 1)
        func flood() {
            for _ in 0..<20 {
                door.pass(.milliseconds(1))
                guard let link = door.openPipe() else { continue }
                if Double.random(in: 0..<1, using: &random) < share { door.beginHandshake(on: link) }
            }
        }
        for _ in 0..<10 { flood() }
        #expect(door.machine.strangerCount == 64)
        let link = try #require(door.openPipe())
        let peer = door.honestPeer()
        // Its first bytes arrive after half a round trip, its proof after another whole one.
        for _ in 0..<10 {
            door.pass(.milliseconds(1))
            if let link = door.openPipe(), share > 0 { door.beginHandshake(on: link) }
        }
        door.exchange(peer, link)
        flood()
        door.exchange(peer, link)
        #expect(link.machine.phase == .open && link.purpose == .unsettled)
        #expect(door.machine.strangerCount == 64)
    }

    @Test(arguments: [0, 1, 7, 8, 9, 100, 16_384])
    func `An incomplete handshake ends after ten seconds`(byteCount: Int) throws {
        var flight = ByteQueue()
        door.honestPeer().end.gather(into: &flight, budget: 1 << 20)
        // A TLS hello in a record of the greatest size that never becomes complete.
        var bytes = Array(flight.bytes.prefix(8)) + [22, 3, 1, 0x40, 0, 1, 0, 0x3F, 0xF0]
        bytes += [UInt8](repeating: 0, count: 16_384)
        let links = door.openPipes(64)
        for link in links { door.receive(Array(bytes.prefix(byteCount)), on: link) }
        door.pass(.milliseconds(9_999))
        #expect(door.machine.links.count == 64)
        // Includes what waits to be written to them.
        #expect(links.allSatisfy { $0.machine.heldByteCount <= TLSContext.handshakeLimit + 100 })
        for link in links { door.receive([], on: link) }
        door.pass(.milliseconds(1))
        #expect(door.machine.links.isEmpty)
        #expect(door.machine.statisticsSnapshot().linksEnded == ["timed out": 64])
    }

    @Test func `A link with only a hello has twice the time`() throws {
        let (peer, link) = try door.provenPeer()
        door.pass(.milliseconds(14_000))
        door.exchange(peer, link)
        door.pass(.milliseconds(5_999))
        #expect(door.machine.links.count == 1)
        door.pass(.milliseconds(1))
        #expect(door.machine.links.isEmpty)
    }
}
