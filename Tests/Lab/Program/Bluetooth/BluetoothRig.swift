import CBluetooth
import Glibc
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
    static func renewAdapters(_ count: Int) throws {
        let process = try Spawning.spawn(
            ["replace-adapters", "\(count)"], environment: Spawning.ownEnvironment, descriptors: [])
        guard Spawning.wait(for: process) == .exited(0) else { throw Failure("there are no new adapters") }
    }

    /// Creates a rig on new adapters for a check that needs `ends` ends. Adapters that no end uses would cost time,
    /// because every session asks each device that it sees for its services.
    static func make(ends: Int) throws -> TransportRig {
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

/// The Bluetooth adapters of the machine that this runs on, as its kernel reports them.
enum Adapters {
    /// Returns the address of hci0, hci1 and so on.
    static func address(_ number: Int) throws -> BluetoothAddress {
        let descriptor = try socket(SOCK_RAW, BTPROTO_HCI)
        defer { close(descriptor) }
        var info = hci_dev_info()
        info.dev_id = UInt16(number)
        guard bluetooth_get_device_info(descriptor, &info) == 0 else {
            throw Failure.system("there is no hci\(number)")
        }
        return BluetoothAddress(info.bdaddr)
    }

    /// Listens on `adapter` and never accepts a connection, so that a dial waits. Ends when the result is released or
    /// closed.
    static func listenSilently(on adapter: BluetoothAddress) throws -> SilentListener {
        let descriptor = try socket(SOCK_STREAM, BTPROTO_RFCOMM)
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: adapter.raw, rc_channel: 0)
        var isDeferred: Int32 = 1
        var length = socklen_t(MemoryLayout<sockaddr_rc>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0
                    && setsockopt(
                        descriptor, SOL_BLUETOOTH, BT_DEFER_SETUP, &isDeferred,
                        socklen_t(MemoryLayout<Int32>.size)) == 0
                    && listen(descriptor, 5) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard status else { throw Failure.system("a silent listener") }
        return SilentListener(descriptor, channel: address.rc_channel)
    }

    private static func socket(_ type: __socket_type, _ number: Int32) throws -> Int32 {
        let descriptor = Glibc.socket(
            AF_BLUETOOTH, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), number)
        guard descriptor >= 0 else { throw Failure.system("this machine has no Bluetooth") }
        return descriptor
    }
}

/// A listener that never accepts a connection.
final class SilentListener {
    let channel: UInt8
    private var descriptor: Int32

    init(_ descriptor: Int32, channel: UInt8) {
        self.descriptor = descriptor
        self.channel = channel
    }

    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }

    deinit { close() }
}
