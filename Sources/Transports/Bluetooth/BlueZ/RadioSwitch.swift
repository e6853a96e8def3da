import CBluetooth
import Glibc

/// Reads the state of an adapter's radio from the kernel, at once and without asking bluetoothd.
enum RadioSwitch {
    /// Whether rfkill blocks the adapter, be it by a key, a setting or airplane mode.
    static func isBlocked(_ adapter: String) -> Bool {
        let folder = "/sys/class/bluetooth/\(adapter)"
        guard let directory = opendir(folder) else { return false }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix("rfkill") else { continue }
            if ["soft", "hard"].contains(where: { isSet("\(folder)/\(name)/\($0)") }) { return true }
        }
        return false
    }

    private static func isSet(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 1 && byte == UInt8(ascii: "1")
    }

    /// Whether the adapter with that number exists and is up.
    static func isUp(_ index: UInt16) -> Bool {
        let descriptor = socket(
            AF_BLUETOOTH, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), BTPROTO_HCI)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var info = hci_dev_info()
        info.dev_id = index
        guard bluetooth_get_device_info(descriptor, &info) == 0 else { return false }
        return info.flags & (1 << UInt32(HCI_UP)) != 0
    }
}
