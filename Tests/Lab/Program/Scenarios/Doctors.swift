import Glibc

/// Runs `nigh doctor` on hosts whose network is broken in all possible ways, and on two that work.
enum Doctors {
    static let all = [
        Scenario(
            "doctor-names-the-cause", "set-ups broken on purpose: the doctor says why, and what to do",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            for broken in table { try broken.check(in: lab) }
        },
        Scenario("doctor-follows-a-peer", "the doctor goes on to a peer, up to where the way ends") {
            lab throws(Failure) in try followPeer(lab)
        },
    ]

    /// The hosts have mDNS only through the daemon, only embedded, or by default.
    private static let table = [
        BrokenSetUp(
            "no dbus", ["-t", "tcp:mdns=daemon"],
            says: [
                .init(
                    verdict: "fail", id: "tcp.avahi-daemon", cause: "D-Bus cannot be reached",
                    cure: "`systemctl start dbus`")
            ], status: 1
        ) { lab throws(Failure) in try lab.host("nobus") },
        BrokenSetUp(
            "no avahi-daemon, which is no failure", ["-t", "tcp"],
            says: [
                .init(
                    verdict: "pass", id: "tcp.avahi-daemon", cause: "this program speaks mDNS itself",
                    cure: "`systemctl start avahi-daemon`")
            ], status: 0
        ) { lab throws(Failure) in try withoutAvahi("noavahi", in: lab) },
        BrokenSetUp(
            "no avahi-daemon, where it alone is wanted", ["-t", "tcp:mdns=daemon"],
            says: [
                .init(
                    verdict: "fail", id: "tcp.avahi-daemon", cause: "avahi-daemon is not running",
                    cure: "`systemctl start avahi-daemon`")
            ], status: 1
        ) { lab throws(Failure) in try withoutAvahi("noavahi2", in: lab) },
        BrokenSetUp(
            "multicast dropped", ["-t", "tcp"],
            says: [
                .init(
                    verdict: "fail", id: "tcp.multicast", cause: "seems to be blocked", cure: "let UDP 5353")
            ], status: 1
        ) { lab throws(Failure) in
            let host = try lab.host("mute")
            try host.dropMulticast()
            return host
        },
        BrokenSetUp(
            "port blocked", ["-t", "tcp:port=4000"],
            says: [
                .init(
                    verdict: "fail", id: "tcp.reach", cause: "10.77.0.5:4000: no answer in time",
                    cure: "allow TCP port 4000"),
                .init(
                    verdict: "fail", id: "tcp.firewall", cause: "TCP port 4000: tcp dport 4000 drop",
                    cure: "remove that rule"),
            ], status: 1
        ) { lab throws(Failure) in
            let host = try lab.host("walled")
            try host.filter(in: "tcp dport 4000 drop")
            return host
        },
        BrokenSetUp(
            "packets blocked", ["-t", "tcp:port=4000"],
            says: [
                .init(
                    verdict: "warn", id: "tcp.firewall-packets",
                    cause: "UDP port 4000: meta l4proto udp drop",
                    cure: "remove that rule")
            ], status: 0
        ) { lab throws(Failure) in
            let host = try lab.host("walled2")
            try host.filter(in: "udp dport 5353 accept; meta l4proto udp drop")
            return host
        },
        BrokenSetUp(
            "port in use", ["-t", "tcp:port=4000"],
            says: [
                .init(
                    verdict: "fail", id: "tcp.port", cause: "address already in use",
                    cure: "port 4000 is in use: choose another")
            ], status: 1
        ) { lab throws(Failure) in
            let host = try lab.host("taken")
            let peer = try host.peer("Puma", .over("tcp:mdns=off,port=4000"))
            try lab.wait(for: "Puma to listen") { !peer.listening.isEmpty }
            return host
        },
        BrokenSetUp(
            "IPv6 only", ["-t", "tcp"],
            says: [
                .init(
                    verdict: "warn", id: "tcp.ip-versions", cause: "IPv6 only", cure: "is there a DHCP server"
                )
            ], status: 0
        ) { lab throws(Failure) in try lab.host("sixes", addresses: .linkLocal) },
        BrokenSetUp(
            "no network", ["-t", "tcp"],
            says: [
                .init(
                    verdict: "warn", id: "tcp.interfaces", cause: "127.0.0.1 (lo)",
                    cure: "connect this machine to a network")
            ], status: 0
        ) { lab throws(Failure) in try lab.host("alone", addresses: .none) },
        BrokenSetUp(
            "wrong identity mode", ["-t", "tcp"],
            says: [
                .init(
                    verdict: "fail", id: "identity.mode", cause: "others may read or write it (mode 644)",
                    cure: "`chmod 600 /run/data/nigh/identity.pem`")
            ], status: 1
        ) { lab throws(Failure) in
            let host = try lab.host("open")
            let file = "\(Host.dataFolder)/nigh/identity.pem"
            try host.run(["install", "-D", "-m", "644", "/dev/null", file])
            return host
        },
        BrokenSetUp("a host that is well", ["-t", "tcp"], says: [], status: 0) { lab throws(Failure) in
            try lab.host("well", daemon: true)
        },
    ]

    /// A host whose D-Bus daemon runs, and whose Avahi daemon was killed.
    private static func withoutAvahi(_ name: String, in lab: Lab) throws(Failure) -> Host {
        let host = try lab.host(name, daemon: true)
        try host.killDaemon()
        return host
    }

    private static func followPeer(_ lab: Lab) throws(Failure) {
        let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=embedded,port=4000"))
        let lynx = try lab.host("lynx")
        try lab.wait(for: "Puma to be seen as Puma") { puma.advertisedName != nil }
        let call = ["-t", "tcp:mdns=embedded", "-s", "lab", "--peer"]
        lab.step("all is well")
        for (who, id) in [("Puma", "peer.found"), ("tcp://\(puma.host.address()):4000", "peer.resolve")] {
            let said = try lynx.doctor(call + [who])
            for id in [
                id, "peer.address", "peer.connect", "peer.tls", "peer.hello", "peer.version", "peer.ping",
                "peer.packets", "peer.path",
            ] {
                try lab.check("\(id) passes", said.finding(id, "pass") != nil)
            }
            try lab.check("the status is 0", said.status == 0)
        }
        try lab.check("Puma did not notice", puma.views.isEmpty && puma.troubles.isEmpty)
        lab.step("another service")
        let other = try lynx.doctor(["-t", "tcp:mdns=off", "--peer", "tcp://\(puma.host.address()):4000"])
        try lab.check("it says which", other.advice("peer.hello").contains("`--service lab`"))
        lab.step("no UDP reaches Puma")
        try puma.host.filter(in: "udp dport 1024-65535 drop")
        let mute = try lynx.doctor([
            "-t", "tcp:mdns=off", "-s", "lab", "--peer", "tcp://\(puma.host.address()):4000",
        ])
        try lab.check(
            "that is a warning", mute.finding("peer.packets", "warn")?.contains("no packet") == true)
        try lab.check("the cure is named", mute.advice("peer.packets").contains("let UDP through"))
        try lab.check("all else works", mute.status == 0 && mute.finding("peer.path", "pass") != nil)
        lab.step("Puma's port is blocked")
        try puma.host.filter(in: "tcp dport 4000 drop")
        let blocked = try lynx.doctor(call + ["Puma"])
        try lab.check("it was found", blocked.finding("peer.found", "pass") != nil)
        try lab.check(
            "nothing answers", blocked.finding("peer.address", "fail")?.contains("no answer in time") == true)
        try lab.check(
            "the cure is named",
            blocked.advice("peer.address").contains("does no firewall drop TCP port 4000?"))
        try lab.check("the status is 1", blocked.status == 1)
        lab.step("another kind of program has the same service name")
        let hare = try lab.host("hare", daemon: true)
        _ = try hare.start(["avahi-publish-service", "Printer", "_lab._tcp", "9100", "pages=7"])
        let strange = try lynx.doctor(call + ["Nobody", "--timeout", "10s"])
        try lab.check("Nobody is not found", strange.finding("peer.found", "fail") != nil)
        try lab.check(
            "the other program is named",
            strange.finding("tcp.announcements", "warn")?.contains("\"Printer\" has") == true)
        try lab.check(
            "the cause is named", strange.advice("tcp.announcements").contains("same service name"))
    }
}
