import NighBluetooth
import NighCore
import NighTestKit
import NighUV
import Synchronization

/// Transports for the conformance suites, in a machine of four adapters: the first transport on hci0, the next on hci1, and so
/// on, since an adapter cannot hear itself.
enum BluetoothRig {
    static let adapterCount = 4

    /// Where nobody listens, and where somebody does who answers nobody. Made once: there are few channels.
    private static let places = Result {
        () throws(Failure) -> (refused: TransportAddress, silent: TransportAddress) in
        let last = try Adapters.address(adapterCount - 1)
        let silent = try Adapters.listenSilently(on: last)
        // The kernel gives out channels from below.
        return (
            BluetoothDestination(try Adapters.address(1), channel: 30).transportAddress,
            BluetoothDestination(last, channel: silent).transportAddress
        )
    }

    static func make() throws(Failure) -> TransportRig {
        let places = try places.get()
        let made = Mutex(0)
        var rig = TransportRig(
            "bluetooth between four adapters",
            refusedAddress: places.refused, silentAddress: places.silent,
            makeLoop: { UVEventLoop() }, stopLoop: { ($0 as? UVEventLoop)?.shutdown() },
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
