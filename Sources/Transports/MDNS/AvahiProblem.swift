import CAvahi
import Glibc
import NighCore

/// Translates Avahi's error numbers for people.
enum AvahiProblem {
    static let collision = Int32(AVAHI_ERR_COLLISION)
    static let invalidData = Int32(AVAHI_ERR_INVALID_RDATA)
    static let disconnected = Int32(AVAHI_ERR_DISCONNECTED)
    static let embeddedAdvice = "or do without the daemon: mdns=embedded"
    static let sharingAdvice = "after `systemctl start avahi-daemon`, all programs of this machine share it"
    static let startAdvice = "`systemctl start avahi-daemon`, \(embeddedAdvice)"

    /// The error for `code` of libavahi, at `stage`. `message` is the library's own message.
    static func error(_ code: Int32, _ stage: NighError.Stage, message: String) -> NighError {
        switch Int(code) {
        // Avahi also reports a missing daemon when the bus is missing.
        case AVAHI_ERR_NO_DAEMON where !hasBus: error(Int32(AVAHI_ERR_DBUS_ERROR), stage, message: message)
        case AVAHI_ERR_NO_DAEMON, AVAHI_ERR_DISCONNECTED:
            NighError(stage, .unavailable("avahi-daemon is not running"), advice: startAdvice)
        case AVAHI_ERR_DBUS_ERROR:
            NighError(
                stage, .unavailable("the system's D-Bus cannot be reached"),
                advice: "`systemctl start dbus`, \(embeddedAdvice)")
        case AVAHI_ERR_ACCESS_DENIED:
            NighError(
                stage, .unavailable("the system's D-Bus does not let this user talk to avahi-daemon"),
                advice: "see in /etc/dbus-1/system.d/avahi-dbus.conf who is allowed, \(embeddedAdvice)")
        case AVAHI_ERR_NOT_PERMITTED:
            NighError(
                stage, .unavailable("avahi-daemon is configured not to publish services of other programs"),
                advice: "set disable-publishing=no and disable-user-service-publishing=no in "
                    + "/etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_TOO_MANY_CLIENTS:
            NighError(
                stage, .unavailable("avahi-daemon has reached its limit of clients"),
                advice: "raise clients-max in /etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_TOO_MANY_OBJECTS, AVAHI_ERR_TOO_MANY_ENTRIES:
            NighError(
                stage, .unavailable("avahi-daemon has reached its limit of objects for this program"),
                advice: "raise objects-per-client-max in /etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_NO_NETWORK:
            NighError(
                stage, .unavailable("no UDP socket could be opened on port 5353"),
                advice: "another program may use the port exclusively: `ss -lunp sport = 5353` shows which")
        default:
            NighError(stage, .unavailable("Avahi reports: \(message) (\(code))"))
        }
    }

    /// Whether a call that failed with `code` has not reached the daemon. All that was asked of it before is gone then,
    /// too, and the client is about to say so.
    static func isLossOfDaemon(_ code: Int32) -> Bool {
        [AVAHI_ERR_DBUS_ERROR, AVAHI_ERR_DISCONNECTED, AVAHI_ERR_NO_DAEMON].contains(Int(code))
    }

    /// Whether the system bus is where Avahi looks for it.
    private static var hasBus: Bool {
        guard getenv("DBUS_SYSTEM_BUS_ADDRESS") == nil else { return true }
        return ["/run", "/var/run"].contains { access("\($0)/dbus/system_bus_socket", F_OK) == 0 }
    }

    static func noInterface(_ name: String) -> NighError {
        NighError(
            .starting, .unavailable("there is no network interface \(name)"),
            advice: "`ip link` lists the interfaces")
    }

    /// The error for a library that cannot be loaded. `reason` is the message of the loader.
    static func missing(_ package: String, _ reason: String) -> NighError {
        NighError(
            .starting, .unavailable("Avahi's library is missing (\(reason))"),
            advice: "`apt-get install \(package)`")
    }
}
