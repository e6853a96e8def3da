import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

/// Tests what a `RetryingListener` reports when listening fails and succeeds in turn, in virtual time.
@Suite struct RetryingListenerTests {
    /// A transport that listens, and everything that its session is told.
    private final class House {
        let loop = VirtualEventLoop()
        private let recorder = TransportRecorder()
        /// The error with which the next attempt fails, or nil.
        var error: NighError?
        var attempts = 0
        var closed: [Int] = []
        private let transport = MemoryTransport()
        private(set) var listening: RetryingListener<Int>?

        init() {
            listening = RetryingListener(of: transport, events: recorder, on: loop) {
                [unowned self] () throws(NighError) in
                attempts += 1
                if let error { throw error }
                return attempts
            } addresses: {
                [TransportAddress(scheme: "memory", value: "\($0)")]
            } close: { [unowned self] in
                closed.append($0)
            }
        }

        func release() { listening = nil }

        var reports: [String] {
            recorder.events.map { event in
                switch event {
                case .advertisingFailed(let error): "\(error.cause)"
                case .listeningChanged(let addresses): addresses.first?.value ?? "nowhere"
                default: "\(event)"
                }
            }
        }
    }

    private static let taken = NighError(.advertising, .unavailable("taken"))
    private static let gone = NighError(.advertising, .unavailable("gone"))

    @Test func `A failure to listen is reported once for each reason, and listening is retried every 2 s`()
        throws
    {
        let house = House()
        house.error = Self.taken
        house.listening?.begin()
        #expect(house.reports == [])
        try house.loop.run(for: .seconds(5))
        #expect(house.attempts == 3)
        #expect(house.reports == ["taken"])
        house.error = Self.gone
        try house.loop.run(for: .seconds(2))
        house.error = nil
        try house.loop.run(for: .seconds(20))
        #expect(house.reports == ["taken", "gone", "5"])
        #expect(house.listening?.error == nil)
    }

    @Test func `A listener that fails is closed, and replaced after the pause`() throws {
        let house = House()
        house.listening?.begin()
        house.listening?.begin()
        try house.loop.run(for: .zero)
        house.listening?.fail(Self.gone)
        #expect(house.closed == [1])
        try house.loop.run(for: .seconds(1))
        #expect(Set(house.reports) == ["1", "gone", "nowhere"])
        try house.loop.run(for: .seconds(1))
        #expect(house.reports.last == "2")
        house.listening?.fail(Self.gone)
        try house.loop.run(for: .zero)
        #expect(house.reports.count { $0 == "gone" } == 2)
    }

    @Test func `After a stop there is no retry, and the stop is reported without a reason`() throws {
        let house = House()
        house.listening?.begin()
        try house.loop.run(for: .zero)
        house.listening?.fail(Self.gone)
        house.listening?.stop()
        try house.loop.run(for: .seconds(10))
        #expect(house.reports == ["1", "nowhere"])
        #expect(house.attempts == 1)
    }

    @Test func `After its owner releases it, it reports nothing`() throws {
        let house = House()
        house.listening?.begin()
        try house.loop.run(for: .zero)
        house.listening?.stop()
        house.release()
        try house.loop.run(for: .seconds(10))
        #expect(house.reports == ["1"])
    }
}
