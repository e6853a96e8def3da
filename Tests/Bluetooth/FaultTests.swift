import Glibc
import NighCore
import Testing

@testable import NighBluetooth

/// Tests the errors that a person reads, and the advice in them.
struct FaultTests {
    private static let adapterOff = "this machine's adapter is off or was unplugged"
    private static let bus = BusFault(name: "org.example.Error.Strange", message: "no idea")

    /// An adapter that is unplugged may disappear while a call to it is on its way. People are told once, by its
    /// removal.
    @Test(arguments: [
        ("org.bluez.Error.InProgress", true), ("org.bluez.Error.NotReady", true),
        ("org.freedesktop.DBus.Error.UnknownObject", true), ("org.bluez.Error.NotAuthorized", false),
        ("org.freedesktop.DBus.Error.UnknownMethod", false),
    ])
    func `Temporary bus errors are recognized`(_ name: String, _ isTemporary: Bool) {
        #expect(BusFault(name: name, message: "").isTemporary == isTemporary)
    }

    /// When bluetoothd does not run, the bus reports its start, and there is no need to ask again and again.
    @Test(arguments: [
        ("org.freedesktop.DBus.Error.NoReply", true), ("org.freedesktop.DBus.Error.UnknownObject", true),
        ("org.freedesktop.DBus.Error.ServiceUnknown", false),
        ("org.freedesktop.DBus.Error.NameHasNoOwner", false),
        ("org.freedesktop.DBus.Error.AccessDenied", false),
    ])
    func `Bus errors that may pass are recognized`(_ name: String, _ mayPass: Bool) {
        #expect(BusFault(name: name, message: "").mayPass == mayPass)
    }

    @Test(
        arguments: [
            (.noKernelSupport, "this kernel has no Bluetooth", "modprobe -a bluetooth rfcomm"),
            (.noBus(bus), "there is no D-Bus system bus", "systemctl start dbus"),
            (.noDaemon, "bluetoothd is not running", "systemctl start bluetooth"),
            (.noAdapter, "there is no Bluetooth adapter", "bluetoothctl list"),
            (.noSuchAdapter("hci7", known: []), "there is no adapter hci7", "this machine has no adapter"),
            (
                .noSuchAdapter("hci7", known: ["hci0", "hci1"]), "there is no adapter hci7",
                "the adapters are: hci0, hci1"
            ),
            (.switchedOff("hci0"), "the adapter hci0 is powered off", "bluetoothctl power on"),
            (.blocked("hci0"), "the adapter hci0 is blocked by a radio switch", "rfkill unblock bluetooth"),
            (
                .notPermitted(bus), "this user is not allowed to use bluetoothd: no idea",
                "the group `bluetooth`"
            ),
            (.notOffered, "nobody listens there", "looking for the same service?"),
            (.daemon(bus), "bluetoothd reported Strange: no idea", nil),
        ] as [(BluetoothFault, String, String?)])
    func `Each fault has a cause and advice`(_ fault: BluetoothFault, _ words: String, _ advice: String?) {
        let error = fault.error(.starting)
        #expect(error.transport == "bluetooth")
        #expect("\(error.cause)".contains(words))
        if let advice {
            #expect(error.advice?.contains(advice) == true)
        } else {
            #expect(error.advice == nil)
        }
    }

    @Test(
        arguments: [
            (ECONNREFUSED, .refused, "looking for the same service?"),
            (EHOSTDOWN, .unreachable, "within about ten metres?"), (ETIMEDOUT, .timedOut, "out of range?"),
            (ECONNRESET, .reset, nil), (EPIPE, .reset, nil), (ENOTCONN, .reset, nil),
            (ECONNABORTED, .unavailable(adapterOff), "bluetoothctl show"),
            (ENODEV, .unavailable(adapterOff), "bluetoothctl show"),
            (EHOSTUNREACH, .unavailable(adapterOff), "bluetoothctl show"),
            (ENETDOWN, .unavailable(adapterOff), "bluetoothctl show"),
            (EADDRNOTAVAIL, .unavailable(adapterOff), "bluetoothctl show"),
            (EACCES, .unavailable("the two devices do not accept each other's keys"), "bluetoothctl remove"),
            (
                EBUSY, .unavailable("another connection to that channel exists, or is being closed"),
                "try again"
            ),
            (EAFNOSUPPORT, .unavailable("this kernel has no Bluetooth"), "modprobe"),
            (EPROTONOSUPPORT, .unavailable("this kernel has no Bluetooth"), "modprobe"),
            (EPERM, .system(EPERM, "Operation not permitted"), "sandbox?"),
            (EMFILE, .system(EMFILE, "Too many open files"), "ulimit -n"),
            (ENFILE, .system(ENFILE, "Too many open files in system"), "ulimit -n"),
            (EIO, .system(EIO, "Input/output error"), nil),
        ] as [(Int32, NighError.Cause, String?)])
    func `Each socket error has a cause and advice`(
        _ number: Int32, _ cause: NighError.Cause, _ advice: String?
    ) {
        let error = BluetoothFault.socket(number).error(.connecting, about: "00:AA:01:00:00:42/3")
        #expect(error.cause == cause)
        #expect(error.peer == "00:AA:01:00:00:42/3")
        if let advice {
            #expect(error.advice?.contains(advice) == true)
        } else {
            #expect(error.advice == nil)
        }
    }

    @Test(arguments: [
        ("org.freedesktop.DBus.Error.ServiceUnknown", "bluetoothd is not running"),
        ("org.freedesktop.DBus.Error.NameHasNoOwner", "bluetoothd is not running"),
        ("org.freedesktop.DBus.Error.NoReply", "bluetoothd is not running"),
        ("org.freedesktop.DBus.Error.AccessDenied", "this user is not allowed to use bluetoothd: words"),
        ("org.freedesktop.DBus.Error.AuthFailed", "this user is not allowed to use bluetoothd: words"),
        (
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
            "this user is not allowed to use bluetoothd: words"
        ),
        ("org.bluez.Error.NotPermitted", "this user is not allowed to use bluetoothd: words"),
        ("org.bluez.Error.NotAuthorized", "this user is not allowed to use bluetoothd: words"),
        ("org.bluez.Error.NotReady", "the adapter is powered off"),
        ("org.bluez.Error.Blocked", "the adapter is blocked by a radio switch"),
        ("org.bluez.Error.Failed", "bluetoothd reported Failed: words"), ("", "bluetoothd reported : words"),
    ])
    func `Each bluetoothd error has a readable cause`(_ name: String, _ words: String) {
        #expect("\(BluetoothFault(BusFault(name: name, message: "words")).cause)".contains(words))
    }

    @Test func `System errors have D-Bus names`() {
        #expect(BusFault(errno: EACCES).name == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(!BusFault(errno: ENOENT).message.isEmpty)
    }
}
