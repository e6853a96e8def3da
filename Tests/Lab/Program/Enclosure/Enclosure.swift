import Glibc

/// The namespaces in which a scenario runs, and the way into them.
///
/// The lab starts itself again as process 1 of new network, mount and process namespaces. The kernel ends a process
/// namespace with its process 1, and a network namespace, with its interfaces, when its last process is gone. The
/// processes that lead inside form a chain in which each is killed when the one before it dies (`setpriv --pdeathsig`,
/// `unshare --kill-child`). So whatever ends this program ends all of it.
enum Enclosure {
    struct Options {
        var keeps = false
        var isQuiet = false

        var arguments: [String] { (keeps ? ["--keep"] : []) + (isQuiet ? ["--quiet"] : []) }
    }

    /// The first argument of the lab that runs inside.
    static let insideMark = "--inside"
    /// The exit status when this machine allows no namespaces.
    static let cannotEnter: Int32 = 3
    /// The descriptor, in the lab inside, of a pipe's reading end. Only the lab outside holds the other end.
    private static let lifeline: Int32 = 3

    // MARK: Outside

    /// Runs a scenario in an enclosure of its own; returns the exit status.
    static func enter(scenario: String, _ options: Options) -> Int32 {
        if let words = Tools.missing() {
            CommandLineOfLab.complain("lab: \(words)")
            return cannotEnter
        }
        do {
            guard let wrapping = try wrapping() else { return cannotEnter }
            let command = wrapping + [try Spawning.ownPath(), insideMark, scenario] + options.arguments
            let line = try Spawning.pipe()
            let process = try Spawning.spawn(
                command, environment: Tools.environment, descriptors: [(line.reading, lifeline)])
            close(line.reading)
            let ending = Spawning.wait(for: process)
            close(line.writing)
            if case .exited(let status) = ending { return status }
            CommandLineOfLab.complain("lab: \(scenario) \(ending)")
        } catch {
            CommandLineOfLab.complain("lab: \(error)")
        }
        return 1
    }

    /// Returns the command that starts another one inside: without a user namespace if this user is allowed to do that,
    /// otherwise with one. Reports why, and returns nil, if neither works.
    private static func wrapping() throws -> [String]? {
        let plain = [
            "setpriv", "--pdeathsig", "SIGKILL", "--",
            "unshare", "--net", "--mount", "--pid", "--mount-proc", "--kill-child",
        ]
        let asUser = plain + ["--user", "--map-root-user"]
        var reasons: [String] = []
        for candidate in geteuid() == 0 ? [plain, asUser] : [asUser] {
            let reason = try trial(candidate + ["--"])
            if let reason { reasons.append(reason) } else { return candidate + ["--"] }
        }
        CommandLineOfLab.complain(
            """
            lab: this machine lets it have no namespaces: \(reasons.joined(separator: "; "))
            It needs one of these:
              - to be root with CAP_SYS_ADMIN and CAP_NET_ADMIN (in Docker: `--privileged`), or
              - user namespaces for everybody, as Debian has them: `sysctl kernel.unprivileged_userns_clone=1
                user.max_user_namespaces=10000`; on Ubuntu also `kernel.apparmor_restrict_unprivileged_userns=0`.
            """)
        return nil
    }

    /// Tries what the lab does first behind `wrapping`. Returns nil if it works, otherwise the error message.
    private static func trial(_ wrapping: [String]) throws -> String? {
        let errors = try Spawning.pipe()
        defer { close(errors.reading) }
        let work = "mount -t tmpfs lab /run && ip netns add a && ip link add lab0 type veth peer lab1 netns a"
        let process = try Spawning.spawn(
            wrapping + ["sh", "-c", work], environment: Tools.environment,
            descriptors: [(errors.writing, STDERR_FILENO)])
        close(errors.writing)
        var said: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { room in
            while case let count = read(errors.reading, room.baseAddress, room.count), count > 0 {
                said += room[..<count]
            }
        }
        guard Spawning.wait(for: process) != .exited(0) else { return nil }
        let words = String(decoding: said, as: UTF8.self).split(separator: "\n").joined(separator: ", ")
        return words.isEmpty ? "no reason given" : words
    }

    // MARK: Inside

    /// Runs a scenario as process 1 of the enclosure.
    static func runInside(_ arguments: [String]) -> Int32 {
        // If the lab outside died before its death was watched, nothing would end this process.
        var line = pollfd(fd: lifeline, events: 0, revents: 0)
        guard poll(&line, 1, 0) == 0 else { return 1 }
        _ = fcntl(lifeline, F_SETFD, FD_CLOEXEC)
        signal(SIGPIPE, SIG_IGN)
        guard let name = arguments.first, let scenario = Scenario.callable.first(where: { $0.name == name })
        else {
            CommandLineOfLab.complain("lab: \(insideMark) is for the lab itself")
            return 2
        }
        let journal = Journal(isQuiet: arguments.contains("--quiet"))
        var lab: Lab?
        var status: Int32 = 0
        do {
            lab = try Lab(journal: journal, limit: scenario.limit)
            if let lab {
                try scenario.play(lab)
                try lab.finish()
            }
            journal.writeLine("\(Journal.seconds(journal.now))  PASSED \(name)")
        } catch {
            status = 1
            lab?.showWhatIsKnown()
            journal.writeLine("\(Journal.seconds(journal.now))  FAILED \(name): \(error)")
        }
        if arguments.contains("--keep") { lab?.keep() }
        return status
    }
}

/// The system's programs that the lab needs.
enum Tools {
    /// Where they are looked up. Includes the folders of administrators' programs, which a user's PATH often lacks.
    static var path: String {
        let own = getenv("PATH").map { String(cString: $0) } ?? ""
        return (own.isEmpty ? "" : "\(own):") + "/usr/sbin:/usr/bin:/sbin:/bin"
    }

    /// The environment of this process, with that path.
    static var environment: [String] {
        Spawning.ownEnvironment.filter { !$0.hasPrefix("PATH=") } + ["PATH=\(path)"]
    }

    /// The programs that are needed, with their Debian packages.
    private static let needed: [(program: String, package: String)] = [
        ("unshare", "util-linux"), ("setpriv", "util-linux"), ("mount", "mount"), ("ip", "iproute2"),
        ("ss", "iproute2"), ("nft", "nftables"), ("dbus-daemon", "dbus-bin"),
        ("avahi-daemon", "avahi-daemon"), ("avahi-browse", "avahi-utils"), ("avahi-publish", "avahi-utils"),
        ("tshark", "tshark"), ("openssl", "openssl"),
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
