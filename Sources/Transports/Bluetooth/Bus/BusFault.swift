import CSystemBus
import Glibc
import NighCore

/// Why a call over D-Bus failed, in D-Bus's own terms; what it means for a person is told by ``BluetoothFault``.
struct BusFault: Error, Hashable {
    /// Such as `org.bluez.Error.NotReady`; for what never left this program, a name of sd-bus's making.
    let name: String
    /// The other side's words.
    let words: String

    init(name: String, words: String) {
        self.name = name
        self.words = words
    }

    init(_ error: sd_bus_error) {
        name = error.name.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed"
        words = error.message.map { String(cString: $0) } ?? ""
    }

    /// The bus itself cannot be had.
    init(errno number: Int32) {
        var error = sd_bus_error()
        sd_bus_error_set_errno(&error, number)
        self.init(error)
        sd_bus_error_free(&error)
    }
}
