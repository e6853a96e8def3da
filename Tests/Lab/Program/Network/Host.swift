import Glibc

/// One machine of the network: a network namespace with a host name and a /run of its own.
final class Host {
    /// The kinds of addresses that an interface gets.
    enum Addresses {
        /// An IPv4 address of the network, and the IPv6 link-local address.
        case all
        /// Only the IPv6 link-local address.
        case linkLocal
        /// Only an IPv4 address.
        case version4
        /// None, and the interface is down.
        case none
    }

    /// The folder of a user's data on each host, in the host's own /run.
    static let dataFolder = "/run/data"

    let name: String
    unowned let lab: Lab
    /// The words before every command that is to run on the host.
    let launcher: [String]
    /// The peers that were started on the host.
    private(set) var peers: [PeerProcess] = []
    /// The games, and runs of `nigh`, that were started on the host.
    private(set) var programs: [ProgramProcess] = []
    private(set) var daemon: Child?

    private let number: Int
    private var bus: Child?

    /// The machine that this runs on. Its network and daemons do not belong to the lab.
    init(theMachineOf lab: Lab) {
        name = "machine"
        number = 1
        launcher = []
        self.lab = lab
    }

    init(_ name: String, number: Int, in lab: Lab) throws {
        self.name = name
        launcher = [Lab.on, name]
        self.number = number
        self.lab = lab
        try lab.supervisor.run(["mkdir", "-p", path("")])
        try lab.supervisor.run(["ip", "netns", "add", name])
        // Without duplicate address detection, an address is usable as soon as its interface is up, as on a machine
        // that was switched on before the scenario began.
        try run([
            "sh", "-c",
            "ip link set lo up; for each in all default; do echo 0 >/proc/sys/net/ipv6/conf/$each/accept_dad; done",
        ])
    }

    /// The path, outside the host, of a file that the host finds in /run.
    func path(_ file: String) -> String { "\(Lab.folder)/hosts/\(name)/\(file)" }

    /// The host's IPv4 address on a network.
    func address(on network: String = "lan") -> String { "10.77.\(lab.number(of: network)).\(number)" }

    // MARK: Cables

    /// The name of the bridge's end of an interface's cable.
    func port(_ interface: String) -> String { "\(name)-\(interface)" }

    /// Adds an interface and joins it to the bridge `network`.
    func plug(_ interface: String, into network: String, _ addresses: Addresses) throws {
        let bridge = try lab.bridge(network)
        try lab.supervisor.run(
            ["ip", "-batch", "-"],
            input: """
                link add \(port(interface)) type veth peer name \(interface) netns \(name)
                link set \(port(interface)) addrgenmode none
                link set \(port(interface)) master \(bridge) up
                """)
        var lines: [String] = []
        if addresses == .version4 { lines.append("link set \(interface) addrgenmode none") }
        if addresses == .all || addresses == .version4 {
            lines.append("addr add \(address(on: network))/24 dev \(interface)")
        }
        if addresses != .none { lines.append("link set \(interface) up") }
        if !lines.isEmpty { try ip(lines) }
    }

    /// Pulls an interface's plug, or puts it back. When it is pulled, the host sees that there is no carrier.
    func setLink(_ interface: String = "eth0", isUp: Bool) throws {
        lab.journal.note(name, "the link of \(interface) goes \(isUp ? "up" : "down")")
        try lab.supervisor.run(["ip", "link", "set", port(interface), isUp ? "up" : "down"])
    }

    /// Drops everything between an interface and the other hosts without telling either side, or stops doing so.
    func setSilent(_ isSilent: Bool, _ interface: String = "eth0", on network: String = "lan") throws {
        lab.journal.note(name, "\(interface) is \(isSilent ? "cut off silently" : "joined again")")
        let membership = isSilent ? ["nomaster"] : ["master", try lab.bridge(network)]
        try lab.supervisor.run(["ip", "link", "set", port(interface)] + membership)
    }

    /// Drops all mDNS packets from and to the host.
    func dropMulticast() throws {
        try filter(in: #"iifname != "lo" udp dport 5353 drop"#, out: #"oifname != "lo" udp dport 5353 drop"#)
    }

    /// A rule that breaks every TCP connection. Resets pass, so that both sides notice.
    static let resets = "tcp flags & rst == 0 reject with tcp reset"

    /// Installs a packet filter with these nftables rules, in place of the previous one.
    func filter(in incoming: String = "", out outgoing: String = "") throws {
        lab.journal.note(name, "filter in: \(incoming); out: \(outgoing)")
        try run(
            ["nft", "-f", "-"],
            input: """
                table inet lab {}
                delete table inet lab
                table inet lab {
                    counter marked {}
                    chain in { type filter hook input priority 0; \(incoming); }
                    chain out { type filter hook output priority 0; \(outgoing); }
                }
                """)
    }

    /// The number of packets that matched a rule of the filter with `counter name marked`.
    func markedPackets() throws -> Int {
        let words = try run(["nft", "list", "counter", "inet", "lab", "marked"])
            .flatMap { $0.split { $0 == " " || $0 == "\t" } }
        guard let place = words.firstIndex(of: "packets"), let count = Int(words[place + 1]) else {
            throw Failure("nft tells no count: \(words)")
        }
        return count
    }

    /// The two ends of every TCP connection of the host, as `own other`.
    func connections() throws -> [String] {
        try run(["ss", "-Htn", "state", "established"]).map { line in
            line.split(separator: " ").suffix(2).joined(separator: " ")
        }
    }

    // MARK: Commands

    /// Runs a command on the host to its end.
    @discardableResult
    func run(_ command: [String], input: String = "", within limit: Duration = .seconds(20)) throws
        -> [String]
    {
        try lab.supervisor.run(launcher + command, input: input, within: limit)
    }

    /// Runs lines of `ip` on the host.
    func ip(_ lines: [String]) throws {
        for line in lines where !line.hasPrefix("link set lo") { lab.journal.note(name, "ip \(line)") }
        try run(["ip", "-batch", "-"], input: lines.joined(separator: "\n"))
    }

    /// Starts a command on the host that runs until it is ended. Its output goes to the journal.
    func start(_ command: [String], mayEnd: Bool = false) throws -> Child {
        let label = "\(name)/\(command[0])"
        let child = try lab.supervisor.start(label, launcher + command, mayEnd: mayEnd)
        child.onLine = { [journal = lab.journal] _, line in journal.note(label, line) }
        return child
    }

    /// Starts a peer on the host.
    func peer(_ name: String, _ options: PeerProcess.Options = .byItself) throws -> PeerProcess {
        let peer = try PeerProcess(name, options, on: self)
        peers.append(peer)
        return peer
    }

    /// Starts the game on the host, with a command and its arguments.
    func game(
        _ name: String, _ arguments: [String], over transport: String = "tcp:mdns=embedded",
        as identity: ProgramProcess.Identity = .ephemeral
    ) throws -> ProgramProcess {
        try program("fourinarow", name, arguments, over: transport, as: identity)
    }

    /// Starts `nigh` on the host, with a command and its arguments.
    func nigh(
        _ name: String, _ arguments: [String], over transport: String,
        as identity: ProgramProcess.Identity = .ephemeral
    ) throws -> ProgramProcess {
        try program("nigh", name, arguments, over: transport, as: identity)
    }

    private func program(
        _ program: String, _ name: String, _ arguments: [String], over transport: String,
        as identity: ProgramProcess.Identity
    ) throws -> ProgramProcess {
        let process = try ProgramProcess(
            name, arguments, of: program, over: transport, as: identity, on: self)
        programs.append(process)
        return process
    }

    /// Waits until Avahi's browser shows a resolved record of the type `type` that is right.
    func browse(_ type: String, until words: String, _ isRight: @escaping (String) -> Bool) throws {
        let browser = try start(["avahi-browse", "-rp", type], mayEnd: true)
        var shown: String?
        browser.onLine = { _, line in if line.hasPrefix("="), isRight(line) { shown = shown ?? line } }
        try lab.wait(for: "avahi-browse to show \(words)") { shown != nil }
        lab.journal.note(name, "avahi-browse shows \(shown ?? "")")
        browser.signal(SIGTERM)
    }

    // MARK: Daemons

    /// Starts the Avahi daemon, and the D-Bus daemon if it does not run, and waits until both serve.
    func startDaemons() throws {
        if bus == nil {
            try Lab.write(DaemonFiles.bus, to: path("dbus.conf"))
            try Lab.write(DaemonFiles.avahi(hostName: name), to: path("avahi.conf"))
            try lab.supervisor.run(["mkdir", "-p", path("dbus")])
            bus = try start(["dbus-daemon", "--config-file=/run/dbus.conf", "--nofork", "--nopidfile"])
            let socket = path("dbus/system_bus_socket")
            try lab.wait(for: "\(name)'s D-Bus daemon") { access(socket, F_OK) == 0 }
        }
        let label = "\(name)/avahi-daemon"
        let daemon = try lab.supervisor.start(
            label,
            [
                Lab.on, name, "avahi-daemon", "--file=/run/avahi.conf", "--no-drop-root", "--no-chroot",
                "--no-rlimits",
            ])
        self.daemon = daemon
        var isServing = false
        daemon.onLine = { [journal = lab.journal] _, line in
            if line.contains("Server startup complete") { isServing = true }
            journal.note(label, line)
        }
        try lab.wait(for: "\(name)'s Avahi daemon", within: .seconds(15)) { isServing }
    }

    /// Kills the Avahi daemon; the D-Bus daemon stays.
    func killDaemon() throws {
        guard let daemon else { throw Failure("\(name) has no Avahi daemon") }
        lab.journal.note(name, "the Avahi daemon is killed")
        daemon.mayEnd = true
        daemon.signal(SIGKILL)
        try lab.wait(for: "\(name)'s Avahi daemon to have ended") { daemon.isOver }
        self.daemon = nil
        // The file that a killed daemon leaves behind would keep the next one from starting.
        unlink(path("avahi-daemon/pid"))
    }
}

/// The configuration files of the daemons.
private enum DaemonFiles {
    static let bus = """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>system</type>
          <listen>unix:path=/run/dbus/system_bus_socket</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow user="*"/>
            <allow own="*"/>
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
          </policy>
        </busconfig>

        """

    static func avahi(hostName: String) -> String {
        """
        [server]
        host-name=\(hostName)
        use-ipv4=yes
        use-ipv6=yes
        [wide-area]
        enable-wide-area=no
        [publish]
        publish-hinfo=no
        publish-workstation=no
        [rlimits]

        """
    }
}
