import NighBluetooth
import NighCore
import NighTestKit
import NighUV
import Synchronization

/// Transports for the conformance suites, in a machine with several adapters. The first transport uses hci0, the next
/// one hci1, and so on, because an adapter cannot hear itself.
enum BluetoothRig {

    /// Replaces all adapters with new ones that are switched on and discoverable.
    static func renewAdapters() throws(Failure) {
        let process = try Spawning.spawn(
            ["replace-adapters"], environment: Spawning.ownEnvironment, descriptors: [])
        guard Spawning.wait(for: process) == .exited(0) else { throw Failure("there are no new adapters") }
    }

    /// Creates a rig on new adapters.
    static func make() throws(Failure) -> TransportRig {
        try renewAdapters()
        let count = Adapters.count
        let last = try Adapters.address(count - 1)
        let silent = try Adapters.listenSilently(on: last)
        let made = Mutex(0)
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
            makeTransport: {
                let number = made.withLock { made in
                    defer { made += 1 }
                    return made
                }
                return BluetoothTransport(
                    BluetoothOptions(adapter: "hci\(number % count)", interval: .seconds(1)))
            })
        // All rigs share the air. With a service of its own, no rig finds transports of another.
        guard let service = ServiceName("t\(UInt32.random(in: .min ... .max))") else {
            throw Failure("a name")
        }
        rig.service = service
        rig.timeout = .seconds(40)
        rig.quietTime = .milliseconds(300)
        rig.bulkByteCount = 2 * 1024 * 1024
        rig.pipesAtOnce = 1
        rig.allowsPipeEachWay = true
        return rig
    }
}
