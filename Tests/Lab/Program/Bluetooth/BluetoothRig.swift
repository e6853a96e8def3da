import NighBluetooth
import NighCore
import NighTestKit
import NighUV
import Synchronization

/// Transports for the conformance suites, in a machine of four adapters: the first transport on hci0, the next on hci1, and so
/// on, since an adapter cannot hear itself.
enum BluetoothRig {
    static let adapterCount = 4

    static func make() throws(Failure) -> TransportRig {
        // The emulated controllers have one state for all authentications that a device is in the middle of: a check that leaves
        // them in the middle of some would spoil the next.
        guard
            Spawning.wait(
                for: try Spawning.spawn(
                    ["adapters-anew"], environment: Spawning.ownEnvironment, descriptors: [])) == .exited(0)
        else { throw Failure("there are no new adapters") }
        let last = try Adapters.address(adapterCount - 1)
        let silent = try Adapters.listenSilently(on: last)
        let made = Mutex(0)
        var rig = TransportRig(
            "bluetooth between four adapters",
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
                    BluetoothOptions(adapter: "hci\(number % adapterCount)", interval: .seconds(1)))
            })
        // All rigs are on one air; nobody of one looks for anybody of another.
        guard let service = ServiceName("t\(UInt32.random(in: .min ... .max))") else {
            throw Failure("a name")
        }
        rig.service = service
        rig.patience = .seconds(40)
        rig.quietTime = .milliseconds(300)
        rig.bulkByteCount = 2 * 1024 * 1024
        rig.pipesAtOnce = 1
        return rig
    }
}
