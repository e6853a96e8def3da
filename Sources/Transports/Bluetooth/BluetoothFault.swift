import Glibc
import NighCore

/// A problem with Bluetooth. Each case has its own cause and advice; docs/reference/transports/bluetooth.md lists them
/// in a table.
enum BluetoothFault: Error, Hashable {
    /// The kernel has no Bluetooth support.
    case noKernelSupport
    /// The D-Bus system bus is not available.
    case noBus(BusFault)
    /// bluetoothd is not running.
    case noDaemon
    /// No adapter is plugged in.
    case noAdapter
    /// The adapter that the options name does not exist.
    case noSuchAdapter(String, known: [String])
    /// The adapter is powered off. Its name is nil if bluetoothd did not say which it is.
    case switchedOff(String?)
    /// A radio switch (rfkill) blocks the adapter.
    case blocked(String?)
    /// The system does not let this program talk to bluetoothd.
    case notPermitted(BusFault)
    /// The device does not offer the service: its program has ended, or never ran.
    case notOffered
    /// bluetoothd reported another error.
    case daemon(BusFault)
    /// A socket operation failed with this `errno`.
    case socket(Int32)

    /// The fault behind an error of a call over the bus.
    init(_ fault: BusFault) {
        switch fault.name {
        // The bus reports these when the process that should have answered the call is gone.
        case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
            "org.freedesktop.DBus.Error.NoReply":
            self = .noDaemon
        case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.AuthFailed",
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "org.bluez.Error.NotPermitted",
            "org.bluez.Error.NotAuthorized":
            self = .notPermitted(fault)
        case "org.bluez.Error.NotReady": self = .switchedOff(nil)
        case "org.bluez.Error.Blocked": self = .blocked(nil)
        default: self = .daemon(fault)
        }
    }

    /// The fault as an error at `stage`, about `peer`.
    func error(_ stage: NighError.Stage, about peer: String? = nil) -> NighError {
        NighError(stage, cause, peer: peer, transport: BluetoothTransport.schemeName, advice: advice)
    }

    /// The fault as the cause of an error.
    var cause: NighError.Cause {
        switch self {
        case .noKernelSupport: .unavailable("this kernel has no Bluetooth")
        case .noBus: .unavailable("there is no D-Bus system bus, which is needed to talk to bluetoothd")
        case .noDaemon: .unavailable("bluetoothd is not running")
        case .noAdapter: .unavailable("there is no Bluetooth adapter")
        case .noSuchAdapter(let name, _): .unavailable("there is no adapter \(name)")
        case .switchedOff(let name): .unavailable("the adapter\(Self.suffix(name)) is powered off")
        case .blocked(let name): .unavailable("the adapter\(Self.suffix(name)) is blocked by a radio switch")
        case .notPermitted(let fault):
            .unavailable("this user is not allowed to use bluetoothd: \(fault.message)")
        case .notOffered: .refused
        case .daemon(let fault):
            .unavailable("bluetoothd reported \(Self.short(fault.name)): \(fault.message)")
        case .socket(let number): Self.cause(of: number)
        }
    }

    /// Advice to the user; nil if there is nothing to do.
    var advice: String? {
        switch self {
        case .noKernelSupport: "load it with `modprobe -a bluetooth rfcomm`, or use another transport"
        case .noBus: "start the system bus: `systemctl start dbus`"
        case .noDaemon: "install the package bluez, and `systemctl start bluetooth`"
        case .noAdapter: "plug one in; `bluetoothctl list` shows the adapters that bluetoothd sees"
        case .noSuchAdapter(_, let known):
            known.isEmpty
                ? "this machine has no adapter; plug one in"
                : "the adapters are: \(known.joined(separator: ", "))"
        case .switchedOff: "switch it on: `bluetoothctl power on`"
        case .blocked: "unblock it: `rfkill unblock bluetooth`, or the key for airplane mode"
        case .notPermitted: "add the user to the group `bluetooth`, or log in at the machine itself"
        case .notOffered: "is the program running there, and looking for the same service?"
        case .daemon: nil
        case .socket(let number): Self.advice(on: number)
        }
    }

    private static func suffix(_ name: String?) -> String { name.map { " \($0)" } ?? "" }

    /// The last part of a D-Bus error name.
    private static func short(_ name: String) -> String { String(name.split(separator: ".").last ?? "") }

    private static func cause(of number: Int32) -> NighError.Cause {
        switch number {
        case ECONNREFUSED: .refused
        case EHOSTDOWN: .unreachable
        case ETIMEDOUT: .timedOut
        case ECONNRESET, EPIPE, ENOTCONN: .reset
        case ECONNABORTED, ENODEV, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL:
            .unavailable("this machine's adapter is off or was unplugged")
        case EACCES: .unavailable("the two devices do not accept each other's keys")
        case EBUSY: .unavailable("another connection to that channel exists, or is being closed")
        case EAFNOSUPPORT, EPROTONOSUPPORT: noKernelSupport.cause
        default: .system(number, String(cString: strerror(number)))
        }
    }

    private static func advice(on number: Int32) -> String? {
        switch number {
        case ECONNREFUSED: "is the program running there, and looking for the same service?"
        case EHOSTDOWN: "is it switched on, discoverable and within about ten metres?"
        case ETIMEDOUT: "has it gone out of range?"
        case ECONNABORTED, ENODEV, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL:
            "`bluetoothctl show` shows the state of the adapter"
        case EACCES: "let both devices forget each other: `bluetoothctl remove ADDRESS`"
        case EBUSY: "try again in a few seconds"
        case EADDRINUSE: "other programs listen on all of the adapter's 30 channels"
        case EPERM: "is this program in a sandbox? it is not allowed to open Bluetooth sockets"
        case EMFILE, ENFILE: "too many descriptors are open: raise `ulimit -n`"
        case EAFNOSUPPORT, EPROTONOSUPPORT: noKernelSupport.advice
        default: nil
        }
    }
}
