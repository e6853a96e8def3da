import Glibc
import NighLoop

/// Reads the visible part of this machine's firewall, which is little without root. Changes nothing.
enum Firewall {
    /// Returns the effect of the firewall on incoming packets for TCP port `port`, and for the UDP port of that number
    /// if a rule keeps them out.
    static func check(port: UInt16) async -> [Finding] {
        let rules = await Task.detached { ruleset() }.value.map(FirewallRules.init)
        return [finding(rules, port: port, signs: signs)]
            + [rules.flatMap { blocked(by: $0, port: port) }].compactMap(\.self)
    }

    /// Returns the rule that drops UDP. A firewall that drops everything without a rule does no harm: each side sends,
    /// so packets of the other side count as answers.
    static func blocked(by rules: FirewallRules, port: UInt16) -> Finding? {
        guard case .blocked(let rule) = rules.outcome(of: "udp", port: port) else { return nil }
        return Finding(
            "tcp.firewall-packets", "firewall", .warn, "blocks UDP port \(port): \(rule)",
            advice:
                "remove that rule, or add before it: udp dport \(port) accept. Until then unreliable messages wait on the "
                + "link behind all others")
    }

    static func finding(_ rules: FirewallRules?, port: UInt16, signs: [String]) -> Finding {
        let (id, subject) = ("tcp.firewall", "firewall")
        guard let rules else {
            guard let sign = signs.first else {
                return Finding(
                    id, subject, .pass,
                    geteuid() == 0
                        ? "no sign of one, but `nft list ruleset` does not work here"
                        : "no sign of one, but only root can see its rules: `sudo nft list ruleset`")
            }
            return Finding(
                id, subject, .warn, "\(sign), but its rules cannot be read from here",
                advice: allowing(port, sign))
        }
        switch rules.outcome(of: "tcp", port: port) {
        case .unfiltered: return Finding(id, subject, .pass, "incoming packets are not filtered")
        case .allowed(let rule): return Finding(id, subject, .pass, "allows TCP port \(port): \(rule)")
        case .allowedByDefault:
            return Finding(id, subject, .pass, "no rule seen that blocks TCP port \(port)")
        case .blocked(let rule):
            return Finding(
                id, subject, .fail, "blocks TCP port \(port): \(rule)",
                advice: "remove that rule, or add before it: tcp dport \(port) accept")
        case .blockedByDefault:
            return Finding(
                id, subject, .warn, "drops packets that no rule allows, and no rule names TCP port \(port)",
                advice: allowing(port, signs.first ?? ""))
        }
    }

    private static func allowing(_ port: UInt16, _ sign: String) -> String {
        if sign.hasPrefix("ufw") { return "`sudo ufw allow \(port)/tcp` and `sudo ufw allow 5353/udp`" }
        if sign.hasPrefix("firewalld") {
            return "`sudo firewall-cmd --add-port=\(port)/tcp --add-service=mdns`"
        }
        return "allow TCP port \(port) and UDP port 5353; with port= the port stays the same"
    }

    /// The signs of ufw and firewalld that every user can see.
    private static var signs: [String] {
        var signs: [String] = []
        if text(of: "/etc/ufw/ufw.conf")?.contains("\nENABLED=yes") == true {
            signs.append("ufw is enabled")
        }
        if access("/run/firewalld", F_OK) == 0 { signs.append("firewalld is running") }
        return signs
    }

    private static func text(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return readAll(descriptor, within: 1_000)
    }

    /// All rules of this machine, as `nft list ruleset` prints them. Returns nil if nft is missing, fails, or prints
    /// nothing for two seconds. Blocks while nft runs.
    private static func ruleset() -> String? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let command: [String] = ["nft", "list", "ruleset"]
        let arguments = command.map { strdup($0) }
        let settings: [String] = ["PATH=/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL=C"]
        let variables = settings.map { strdup($0) }
        defer { for text in arguments + variables { free(text) } }
        var process = pid_t()
        let places: [String] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"]
        let path = places.first { access($0, X_OK) == 0 }
        let status = path.map {
            posix_spawn(&process, $0, &actions, nil, arguments + [nil], variables + [nil])
        }
        close(ends[1])
        guard status == 0 else { return nil }
        let text = readAll(ends[0], within: 2_000)
        if text == nil { kill(process, SIGKILL) }
        var ending: Int32 = 0
        while waitpid(process, &ending, 0) < 0 { guard errno == EINTR else { return nil } }
        return ending == 0 ? text : nil
    }

    /// Reads everything up to the end. Returns nil if nothing comes for `milliseconds`, or if it is 4 MiB or more.
    private static func readAll(_ descriptor: Int32, within milliseconds: Int32) -> String? {
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < 4 << 20 {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&waiting, 1, milliseconds)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return nil }
            let count = read(descriptor, &room, room.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += room[..<count]
        }
        return nil
    }
}
