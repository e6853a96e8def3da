import CSystemBus
import Glibc
import NighCore

/// Why a call over D-Bus failed, in D-Bus's own terms. ``BluetoothFault`` explains it to a person.
struct BusFault: Error, Hashable {
    /// The D-Bus error name, such as `org.bluez.Error.NotReady`. For a call that never left this program, sd-bus
    /// chooses the name.
    let name: String
    /// The message of the other side.
    let message: String

    /// Whether the adapter or device is busy, is being switched on, or is just being removed, which bluetoothd reports
    /// by itself. A later call may succeed.
    var isTemporary: Bool {
        [
            "org.bluez.Error.InProgress", "org.bluez.Error.NotReady",
            "org.freedesktop.DBus.Error.UnknownObject",
        ].contains(name)
    }

    /// Whether the same call may succeed later although nothing is reported until then: bluetoothd hangs, for example.
    /// When it does not run, the bus reports its start; the permissions of this user do not change.
    var mayPass: Bool {
        switch name {
        case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner": false
        default: if case .notPermitted = BluetoothFault(self) { false } else { true }
        }
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
