import Glibc

/// The system's programs that the lab needs.
enum Tools {
    /// Where they are looked up. Includes the folders of administrators' programs, which a user's PATH often lacks.
    static var path: String {
        let own = getenv("PATH").map { String(cString: $0) } ?? ""
        return (own.isEmpty ? [] : [own]).joined() + (own.isEmpty ? "" : ":")
            + "/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// The programs that are needed, with their Debian packages.
    private static let needed: [(program: String, package: String)] = [
        ("unshare", "util-linux"), ("setpriv", "util-linux"), ("mount", "mount"), ("ip", "iproute2"),
        ("ss", "iproute2"), ("nft", "nftables"), ("dbus-daemon", "dbus-bin"),
        ("avahi-daemon", "avahi-daemon"), ("avahi-browse", "avahi-utils"), ("avahi-publish", "avahi-utils"),
        ("tshark", "tshark"), ("text2pcap", "wireshark-common"), ("openssl", "openssl"),
        ("nats-server", "nats-server"),
    ]

    /// Returns a message about the programs that are missing; nil if none is.
    static func missing() -> String? {
        let folders = path.split(separator: ":")
        let absent = needed.filter { tool in
            !folders.contains { access("\($0)/\(tool.program)", X_OK) == 0 }
        }
        guard !absent.isEmpty else { return nil }
        let names = absent.map { "\($0.program) (package \($0.package))" }
        return "the lab needs \(names.joined(separator: ", ")); `make setup` installs what is missing"
    }
}
