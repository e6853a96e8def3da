import CBluetooth
import Glibc
import NighBluetooth
import NighCore

/// The Bluetooth adapters of the machine that this runs on, as its kernel reports them.
enum Adapters {
    /// Returns the address of hci0, hci1 and so on.
    static func address(_ number: Int) throws(Failure) -> BluetoothAddress {
        let descriptor = try socket(SOCK_RAW, BTPROTO_HCI)
        defer { close(descriptor) }
        var info = hci_dev_info()
        info.dev_id = UInt16(number)
        guard bluetooth_get_device_info(descriptor, &info) == 0 else {
            throw .system("there is no hci\(number)")
        }
        return BluetoothAddress(info.bdaddr)
    }

    /// Listens on `adapter` and never accepts a connection, so that a dial waits. Ends when the result is released or
    /// closed.
    static func listenSilently(on adapter: BluetoothAddress) throws(Failure) -> SilentListener {
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
        guard status else { throw .system("a silent listener") }
        return SilentListener(descriptor, channel: address.rc_channel)
    }

    private static func socket(_ type: __socket_type, _ number: Int32) throws(Failure) -> Int32 {
        let descriptor = Glibc.socket(
            AF_BLUETOOTH, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), number)
        guard descriptor >= 0 else { throw .system("this machine has no Bluetooth") }
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
