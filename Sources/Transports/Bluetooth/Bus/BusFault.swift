import CSystemBus
import Glibc
import NighCore

/// Why a call over D-Bus failed, in D-Bus's own terms. ``BluetoothFault`` says what it means for a person.
struct BusFault: Error, Hashable {
    /// The D-Bus error name, such as `org.bluez.Error.NotReady`. For a call that never left this program, sd-bus
    /// chooses the name.
    let name: String
    /// The message of the other side.
    let message: String

    /// Whether the adapter or device is busy, is being switched on, or is just being removed, which bluetoothd reports by
    /// itself. A later call may succeed.
    var isTemporary: Bool {
        [
            "org.bluez.Error.InProgress", "org.bluez.Error.NotReady",
            "org.freedesktop.DBus.Error.UnknownObject",
        ].contains(name)
    }

    init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    init(_ error: sd_bus_error) {
        name = error.name.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed"
        message = error.message.map { String(cString: $0) } ?? ""
    }

    /// The fault for an `errno` of sd-bus: the bus itself failed.
    init(errno number: Int32) {
        var error = sd_bus_error()
        sd_bus_error_set_errno(&error, number)
        self.init(error)
        sd_bus_error_free(&error)
    }
}
