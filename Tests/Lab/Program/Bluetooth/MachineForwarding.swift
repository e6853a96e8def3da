import Glibc

/// Uses ssh through `nigh connect` while the conversation moves between a network and Bluetooth.
enum MachineForwarding {
    private static let folder = "/tmp/nigh-ssh"
    private static let port = 2222
    /// How many dates the far end prints.
    private static let dates = 200
    /// How large the file is that is copied meanwhile.
    private static let megabytes = getenv("LAB_MEGABYTES").flatMap { Int(String(cString: $0)) } ?? 30
    /// The network. Loopback stays as it is, because sshd is reached over it.
    private static let wire = "wire0"

    static let all = [
        Scenario(
            "ssh-two-ways",
            "ssh prints 200 dates and scp copies a file through nigh connect, while the conversation moves from the network to Bluetooth and back, twice: nothing is lost",
            limit: .seconds(200 + megabytes)
        ) { lab in
            let machine = lab.machine
            try machine.run(["rm", "-rf", folder])
            try machine.run(["mkdir", "-p", "\(folder)/received", "/run/sshd"])
            // An earlier attempt may have left it.
            try machine.run(["sh", "-c", "ip link delete \(wire) 2>/dev/null || true"])
            try machine.ip([
                "link add \(wire) type dummy", "address add 10.9.9.1/24 dev \(wire)",
                "link set \(wire) multicast on up",
            ])
            try machine.run(["sh", "-c", "head -c \(megabytes)M /dev/urandom >\(folder)/file"])
            let server = try startServer(on: machine)
            let puma = try machine.nigh(
                "Puma", ["expose", "\(port)", "--json-lines"], over: wires(0), as: .own)
            try puma.waitForOutput("\"transport\":\"tcp\"", within: .seconds(20))

            let program = "for n in $(seq \(dates)); do echo $n $(date); sleep 0.4; done"
            let shell = try machine.start(
                ["ssh"] + (try options("Shell")) + ["-p", "\(port)", "root@puma", program], mayEnd: true)
            var printed: [String] = []
            shell.onLine = { [journal = lab.journal] stream, line in
                journal.note("ssh", line)
                if stream == .output { printed.append(line) }
            }
            let copy = try machine.start(
                ["scp", "-O", "-P", "\(port)"] + (try options("Copy"))
                    + ["\(folder)/file", "root@puma:\(folder)/received/file"], mayEnd: true)
            try lab.wait(for: "ssh to print dates", within: .seconds(40)) { printed.count >= 15 }
            for isUp in [false, true, false, true] {
                try machine.ip(["link set \(wire) \(isUp ? "up" : "down")"])
                let next = printed.count + 15
                // The bytes that were under way on the lost wire are sent again first, over a slower one.
                try lab.wait(
                    for: "15 dates more over \(isUp ? "both" : "Bluetooth alone")", within: .seconds(90)
                ) {
                    printed.count >= next
                }
            }
            try lab.wait(for: "ssh and scp to end", within: .seconds(120 + megabytes)) {
                shell.isOver && copy.isOver
            }
            for (name, child) in [("ssh", shell), ("scp", copy)] {
                try lab.check("\(name) has ended well", child.ending == .exited(0))
            }
            try lab.check(
                "every date came once and in order",
                printed.map { Int($0.prefix { $0 != " " }) } == (1...dates).map { $0 })
            try machine.run(["cmp", "\(folder)/file", "\(folder)/received/file"])
            lab.journal.note("lab", "the file arrived as it was sent: yes")
            server.signal(SIGTERM)
            try machine.ip(["link delete \(wire)"])
        }
    ]

    private static func wires(_ adapter: Int) -> String {
        "tcp:interface=\(wire),mdns=embedded,\(TransportFlags.radio(adapter))"
    }

    /// Starts a sshd with keys of its own on a high port of loopback.
    private static func startServer(on machine: Host) throws -> Child {
        for key in ["host", "user"] {
            try machine.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "\(folder)/\(key)"])
        }
        try Lab.write(
            """
            Port \(port)
            ListenAddress 127.0.0.1
            HostKey \(folder)/host
            AuthorizedKeysFile \(folder)/user.pub
            StrictModes no
            UsePAM no
            PidFile none

            """, to: "\(folder)/sshd.conf")
        return try machine.start(["/usr/sbin/sshd", "-D", "-e", "-f", "\(folder)/sshd.conf"], mayEnd: true)
    }

    /// The options with which ssh and scp reach the server through Nigh.
    private static func options(_ name: String) throws -> [String] {
        let connect =
            "env XDG_DATA_HOME=/run/data \(try Spawning.path(of: "nigh")) connect Puma --port %p --name \(name)"
            + " --transport \(wires(1)) --wait 60s"
        return [
            "-q", "-F", "none", "-i", "\(folder)/user", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
            "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
            "-o", "ProxyCommand=\(connect)",
        ]
    }
}
