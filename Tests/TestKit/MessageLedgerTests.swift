import NighCore
import NighMemory
import NighTestKit
import Synchronization
import Testing

/// Tests that the ledger notices every kind of wrong delivery.
struct MessageLedgerTests {
    /// A ledger with a sender, a reader and a stream between them.
    struct Table {
        var ledger = MessageLedger()
        let reader = MessageLedger.Reader(receiver: 1, run: 1, conversation: 1)
        var stream: Int

        init() { stream = ledger.open(from: 0, run: 1, to: 1) }

        mutating func send(_ length: Int, _ row: MessageLedger.Row = .main) -> [UInt8] {
            let bytes = ledger.nextMessage(in: stream, row: row, length: length)
            ledger.accept(stream, row: row, length: bytes.count)
            return bytes
        }

        mutating func arrives(
            _ bytes: [UInt8], _ row: MessageLedger.Row = .main, at reader: MessageLedger.Reader? = nil
        ) -> Violation.Rule? {
            let reader = reader ?? self.reader
            return bytes.withUnsafeBytes { ledger.recordArrival(of: $0, at: reader, from: 0, row: row) }?.rule
        }
    }

    @Test func `Messages that arrive as sent are accepted`() {
        var table = Table()
        for length in [20, 0, 5, 300, 16, 70_000, 1] {
            let main = table.send(length)
            let bulk = table.send(length, .bulk)
            #expect(table.arrives(bulk, .bulk) == nil)
            #expect(table.arrives(main) == nil)
        }
        #expect(table.ledger.missing(in: table.stream) == 0)
        #expect(table.ledger.received == 14)
    }

    @Test(arguments: [3, 40])
    func `A duplicate is detected`(_ length: Int) {
        var table = Table()
        let first = table.send(20)
        let second = table.send(length)
        #expect(table.arrives(first) == nil)
        #expect(table.arrives(second) == nil)
        #expect(table.arrives(second) == .exactlyOnce)
    }

    @Test func `A duplicate before the next is detected`() {
        var table = Table()
        let first = table.send(20)
        _ = table.send(20)
        #expect(table.arrives(first) == nil)
        #expect(table.arrives(first) == .exactlyOnce)
    }

    @Test(arguments: [3, 40])
    func `A gap is detected`(_ length: Int) {
        var table = Table()
        let first = table.send(20)
        _ = table.send(length + 1)
        let third = table.send(length)
        #expect(table.arrives(first) == nil)
        #expect(table.arrives(third) == .order)
        #expect(table.ledger.missing(in: table.stream) == 2)
    }

    @Test func `A missing beginning is detected`() {
        var table = Table()
        _ = table.send(20)
        let second = table.send(20)
        #expect(table.arrives(second) == .order)
    }

    @Test func `A corrupted byte is detected`() {
        var table = Table()
        let first = table.send(100)
        var second = table.send(100)
        second[99] ^= 1
        #expect(table.arrives(first) == nil)
        #expect(table.arrives(second) == .order)
    }

    @Test func `A stray message is detected`() {
        var table = Table()
        let elsewhere = table.ledger.open(from: 0, run: 1, to: 2)
        let stray = table.ledger.nextMessage(in: elsewhere, row: .main, length: 20)
        table.ledger.accept(elsewhere, row: .main, length: 20)
        #expect(table.arrives(stray) == .order)
        #expect(table.arrives([1, 2, 3]) == .order)
    }

    @Test func `The wrong lane is detected`() {
        var table = Table()
        let message = table.send(20)
        #expect(table.arrives(message, .bulk) == .order)
    }

    @Test func `A message of an earlier conversation is detected`() {
        var table = Table()
        let old = table.send(20)
        let late = table.send(20)
        #expect(table.arrives(old) == nil)
        table.stream = table.ledger.open(from: 0, run: 1, to: 1)
        #expect(table.arrives(table.send(20), at: .init(receiver: 1, run: 1, conversation: 2)) == nil)
        #expect(table.arrives(late) == .exactlyOnce)
    }

    @Test func `A stream in two conversations is detected`() {
        var table = Table()
        let first = table.send(20)
        let second = table.send(20)
        #expect(table.arrives(first) == nil)
        #expect(table.arrives(second, at: .init(receiver: 1, run: 1, conversation: 2)) == .exactlyOnce)
    }

    @Test func `An unreliable message may be lost but not doubled`() {
        var table = Table()
        _ = table.send(20, .unreliable)
        let second = table.send(20, .unreliable)
        #expect(table.arrives(second, .unreliable) == nil)
        #expect(table.arrives(second, .unreliable) == .unreliable)
        #expect(table.ledger.missing(in: table.stream) == 0)
    }
}

struct PeerStateCheckerTests {
    /// The events of a session whose peer is seen, invited, cut off, found again, left and lost.
    private func events() throws -> [SessionEvent] {
        let loop = VirtualEventLoop()
        let hub = MemoryHub()
        let network = FaultyTransport(MemoryTransport(hub: hub))
        let puma = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma")),
            identity: .ephemeral(seed: 1),
            transports: [network], loop: loop)
        let lynx = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Lynx")),
            identity: .ephemeral(seed: 2),
            transports: [MemoryTransport(hub: hub)], loop: loop)
        let log = Mutex<[SessionEvent]>([])
        puma.start(onEvent: { event in log.withLock { $0.append(event) } })
        lynx.start(onEvent: { if case .invited(let invitation) = $0 { invitation.accept() } })
        try loop.run(for: .seconds(1))
        puma.invite(lynx.id) { _ in }
        try loop.run(for: .seconds(1))
        network.control.cut()
        try loop.run(for: .seconds(30))
        lynx.close {}
        try loop.run(for: .seconds(30))
        return log.withLock { $0.filter { $0.stateChange != nil } }
    }

    @Test func `The moves of a session are accepted`() throws {
        var checker = PeerStateChecker()
        let events = try events()
        #expect(
            events.compactMap(\.stateChange?.peer.state) == [
                .available, .connecting, .connected, .reconnecting, .connected, .disconnected, .unavailable,
            ])
        for event in events { #expect(checker.record(event) == nil) }
    }

    @Test func `An event that is missing is detected`() throws {
        let events = try events()
        for missing in events.indices.dropLast() {
            // A conversation may end while there is no link, too.
            if case .reconnected = events[missing] { continue }
            var checker = PeerStateChecker()
            let rest = events[..<missing] + events[(missing + 1)...]
            #expect(rest.contains { checker.record($0)?.rule == .moves }, "without \(events[missing])")
        }
    }

    @Test func `A failure without a cause is detected`() throws {
        var checker = PeerStateChecker()
        let events = try events()
        #expect(checker.record(events[0]) == nil && checker.record(events[1]) == nil)
        let available = try #require(events[0].changedPeer)
        #expect(checker.record(.available(available, nil))?.rule == .moves)
    }
}
