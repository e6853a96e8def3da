import Glibc

/// A line that `nigh doctor` must print: its verdict and ID, words of the finding, words of the advice.
struct DoctorLine: Sendable {
    let verdict: String
    let id: String
    let words: String
    let cure: String

    static func pass(_ id: String, _ words: String = "", cure: String = "") -> Self {
        DoctorLine(verdict: "pass", id: id, words: words, cure: cure)
    }

    static func warn(_ id: String, _ words: String = "", cure: String = "") -> Self {
        DoctorLine(verdict: "warn", id: id, words: words, cure: cure)
    }

    static func fail(_ id: String, _ words: String = "", cure: String = "") -> Self {
        DoctorLine(verdict: "fail", id: id, words: words, cure: cure)
    }
}

/// The output of a `nigh doctor`.
struct Diagnosed {
    let lab: Lab
    private var lines: [(verdict: Substring, id: Substring, finding: Substring)] = []
    private var advices: [Substring: String] = [:]
    private let status: Int?

    init(_ printed: [String], in lab: Lab) {
        self.lab = lab
        for line in printed {
            let words = line.split(separator: " ", maxSplits: 2)
            if line.hasPrefix("      → "), let last = lines.last {
                advices[last.id, default: ""] += line
            } else if words.count == 3, ["pass", "warn", "fail"].contains(words[0]) {
                lines.append((words[0], words[1], words[2]))
            }
        }
        status = printed.last.flatMap { Int($0.split(separator: " ").last ?? "") }
    }

    /// Checks that it has these lines, and ended with this status.
    func check(_ wanted: DoctorLine..., status: Int) throws { try check(wanted, status: status) }

    func check(_ wanted: [DoctorLine], status: Int) throws {
        for line in wanted {
            let isSaid = lines.contains {
                $0.verdict == line.verdict && $0.id == line.id
                    && (line.words.isEmpty || $0.finding.contains(line.words))
            }
            try lab.check("it says \(line.verdict) of \(line.id): \(line.words)", isSaid)
            let advice = advices[line.id[...]] ?? ""
            try lab.check("the cure is: \(line.cure)", line.cure.isEmpty || advice.contains(line.cure))
        }
        try lab.check("the status is \(status), was \(self.status ?? -1)", self.status == status)
    }
}

extension Host {
    /// Runs `nigh doctor` on the host, for a user whose files are in /run/data.
    func doctor(_ arguments: [String]) throws -> Diagnosed {
        let call =
            ["env", "XDG_DATA_HOME=\(Host.dataFolder)", try Spawning.path(of: "nigh"), "doctor"] + arguments
        let printed = try run(
            ["sh", "-c", #""$@"; echo "status $?""#, "sh"] + call, within: .seconds(40))
        for line in printed { lab.journal.note("\(name)/doctor", line) }
        return Diagnosed(printed, in: lab)
    }
}

/// A host that is broken on purpose, and what `nigh doctor` must say of it and no more.
struct BrokenSetUp: Sendable {
    private let name: String
    private let transport: String
    private let says: [DoctorLine]
    private let status: Int
    private let make: @Sendable (Lab) throws -> Host

    init(
        _ name: String, _ transport: String, _ says: DoctorLine..., status: Int,
        _ make: @escaping @Sendable (Lab) throws -> Host
    ) {
        self.name = name
        self.transport = transport
        self.says = says
        self.status = status
        self.make = make
    }

    func check(in lab: Lab) throws {
        lab.step(name)
        try make(lab).doctor(["-t", transport]).check(says, status: status)
    }
}

/// Runs `nigh doctor` on hosts whose network is broken in all possible ways, and on two that work.
enum Doctors {
    static let all = [
        Scenario("doctor-names-the-cause", "set-ups broken on purpose: the doctor says why and what to do") {
            lab in
            for broken in table { try broken.check(in: lab) }
        },
        Scenario("doctor-follows-a-peer", "the doctor goes on to a peer, up to where the way ends") {
            try followPeer($0)
        },
    ]

    /// The hosts have mDNS only through the daemon, only embedded, or by default.
    private static let table = [
        BrokenSetUp(
            "no dbus", "tcp:mdns=daemon",
            .fail("tcp.avahi-daemon", "D-Bus cannot be reached", cure: "`systemctl start dbus`"), status: 1
        ) { try $0.host("nobus") },
        BrokenSetUp(
            "no avahi-daemon, which is no failure", "tcp",
            .pass(
                "tcp.avahi-daemon", "this program speaks mDNS itself", cure: "`systemctl start avahi-daemon`"),
            status: 0
        ) { try withoutAvahi("noavahi", in: $0) },
        BrokenSetUp(
            "no avahi-daemon, where it alone is wanted", "tcp:mdns=daemon",
            .fail(
                "tcp.avahi-daemon", "avahi-daemon is not running", cure: "`systemctl start avahi-daemon`"),
            status: 1
        ) { try withoutAvahi("noavahi2", in: $0) },
        BrokenSetUp(
            "multicast dropped", "tcp",
            .fail("tcp.multicast", "seems to be blocked", cure: "let UDP 5353"), status: 1
        ) { lab in
            let host = try lab.host("mute")
            try host.dropMulticast()
            return host
        },
        BrokenSetUp(
            "port blocked", "tcp:port=4000",
            .fail("tcp.reach", "10.77.0.5:4000: no answer in time", cure: "allow TCP port 4000"),
            .fail("tcp.firewall", "TCP port 4000: tcp dport 4000 drop", cure: "remove that rule"), status: 1
        ) { lab in
            let host = try lab.host("walled")
            try host.filter(in: "tcp dport 4000 drop")
            return host
        },
        BrokenSetUp(
            "packets blocked", "tcp:port=4000",
            .warn(
                "tcp.firewall-packets", "UDP port 4000: meta l4proto udp drop", cure: "remove that rule"),
            status: 0
        ) { lab in
            let host = try lab.host("walled2")
            try host.filter(in: "udp dport 5353 accept; meta l4proto udp drop")
            return host
        },
        BrokenSetUp(
            "IPv6 only", "tcp", .warn("tcp.ip-versions", "IPv6 only", cure: "is there a DHCP server"),
            status: 0
        ) { try $0.host("sixes", addresses: .linkLocal) },
        BrokenSetUp(
            "no network", "tcp",
            .warn("tcp.interfaces", "127.0.0.1 (lo)", cure: "connect this machine to a network"), status: 0
        ) { try $0.host("alone", addresses: .none) },
        BrokenSetUp("a host that is well", "tcp", status: 0) { try $0.host("well", daemon: true) },
    ]

    /// A host whose D-Bus daemon runs, and whose Avahi daemon was killed.
    private static func withoutAvahi(_ name: String, in lab: Lab) throws -> Host {
        let host = try lab.host(name, daemon: true)
        try host.killDaemon()
        return host
    }

    private static func followPeer(_ lab: Lab) throws {
        let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=embedded,port=4000"))
        let lynx = try lab.host("lynx")
        try lab.wait(for: "Puma to be seen as Puma") { puma.advertisedName != nil }
        func ask(_ who: String, _ more: String...) throws -> Diagnosed {
            try lynx.doctor(["-t", "tcp:mdns=embedded", "-s", "lab", "--peer", who] + more)
        }
        lab.step("all is well")
        let steps = ["found", "address", "connect", "tls", "hello", "version", "ping", "packets", "path"]
        try ask("Puma").check(steps.map { .pass("peer.\($0)") }, status: 0)
        try lab.check("Puma did not notice", puma.views.isEmpty && puma.troubles.isEmpty)
        lab.step("no UDP reaches Puma")
        try puma.host.filter(in: "udp dport 1024-65535 drop")
        try ask("tcp://\(puma.host.address()):4000").check(
            .warn("peer.packets", "no packet", cure: "let UDP through"), .pass("peer.path"), status: 0)
        lab.step("Puma's port is blocked")
        try puma.host.filter(in: "tcp dport 4000 drop")
        try ask("Puma").check(
            .pass("peer.found"),
            .fail("peer.address", "no answer in time", cure: "does no firewall drop TCP port 4000?"),
            status: 1)
        lab.step("another kind of program has the same service name")
        let hare = try lab.host("hare", daemon: true)
        _ = try hare.start(["avahi-publish-service", "Printer", "_lab._tcp", "9100", "pages=7"])
        try ask("Nobody", "--timeout", "10s").check(
            .fail("peer.found"), .warn("tcp.announcements", "\"Printer\" has", cure: "same service name"),
            status: 1)
    }
}
