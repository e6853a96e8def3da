import NighBluetooth
import NighCore
import NighMemory
import NighTestKit
import NighUV
import Testing

/// Tests the transport on a machine without Bluetooth: it reports that once, refuses requests, and gets in nobody's
/// way. On machines with Bluetooth, the tests ask for an adapter that does not exist.
struct WithoutBluetoothTests {
    @Test func theTransportReportsOnceThatItIsDown() throws {
        let user = TransportUser()
        try #require(user.wait { !$0.conditions.isEmpty })
        user.call { _ in }
        let error = try #require(user.downError)
        #expect(user.conditions.count == 1)
        #expect(error.stage == .starting)
        #expect(error.transport == "bluetooth")
        #expect(error.advice != nil)
        #expect("\(error)".split(separator: "\n").count == 1)
        let diagnosis = user.call { $0.transport.diagnose() }
        #expect(diagnosis.last?.verdict == .fail)
        #expect(diagnosis.last?.finding == "\(error.cause)")
        #expect(diagnosis.last?.advice == error.advice)
        #expect(diagnosis.dropLast().allSatisfy { $0.verdict == .pass })
        #expect(Set(diagnosis.map(\.id)).count == diagnosis.count)
        user.shutdown()
    }

    @Test func aDialFailsWithTheReportedCause() throws {
        let user = TransportUser()
        user.dial("bluetooth://00:AA:01:00:00:42/3")
        try #require(user.wait { !$0.failures.isEmpty && !$0.conditions.isEmpty })
        let (failure, down) = (user.failures[0], try #require(user.downError))
        #expect(failure.stage == .connecting)
        #expect(failure.peer == "bluetooth://00:AA:01:00:00:42/3")
        #expect(failure.cause == down.cause)
        #expect(failure.advice == down.advice)
        user.shutdown()
        #expect(user.failures.count == 1)
    }

    @Test(arguments: ["bluetooth://nobody", "tcp://127.0.0.1:1"])
    func anInvalidAddressFailsTheDial(_ address: String) throws {
        let user = TransportUser()
        user.dial(address)
        try #require(user.wait { !$0.failures.isEmpty })
        #expect("\(user.failures[0])".contains(address))
        user.shutdown()
    }

    @Test func aCancelledDialIsNotReported() throws {
        let user = TransportUser()
        try #require(user.wait { !$0.conditions.isEmpty })
        user.call {
            let address = TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42/3")
            $0.transport.dial(address, as: DialID(number: 1), timeout: .seconds(1))
            $0.transport.cancelDial(DialID(number: 1))
        }
        user.call { _ in }
        #expect(user.failures.isEmpty)
        user.shutdown()
    }

    /// Requests are kept until there is an adapter. Until then they have no effect and cause no error.
    @Test func advertisingAndBrowsingWaitForAnAdapter() throws {
        let known = TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42")
        let user = TransportUser(knownAddresses: [known])
        user.call {
            $0.transport.advertise(Samples.advertisement())
            $0.transport.updateAdvertisement(Samples.advertisement(name: "Lynx"))
            $0.transport.browse(Samples.service)
        }
        try #require(user.wait { !$0.known.isEmpty && !$0.conditions.isEmpty })
        user.call {
            $0.transport.stopAdvertising()
            $0.transport.stopBrowsing()
            $0.transport.browse("other")
        }
        try #require(user.wait { $0.known.count == 2 })
        #expect(user.known == [known, known])
        #expect(user.other == 0)
        user.shutdown()
    }

    @Test func nothingIsReportedAfterShutdown() {
        let user = TransportUser()
        user.call {
            let address = TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42/3")
            $0.transport.advertise(Samples.advertisement())
            $0.transport.browse(Samples.service)
            $0.transport.dial(address, as: DialID(number: 1), timeout: .seconds(1))
            $0.transport.shutdown()
            $0.transport.shutdown()
        }
        let before = user.eventCount
        user.call { _ in }
        user.call { _ in }
        #expect(user.eventCount == before)
        user.shutdown()
    }

    @Test func aTransportThatWasNotStartedReportsThat() {
        let transport = BluetoothTransport()
        #expect(transport.diagnose() == [Diagnosis("bluetooth", .fail, "not started")])
        transport.shutdown()
    }

    @Test func aLoopWithoutSocketsIsReported() async throws {
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let session = Session(
            SessionConfiguration(service: "tests", name: DisplayName(fitting: "Puma")),
            identity: .ephemeral(), transports: [BluetoothTransport()], loop: loop)
        session.start()
        for await event in session.events {
            guard case .transportDown(_, let error) = event else { continue }
            #expect("\(error)".contains("give the session a UVEventLoop"))
            break
        }
        let error = await #expect(throws: NighError.self) {
            try await session.invite(at: TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42/1"))
        }
        #expect("\(try #require(error))".contains("UVEventLoop"))
        await session.close()
    }
}

/// A transport on a loop of its own, and what it reported.
///
/// `@unchecked Sendable`: the monitor guards what was reported.
private final class TransportUser: TransportEvents, @unchecked Sendable {
    let loop = UVEventLoop()
    let transport: BluetoothTransport
    let monitor = Monitor()
    private(set) var conditions: [TransportCondition] = []
    private(set) var failures: [NighError] = []
    private(set) var known: [TransportAddress] = []
    /// The number of events that must not come without an adapter.
    private(set) var other = 0

    init(knownAddresses: [TransportAddress] = []) {
        transport = BluetoothTransport(BluetoothOptions(adapter: "hci60000", knownAddresses: knownAddresses))
        call { $0.transport.start(on: $0.loop, events: $0) }
    }

    deinit { loop.shutdown() }

    @discardableResult
    func call<Result: Sendable>(_ body: @escaping @Sendable (TransportUser) -> Result) -> Result {
        loop.call(monitor) { body(self) }
    }

    func wait(_ isTrue: @escaping (TransportUser) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    func dial(_ address: String) {
        call {
            guard let address = TransportAddress(address) else { return }
            $0.transport.dial(address, as: DialID(number: 1), timeout: .seconds(10))
        }
    }

    func shutdown() {
        call { $0.transport.shutdown() }
        loop.shutdown()
    }

    var eventCount: Int { monitor.read { conditions.count + failures.count + known.count + other } }

    var downError: NighError? {
        monitor.read { if case .down(let error)? = conditions.first { error } else { nil } }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { monitor.change { other += 1 } }
    func routeChanged(_ sighting: Sighting, by transport: any Transport) { monitor.change { other += 1 } }
    func routeLost(_ address: TransportAddress, by transport: any Transport) { monitor.change { other += 1 } }
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        monitor.change { known.append(address) }
    }
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        monitor.change { other += 1 }
    }
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        monitor.change { failures.append(error) }
    }
    func advertised(as name: DisplayName, by transport: any Transport) { monitor.change { other += 1 } }
    func advertisingFailed(_ error: NighError, by transport: any Transport) { monitor.change { other += 1 } }
    func browsingFailed(_ error: NighError, by transport: any Transport) { monitor.change { other += 1 } }
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        monitor.change { other += 1 }
    }
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        monitor.change { conditions.append(condition) }
    }
}
