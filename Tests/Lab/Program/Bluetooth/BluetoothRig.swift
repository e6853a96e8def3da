import NighBluetooth
import NighCore
import NighTestKit
import NighUV

/// Transports for the conformance suites, in a machine with several adapters. Each end of the wire is an adapter,
/// because an adapter cannot hear itself.
enum BluetoothRig {
    /// The number of adapters that scenarios need.
    static let adaptersOfScenario = 2
    /// The least number of adapters for a check. Some checks do more if there are more ends than they need, at most
    /// this many.
    private static let fewestAdapters = 4

    /// Replaces all adapters with `count` new ones that are switched on and discoverable.
    static func renewAdapters(_ count: Int) throws(Failure) {
        let process = try Spawning.spawn(
            ["replace-adapters", "\(count)"], environment: Spawning.ownEnvironment, descriptors: [])
        guard Spawning.wait(for: process) == .exited(0) else { throw Failure("there are no new adapters") }
    }

    /// Creates a rig on new adapters for a check that needs `ends` ends. Adapters that no end uses would cost time,
    /// because every session asks each device that it sees for its services.
    static func make(ends: Int) throws(Failure) -> TransportRig {
        let count = max(ends, fewestAdapters)
        try renewAdapters(count)
        // If a check uses this adapter itself, it does not call these addresses.
        let last = try Adapters.address(count - 1)
        let silent = try Adapters.listenSilently(on: last)
        var rig = TransportRig(
            "bluetooth between \(count) adapters",
            refusedAddress: BluetoothDestination(last, channel: silent.channel == 30 ? 29 : 30)
                .transportAddress,
            silentAddress: BluetoothDestination(last, channel: silent.channel).transportAddress,
            makeLoop: { UVEventLoop() },
            stopLoop: {
                ($0 as? UVEventLoop)?.shutdown()
                silent.close()
            },
            makeEnd: { BluetoothTransport(BluetoothOptions(adapter: "hci\($0)", interval: .seconds(1))) })
        rig.endsAtOnce = count
        // All rigs share the air. With a service of its own, no rig finds transports of another.
        guard let service = ServiceName("t\(UInt32.random(in: .min ... .max))") else {
            throw Failure("a name")
        }
        rig.service = service
        // If both ends close with bytes under way, Linux may keep the channel for 40 s, and refuses it to new
        // connections. A dial has nine tenths of this time.
        rig.timeout = .seconds(50)
        rig.quietTime = .milliseconds(300)
        rig.bulkByteCount = 2 * 1024 * 1024
        rig.pipesAtOnce = 1
        rig.allowsPipeEachWay = true
        return rig
    }
}
