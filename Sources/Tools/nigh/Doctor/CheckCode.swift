/// The short code of a check of `nigh doctor`, such as `N17`.
///
/// `nigh help N17` and the guide "Why did they not find each other" explain the check under this code. A code keeps its
/// meaning in every version: a check that is added gets a code that was never used.
enum CheckCode {
    /// The codes by the ID of the check. The tens group them: this machine, TCP, Bluetooth, serial lines, the way to
    /// a peer, NATS, guests. The order is that of the guide.
    static let all: [(code: String, id: String)] = [
        ("N01", "identity.file"), ("N02", "identity.owner"), ("N03", "identity.mode"),
        ("N04", "identity.key"),
        ("N05", "trust.store"), ("N06", "limits.descriptors"), ("N07", "libuv"),
        ("N08", "identity.use"),
        ("N11", "tcp.interfaces"), ("N12", "tcp.ip-versions"), ("N13", "tcp.port"), ("N14", "tcp.reach"),
        ("N15", "tcp.firewall"), ("N16", "tcp.firewall-packets"), ("N17", "tcp.multicast"),
        ("N18", "tcp.avahi-daemon"), ("N19", "tcp.embedded-mdns"), ("N20", "tcp.mdns"),
        ("N21", "tcp.own-service"), ("N22", "tcp.services-seen"), ("N23", "tcp.peers"), ("N24", "tcp.pipes"),
        ("N25", "tcp.announcements"),
        ("N31", "bluetooth.kernel"), ("N32", "bluetooth.dbus"), ("N33", "bluetooth.bluetoothd"),
        ("N34", "bluetooth.permission"), ("N35", "bluetooth.adapter"), ("N36", "bluetooth.unblocked"),
        ("N37", "bluetooth.powered"), ("N38", "bluetooth.discoverable"), ("N39", "bluetooth.listening"),
        ("N40", "bluetooth.service-record"),
        ("N41", "serial.device"), ("N42", "serial.other-end"),
        ("N71", "nats.library"), ("N72", "nats.server"), ("N73", "nats.tls"), ("N74", "nats.permitted"),
        ("N75", "nats.payload"), ("N76", "nats.sessions"),
        ("N81", "web.addresses"), ("N82", "web.port"), ("N83", "web.reach"), ("N84", "web.firewall"),
        ("N85", "web.isolation"), ("N86", "web.name"), ("N87", "web.guests"), ("N88", "web.connections"),
        ("N51", "peer.found"), ("N52", "peer.resolve"), ("N53", "peer.address"), ("N54", "peer.connect"),
        ("N55", "peer.tls"), ("N56", "peer.hello"), ("N57", "peer.version"), ("N58", "peer.ping"),
        ("N59", "peer.packets"), ("N60", "peer.name"), ("N61", "peer.path"),
        ("N62", "peer.through"), ("N63", "peer.common"), ("N64", "peer.carried"),
    ]

    /// Returns the code of a check; nil for the checks of a plugin's transport.
    static func code(of id: String) -> String? { all.first { $0.id == id }?.code }

    /// Returns the code of the check that finds errors with this cause; nil if the doctor cannot.
    ///
    /// - Parameter cause: The label of the cause, as `nigh errors` lists it.
    static func code(ofCause cause: String) -> String? {
        switch cause {
        case "unknown peer": "N51"
        case "no route": "N52"
        case "refused", "unreachable", "timed out": "N53"
        case "no common security", "wrong peer": "N55"
        case "wrong service": "N56"
        case "no common version": "N57"
        case "silent": "N58"
        default: nil
        }
    }
}
