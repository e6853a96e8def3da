import Glibc

/// The programs of the system that the lab stands on.
enum Tools {
    /// Where they are looked for: administrators' programs too, which a user's PATH often leaves out.
    static var path: String {
        let own = getenv("PATH").map { String(cString: $0) } ?? ""
        return (own.isEmpty ? [] : [own]).joined() + (own.isEmpty ? "" : ":")
            + "/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// What a program is missing for, by its name and Debian package.
    private static let needed: [(program: String, package: String)] = [
        ("unshare", "util-linux"), ("setpriv", "util-linux"), ("mount", "mount"), ("ip", "iproute2"),
        ("ss", "iproute2"), ("nft", "nftables"), ("dbus-daemon", "dbus-bin"),
        ("avahi-daemon", "avahi-daemon"), ("avahi-browse", "avahi-utils"), ("avahi-publish", "avahi-utils"),
        ("tshark", "tshark"), ("text2pcap", "wireshark-common"), ("openssl", "openssl"),
    ]

    /// Those that are not there, in words; nil when all are.
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
