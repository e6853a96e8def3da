import CAvahi
import Glibc
import NighCore

/// Translates Avahi's error numbers for people.
enum AvahiProblem {
    static let collision = Int32(AVAHI_ERR_COLLISION)
    static let invalidData = Int32(AVAHI_ERR_INVALID_RDATA)
    static let disconnected = Int32(AVAHI_ERR_DISCONNECTED)
    static let embeddedAdvice = "or leave the daemon out with mdns=embedded"
    static let sharingAdvice = "`systemctl start avahi-daemon` has all programs of this machine share one"
    static let startAdvice = "`systemctl start avahi-daemon`, \(embeddedAdvice)"

    /// The error for `code` of libavahi, at `stage`. `words` is the library's own message.
    static func error(_ code: Int32, _ stage: NighError.Stage, words: String) -> NighError {
        switch Int(code) {
        // Avahi also reports a missing daemon when the bus is missing.
        case AVAHI_ERR_NO_DAEMON where !hasBus: error(Int32(AVAHI_ERR_DBUS_ERROR), stage, words: words)
        case AVAHI_ERR_NO_DAEMON, AVAHI_ERR_DISCONNECTED:
            NighError(stage, .unavailable("avahi-daemon is not running"), advice: startAdvice)
        case AVAHI_ERR_DBUS_ERROR:
            NighError(
                stage, .unavailable("the system's D-Bus cannot be reached"),
                advice: "`systemctl start dbus`, \(embeddedAdvice)")
        case AVAHI_ERR_ACCESS_DENIED:
            NighError(
                stage, .unavailable("the system's D-Bus lets this user not speak to avahi-daemon"),
                advice: "look into /etc/dbus-1/system.d/avahi-dbus.conf for who may, \(embeddedAdvice)")
        case AVAHI_ERR_NOT_PERMITTED:
            NighError(
                stage, .unavailable("avahi-daemon is set up to publish nothing for others"),
                advice: "set disable-publishing=no and disable-user-service-publishing=no in "
                    + "/etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_TOO_MANY_CLIENTS:
            NighError(
                stage, .unavailable("avahi-daemon has all the clients it takes"),
                advice: "raise clients-max in /etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_TOO_MANY_OBJECTS, AVAHI_ERR_TOO_MANY_ENTRIES:
            NighError(
                stage, .unavailable("avahi-daemon keeps no more for one program"),
                advice: "raise objects-per-client-max in /etc/avahi/avahi-daemon.conf, \(embeddedAdvice)")
        case AVAHI_ERR_NO_NETWORK:
            NighError(
                stage, .unavailable("no UDP socket could be opened on port 5353"),
                advice: "another program may hold the port for itself: `ss -lunp sport = 5353` tells which")
        default:
            NighError(stage, .unavailable("Avahi says: \(words) (\(code))"))
        }
    }

    /// Whether the system bus is where Avahi looks for it.
    private static var hasBus: Bool {
        guard getenv("DBUS_SYSTEM_BUS_ADDRESS") == nil else { return true }
        return ["/run", "/var/run"].contains { access("\($0)/dbus/system_bus_socket", F_OK) == 0 }
    }

    static func noInterface(_ name: String) -> NighError {
        NighError(
            .starting, .unavailable("there is no network interface \(name)"),
            advice: "`ip link` lists those there are")
    }

    /// The error for a library that cannot be loaded. `words` is the message of the loader.
    static func missing(_ package: String, _ words: String) -> NighError {
        NighError(
            .starting, .unavailable("Avahi's library is missing (\(words))"),
            advice: "`apt-get install \(package)`")
    }
}
