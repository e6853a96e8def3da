import NighCore
import NighTestKit
import Testing

@testable import NighBroker

/// Both suites over the simulated broker, in virtual time.
private func rig(bytesPerSecond: Int = 100 << 20, longestPacket: Int = 1 << 20) -> TransportRig {
    let loop = VirtualEventLoop()
    let broker = SimulatedBroker(on: loop)
    broker.bytesPerSecond = bytesPerSecond
    broker.limits.longestPacket = longestPacket
    // Somebody who subscribes there and never answers.
    let mute = broker.makeClient()
    mute.connect(after: .milliseconds(1))
    loop.schedule(at: loop.now + .milliseconds(2)) { mute.subscribe(to: "test.1.to.mute.mute.conformance") }
    return TransportRig(
        "broker", on: loop,
        refusedAddress: TransportAddress(scheme: "sim", value: "nobody.nobody.conformance"),
        silentAddress: TransportAddress(scheme: "sim", value: "mute.mute.conformance"),
        makeTransport: { broker.makeTransport() })
}

@Suite struct BrokerConformanceTests {
    @Test(arguments: TransportConformance.checks, [false, true])
    func `a transport over a broker keeps to the contract, also with packets of 4 KiB on a slow line`(
        _ check: ConformanceCheck, isSlow: Bool
    ) {
        let outcome = check.run { isSlow ? rig(bytesPerSecond: 8 << 20, longestPacket: 4 << 10) : rig() }
        #expect(outcome.isPassed, "\(outcome)")
    }

    @Test(arguments: SessionConformance.checks) func `it carries sessions`(_ check: ConformanceCheck) {
        let outcome = check.run { rig() }
        #expect(outcome.isPassed, "\(outcome)")
    }
}
