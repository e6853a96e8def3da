import Glibc

/// Sends a file with `nigh send` and `nigh receive` over a network that is cut.
enum Files {
    static let all = [
        Scenario(
            "send-cut-thrice",
            "64 MiB are sent, cut for 5 s, reset for 3 s and for 13 s: the file arrives whole, none of it sent from the start again",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let (puma, lynx) = try (lab.host("puma"), lab.host("lynx"))
            let (folder, source) = ("/run/received", "/run/big.bin")
            try makeFile(64 << 20, at: source, on: lynx)
            try puma.run(["mkdir", folder])
            let receiver = try puma.nigh(
                "Puma", ["receive", "--accept", "any", "--once", "--into", folder, "--json-lines"])
            // Slow enough to cut the transfer in the middle.
            let sender = try lynx.nigh(
                "Lynx", ["send", "Puma", source, "--json-lines", "--inject", "rate=6m"])
            let sending = Sending(sender, of: 64 << 20)
            try sending.passes(quarters: 1)
            try lynx.setLink(isUp: false)
            // Time is the subject, here and below.
            try lab.pass(.seconds(5))
            try lynx.setLink(isUp: true)
            try sending.passes(quarters: 2)
            var told = sender.lines.count
            try lynx.filter(in: resets)
            try sender.waitForOutput("\"state\":\"lost\"", after: told)
            try lab.pass(.seconds(3))
            try lynx.filter()
            try sender.waitForOutput("\"state\":\"back\"", after: told)
            try sending.passes(quarters: 3)
            told = sender.lines.count
            try lynx.filter(in: resets)
            try sender.waitForOutput("\"state\":\"ended\"", after: told, within: .seconds(20))
            try lynx.filter()
            try arrives(lab, sender, receiver, folder: (puma, folder), source: (lynx, source))
        },
        Scenario(
            "send-cut-early",
            "8 MiB are sent to a receiver whose one interface is down when it has run for 1 s: it waits, and both go on",
            limit: .seconds(60)
        ) { lab throws(Failure) in
            let (puma, lynx) = try (lab.host("puma"), lab.host("lynx"))
            let (folder, source) = ("/run/received", "/run/big.bin")
            try makeFile(8 << 20, at: source, on: lynx)
            try puma.run(["mkdir", folder])
            let sender = try lynx.nigh(
                "Lynx",
                ["send", "tcp://\(puma.address()):4000", source, "--json-lines", "--inject", "rate=2m"],
                over: "tcp:interface=eth0,mdns=off")
            let receiver = try puma.nigh(
                "Puma", ["receive", "--accept", "any", "--once", "--into", folder, "--json-lines"],
                over: "tcp:port=4000,interface=eth0,mdns=off")
            try receiver.waitForOutput("\"type\":\"start\"", within: .seconds(20))
            try puma.setLink(isUp: false)
            try lab.pass(.seconds(3))
            try puma.setLink(isUp: true)
            for side in [sender, receiver] { try side.waitForEnd(within: .seconds(40)) }
            try puma.run(["test", "-s", "\(folder)/big.bin"])
        },
    ]

    /// Resets pass, so that both sides notice.
    private static let resets = "tcp flags & rst == 0 reject with tcp reset"

    static func makeFile(_ bytes: Int, at path: String, on host: Host) throws(Failure) {
        try host.run(["sh", "-c", "head -c \(bytes) /dev/urandom > \(path)"])
    }

    /// Waits until both have ended normally; checks that the file arrived as it was sent, and where the transfer
    /// continued.
    static func arrives(
        _ lab: Lab, _ sender: GameProcess, _ receiver: GameProcess,
        folder: (host: Host, path: String), source: (host: Host, path: String),
        within limit: Duration = .seconds(60)
    ) throws(Failure) {
        try sender.waitForEnd(within: limit)
        try receiver.waitForEnd()
        let sum = { (host: Host, path: String) throws(Failure) -> Substring in
            let line = try host.run(["sha256sum", path]).first ?? ""
            return line.prefix { $0 != " " }
        }
        let name = source.path.split(separator: "/").last ?? ""
        let expected = try sum(source.host, source.path)
        try lab.check(
            "what arrived is what was sent", try sum(folder.host, "\(folder.path)/\(name)") == expected)
        try lab.check(
            "both told its hash",
            sender.hasPrinted("\"sha256\":\"\(expected)\"")
                && receiver.hasPrinted("\"sha256\":\"\(expected)\""))
        let summary = sender.lines.last { $0.contains("\"type\":\"summary\"") } ?? ""
        let counts = ["conversations", "resumed_bytes"].map { Sending.number($0, in: summary) ?? 0 }
        try lab.check(
            "the last of \(counts[0]) conversations went on behind \(counts[1]) bytes",
            counts[0] > 1 && counts[1] > 0)
        let left = try folder.host.run(["ls", folder.path])
        try lab.check("nothing else is left: \(left.joined(separator: " "))", left == [String(name)])
    }

    /// A `nigh send --json-lines` that reports its progress.
    struct Sending {
        private let process: GameProcess
        private let size: Int

        init(_ process: GameProcess, of size: Int) {
            self.process = process
            self.size = size
        }

        /// Waits until that many quarters of the file are stored.
        func passes(quarters: Int, within limit: Duration = .seconds(40)) throws(Failure) {
            let count = size / 4 * quarters
            try process.host.lab.wait(for: "\(count) bytes to be stored", within: limit) {
                stored >= count
            }
            try process.host.lab.check("not all of it is stored yet", stored < size && process.isRunning)
        }

        private var stored: Int {
            process.lines.last { $0.contains("\"stored_bytes\"") }
                .flatMap { Self.number("stored_bytes", in: $0) } ?? 0
        }

        /// Returns the number with that name from a JSON object in which the name occurs once.
        static func number(_ name: String, in line: String) -> Int? {
            guard let parts = line.split(separator: "\"\(name)\":").dropFirst().first else { return nil }
            return Int(parts.prefix { $0.isNumber })
        }
    }
}
