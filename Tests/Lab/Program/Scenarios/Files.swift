/// Sends a file with `nigh send` and `nigh receive` over a network that is cut.
enum Files {
    static let all = [
        Scenario("send-cut-thrice", "64 MiB are cut thrice on their way, and never sent from the start") {
            lab in
            let (puma, lynx) = (try lab.host("puma"), try lab.host("lynx"))
            // Slow enough to cut the transfer in the middle.
            let transfer = try Transfer(64 << 20, from: lynx, to: puma, in: "/run", "--inject", "rate=6m")
            try transfer.passes(quarters: 1)
            try lynx.setLink(isUp: false)
            // Time is the subject, here and below.
            try lab.pass(.seconds(5))
            try lynx.setLink(isUp: true)
            try transfer.passes(quarters: 2)
            var lineCount = transfer.sender.lines.count
            try lynx.filter(in: Host.resets)
            try transfer.sender.waitForOutput("\"state\":\"lost\"", after: lineCount)
            try lab.pass(.seconds(3))
            try lynx.filter()
            try transfer.sender.waitForOutput("\"state\":\"back\"", after: lineCount)
            try transfer.passes(quarters: 3)
            lineCount = transfer.sender.lines.count
            try lynx.filter(in: Host.resets)
            try transfer.sender.waitForOutput("\"state\":\"ended\"", after: lineCount, within: .seconds(20))
            try lynx.filter()
            try transfer.arrives()
        },
        Scenario("send-cut-early", "a receiver's interface is down when it has run for 1 s: both go on") {
            lab in
            let (puma, lynx) = (try lab.host("puma"), try lab.host("lynx"))
            let transport = "tcp:interface=eth0,mdns=off"
            let transfer = try Transfer(
                8 << 20, from: lynx, over: transport, to: puma, over: "\(transport),port=4000",
                at: "tcp://\(puma.address()):4000", in: "/run", "--inject", "rate=2m")
            try transfer.receiver.waitForOutput("\"type\":\"start\"", within: .seconds(20))
            try puma.setLink(isUp: false)
            try lab.pass(.seconds(3))
            try puma.setLink(isUp: true)
            for side in [transfer.sender, transfer.receiver] { try side.waitForEnd(within: .seconds(40)) }
            try puma.run(["test", "-s", "/run/received/sent"])
        },
    ]
}

/// A file or folder on its way from `nigh send` to `nigh receive`.
struct Transfer {
    let sender: ProgramProcess
    let receiver: ProgramProcess
    private let size: Int
    private let place: String

    /// Starts both programs, the receiver as Puma and the sender as Lynx.
    ///
    /// - Parameters:
    ///   - place: the folder of both hosts in which the sent and the received are.
    ///   - script: makes what is sent at the path `$0`; `$1` is its size.
    init(
        _ size: Int, from source: Host, over transport: String = "tcp:mdns=embedded", to target: Host,
        over targetTransport: String = "tcp:mdns=embedded", at address: String = "Puma", in place: String,
        made script: String = "head -c $1 /dev/urandom >$0", beforeSending: () throws -> Void = {},
        _ options: String...
    ) throws {
        self.size = size
        self.place = place
        // An earlier attempt may have left something.
        for host in [source, target] { try host.run(["rm", "-rf", "\(place)/received", "\(place)/sent"]) }
        try target.run(["mkdir", "\(place)/received"])
        try source.run(["sh", "-c", script, "\(place)/sent", "\(size)"])
        receiver = try target.nigh(
            "Puma", ["receive", "--accept", "any", "--once", "--into", "\(place)/received", "--json-lines"],
            over: targetTransport)
        try beforeSending()
        sender = try source.nigh(
            "Lynx", ["send", address, "\(place)/sent", "--json-lines"] + options, over: transport)
    }

    /// Waits until that many quarters are stored.
    func passes(quarters: Int, within limit: Duration = .seconds(40)) throws {
        let count = size / 4 * quarters
        try sender.host.lab.wait(for: "\(count) bytes to be stored", within: limit) { stored >= count }
        try sender.host.lab.check("not all of it is stored yet", stored < size && sender.isRunning)
    }

    private var stored: Int {
        sender.lines.last { $0.contains("\"stored_bytes\"") }.flatMap { Self.number("stored_bytes", in: $0) }
            ?? 0
    }

    /// Returns the number with that name from a JSON object in which the name occurs once.
    private static func number(_ name: String, in line: String) -> Int? {
        line.split(separator: "\"\(name)\":").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
    }

    /// Waits until both have ended normally; checks that nothing but what was sent is there.
    func end(within limit: Duration = .seconds(60)) throws {
        try sender.waitForEnd(within: limit)
        try receiver.waitForEnd()
        let left = try receiver.host.run(["ls", "\(place)/received"])
        try sender.host.lab.check("nothing else is left: \(left.joined(separator: " "))", left == ["sent"])
    }

    /// Does the same for a file, and checks its content, and where the transfer went on.
    func arrives(within limit: Duration = .seconds(60)) throws {
        try end(within: limit)
        let lab = sender.host.lab
        let sums = try [(sender.host, "sent"), (receiver.host, "received/sent")].map { host, path in
            try host.run(["sha256sum", "\(place)/\(path)"]).first?.prefix { $0 != " " } ?? ""
        }
        try lab.check("what arrived is what was sent", sums[0] == sums[1])
        try lab.check(
            "both told its hash",
            [sender, receiver].allSatisfy { $0.hasPrinted("\"sha256\":\"\(sums[0])\"") })
        let summary = sender.lines.last { $0.contains("\"type\":\"summary\"") } ?? ""
        let counts = ["conversations", "resumed_bytes"].map { Self.number($0, in: summary) ?? 0 }
        try lab.check(
            "the last of \(counts[0]) conversations went on behind \(counts[1]) bytes",
            counts[0] > 1 && counts[1] > 0)
    }
}
