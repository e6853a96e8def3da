import NighBluetooth
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests the transport on a machine without Bluetooth: it reports that once, refuses requests, and gets in nobody's
/// way. On machines with Bluetooth, the tests ask for an adapter that does not exist.
struct WithoutBluetoothTests {
    private static let address = TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42/3")

    /// Starts a transport on a loop of its own.
    private func transport(knowing addresses: [TransportAddress] = []) -> RecordedTransport {
        let loop = UVEventLoop()
        let options = BluetoothOptions(adapter: "hci60000", knownAddresses: addresses)
        return RecordedTransport(BluetoothTransport(options), on: loop, stopLoop: { loop.shutdown() })
    }

    /// Waits until the transport is down. Returns the reason.
    private func downError(of transport: RecordedTransport) throws -> NighError {
        var reason: NighError?
        let isDown = transport.wait { recorder in
            for case .transportChanged(.down(let error)) in recorder.events { reason = error }
            return reason != nil
        }
        try #require(isDown)
        return try #require(reason)
    }

    @Test func `The transport reports once that it is down, and why`() throws {
        let transport = transport()
        let error = try downError(of: transport)
        transport.call { _ in }
        #expect(transport.recorder.events.count == 1)
        #expect(error.stage == .starting && error.transport == "bluetooth" && error.advice != nil)
        #expect("\(error)".split(separator: "\n").count == 1)
        let diagnosis = transport.call { $0.diagnose() }
        #expect(diagnosis.last?.verdict == .fail)
        #expect(diagnosis.last?.finding == "\(error.cause)" && diagnosis.last?.advice == error.advice)
        #expect(diagnosis.dropLast().allSatisfy { $0.verdict == .pass })
        #expect(Set(diagnosis.map(\.id)).count == diagnosis.count)
    }

    @Test func `A dial fails with the same cause, unless it is cancelled before`() throws {
        let transport = transport()
        let down = try downError(of: transport)
        transport.call {
            for number: UInt64 in 1...2 {
                $0.dial(Self.address, as: DialID(number: number), timeout: .seconds(10))
            }
            $0.cancelDial(DialID(number: 1))
        }
        try #require(transport.wait { !$0.dialFailures.isEmpty })
        let failure = transport.recorder.dialFailures[0]
        #expect(failure.stage == .connecting && failure.peer == "\(Self.address)")
        #expect(failure.cause == down.cause && failure.advice == down.advice)
        transport.shutdown()
        #expect(transport.recorder.log.dropFirst() == ["failed 2: \(failure.cause)"])
    }

    @Test(arguments: ["bluetooth://nobody", "tcp://127.0.0.1:1"])
    func `A dial of an invalid address fails`(_ text: String) throws {
        let transport = transport()
        transport.dial(try #require(TransportAddress(text)))
        try #require(transport.wait { !$0.dialFailures.isEmpty })
        #expect("\(transport.recorder.dialFailures[0])".contains(text))
    }

    /// Requests are kept until there is an adapter. Until then they have no effect and cause no error.
    @Test func `Advertising and browsing wait for an adapter`() throws {
        let known = TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42")
        let transport = transport(knowing: [known])
        transport.call {
            $0.advertise(Samples.advertisement())
            $0.updateAdvertisement(Samples.advertisement(name: "Lynx"))
            $0.browse(Samples.service)
        }
        _ = try downError(of: transport)
        try #require(transport.wait { $0.log.contains("known \(known)") })
        transport.call {
            $0.stopAdvertising()
            $0.stopBrowsing()
            $0.browse("other")
        }
        try #require(transport.wait { $0.events.count == 3 })
        #expect(transport.recorder.log.count { $0 == "known \(known)" } == 2)
    }

    @Test func `Nothing is reported after the shutdown`() {
        let transport = transport()
        transport.call {
            $0.advertise(Samples.advertisement())
            $0.browse(Samples.service)
            $0.dial(Self.address, as: DialID(number: 1), timeout: .seconds(1))
            $0.shutdown()
            $0.shutdown()
        }
        let before = transport.recorder.events.count
        for _ in 0..<2 { transport.call { _ in } }
        #expect(transport.recorder.events.count == before)
    }

    @Test func `A transport that was not started reports that`() {
        let transport = BluetoothTransport()
        #expect(transport.diagnose() == [Diagnosis("bluetooth", .fail, "not started")])
        transport.shutdown()
    }

    @Test func `A loop without sockets is reported`() throws {
        let loop = VirtualEventLoop()
        let transport = RecordedTransport(BluetoothTransport(), on: loop)
        transport.dial(Self.address)
        try loop.run(for: .seconds(1))
        #expect(transport.recorder.log.map { $0.prefix(4) } == ["down", "fail"])
        #expect(transport.recorder.log[0].contains("give the session a UVEventLoop"))
        #expect(transport.recorder.dialFailures[0].advice == "give the session a UVEventLoop")
    }
}
