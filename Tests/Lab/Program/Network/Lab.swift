import Glibc

/// The hosts of a scenario, the network between them, and time.
final class Lab {
    let journal: Journal
    let supervisor: Supervisor
    private(set) var hosts: [Host] = []

    /// The lab's folder, on a file system in memory that only the enclosure sees.
    static let folder = "/run/lab"
    /// Runs a command on a host: `on HOST COMMAND…`.
    static let on = "\(folder)/on"

    /// The networks, by their numbers. Most hosts are on the first one.
    private var networks = ["lan"]
    private var bridges: Set<String> = []
    /// Suggestions for a person in the shell of ``keep()``.
    var suggestions: [String] = []

    /// A lab whose only host is the machine that this runs on, unchanged.
    init(onThisMachine journal: Journal, limit: Duration) {
        self.journal = journal
        supervisor = Supervisor(journal: journal, limit: limit)
        hosts = [Host(theMachineOf: self)]
    }

    /// Prepares an empty enclosure.
    init(journal: Journal, limit: Duration) throws {
        self.journal = journal
        supervisor = Supervisor(journal: journal, limit: limit)
        try supervisor.run(["mount", "-t", "tmpfs", "-o", "mode=755", "lab", "/run"])
        guard mkdir(Lab.folder, 0o755) == 0 else { throw Failure.system("cannot make \(Lab.folder)") }
        // Each host sees a /run and a host name of its own, so that programs use their real paths and names. A host
        // without a D-Bus daemon has no socket at the place where libraries look for it.
        try Lab.write(
            """
            #!/bin/sh
            host=$1
            shift
            exec ip netns exec "$host" unshare --uts -- sh -c \\
                'hostname "$0" && mount --bind "\(Lab.folder)/hosts/$0" /run && exec "$@"' "$host" "$@"

            """, to: Lab.on, mode: 0o755)
        // Avahi gives its folder to the user avahi. If the lab is not started by root, there is only one user inside.
        for (file, lines) in [
            ("passwd", "root:x:0:0:root:/:/bin/sh\navahi:x:0:0::/:/bin/false\n"),
            ("group", "root:x:0:\navahi:x:0:\n"),
        ] {
            try Lab.write(lines, to: "\(Lab.folder)/\(file)")
            try supervisor.run(["mount", "--bind", "\(Lab.folder)/\(file)", "/etc/\(file)"])
        }
    }

    /// Writes a small file.
    static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw Failure.system("cannot write \(path)") }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw Failure.system("cannot write \(path)")
        }
    }

    // MARK: Hosts and bridges

    /// Adds a host on a network. With `daemon`, a D-Bus and an Avahi daemon serve when this returns.
    func host(
        _ name: String, daemon: Bool = false, addresses: Host.Addresses = .all, on network: String = "lan"
    ) throws -> Host {
        let host = try Host(name, number: hosts.count + 1, in: self)
        hosts.append(host)
        try host.plug("eth0", into: network, addresses)
        if daemon { try host.startDaemons() }
        return host
    }

    /// The number of a network, which is part of the addresses there.
    func number(of network: String) -> Int {
        if let number = networks.firstIndex(of: network) { return number }
        networks.append(network)
        return networks.count - 1
    }

    /// The name of a network's bridge, which is created when it is first asked for.
    func bridge(_ name: String) throws -> String {
        let bridge = "br-\(name)"
        guard bridges.insert(name).inserted else { return bridge }
        try supervisor.run(
            ["ip", "-batch", "-"],
            input: """
                link add \(bridge) type bridge mcast_snooping 0
                link set \(bridge) addrgenmode none
                link set \(bridge) up
                """)
        return bridge
    }

    // MARK: Waiting

    /// Waits until `condition` holds; `words` name what is awaited.
    func wait(for words: String, within limit: Duration = .seconds(10), until condition: () throws -> Bool)
        throws
    {
        let start = journal.now
        try supervisor.wait(words, within: limit, until: condition)
        journal.note("lab", "\(words): after \((journal.now - start).written) s")
    }

    /// The time so far, as `LoadAdjustedClock` counts it. What must happen soon is measured with this.
    var elapsed: Duration { supervisor.elapsed }

    /// Begins to measure how slow the machine is. The result says how many times longer than a second a second has been
    /// since, as `LoadAdjustedClock` counts.
    func pace() -> () -> Double {
        let (start, elapsed) = (journal.now, self.elapsed)
        return { [self] in (journal.now - start) / (self.elapsed - elapsed) }
    }

    /// Fails unless `condition` holds now.
    func check(_ words: String, _ condition: Bool) throws {
        guard condition else { throw Failure("it does not hold that \(words)") }
        journal.note("lab", "\(words): yes")
    }

    /// Lets time pass. Only for scenarios whose subject is the passing of time.
    func pass(_ span: Duration) throws { try supervisor.pass(span) }

    /// Prints what comes next.
    func step(_ words: String) { journal.note("lab", "— \(words) —") }

    // MARK: The end

    /// All peers of all hosts, in the order in which they were started.
    var peers: [PeerProcess] { hosts.flatMap(\.peers) }

    private var programs: [ProgramProcess] { hosts.flatMap(\.programs) }

    /// Kills everything that runs, whatever it is doing.
    func killAll() {
        for peer in peers where peer.isRunning { peer.signal(SIGKILL) }
        for program in programs where program.isRunning { program.signal(SIGKILL) }
    }

    /// Tells every peer and game that still runs to quit, and checks how all of them ended and what they received.
    func finish() throws {
        step("the end")
        for peer in peers where peer.isRunning { peer.quit() }
        for program in programs where program.isRunning { program.signal(SIGTERM) }
        try wait(for: "all peers to have ended", within: .seconds(15)) { peers.allSatisfy { !$0.isRunning } }
        for peer in peers { try peer.check() }
        for program in programs { try program.waitForEnd() }
    }

    /// Prints the state of all peers when a scenario has failed.
    func showWhatIsKnown() {
        for peer in peers { for line in peer.summary { journal.note(peer.label, line) } }
    }

    /// Keeps everything as it is, for a person to look at.
    func keep() {
        let names = hosts.map(\.name).joined(separator: ", ")
        journal.writeLine("The network is kept. `on HOST COMMAND…` runs a command on one of: \(names).")
        for line in suggestions { journal.writeLine(line) }
        guard isatty(STDIN_FILENO) != 0 else {
            journal.writeLine("kept until the input ends")
            var byte: UInt8 = 0
            while case let count = read(STDIN_FILENO, &byte, 1), count > 0 || (count < 0 && errno == EINTR) {}
            return
        }
        // Nigh's programs are found too, and each host has identities of its own.
        let path = "PATH=\(Lab.folder):\((try? Spawning.folder()) ?? ""):\(Tools.path)"
        let environment =
            Spawning.ownEnvironment.filter { !$0.hasPrefix("PATH=") }
            + [path, "XDG_DATA_HOME=\(Host.dataFolder)"]
        if let shell = try? Spawning.spawn(["bash", "--norc"], environment: environment, descriptors: []) {
            _ = Spawning.wait(for: shell)
        }
    }
}
