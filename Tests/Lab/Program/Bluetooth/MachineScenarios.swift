import Glibc

/// Scenarios with two programs on two adapters of one machine with Bluetooth.
enum MachineScenarios {
    static let all = sessions + MachinePrograms.all

    private static let sessions = [
        Scenario("meets", "two programs find each other, talk, and disconnect") { lab in
            let pair = try lab.meetByRadio()
            try pair.exchangeMessages()
            try part(pair)
        },
        Scenario(
            "ten-mebibytes",
            "10 MiB go each way at once, in messages whose bytes are all checked: each arrives once, in order",
            limit: .seconds(400)
        ) { lab in
            let pair = try lab.meetByRadio()
            for (one, other) in pair.directions { one.send(640, to: other, size: 16_384) }
            try lab.wait(for: "all to be sent", within: .seconds(300)) {
                pair.directions.allSatisfy { $0.sent(to: $1).count == 660 }
            }
            try pair.delivery(within: .seconds(60))
            try lab.check("it is one conversation", pair.isUnbroken)
            try part(pair)
        },
        Scenario("adapter-off", "an adapter is off for a while: both are told, and go on afterwards") { lab in
            let pair = try lab.meetByRadio()
            try pair.sendSteadily()
            try lab.machine.run(["adapter", "hci0", "power", "off"])
            try pair.linkLoss(within: .seconds(3))
            try lab.check(
                "Puma is told why",
                pair.one.view(of: pair.other).cause.contains("the adapter hci0 is powered off"))
            try pair.one.transport(is: "`bluetoothctl power on`")
            try lab.machine.run(["adapter", "hci0", "power", "on"])
            try resume(pair)
            try pair.one.transport(is: "up")
        },
        Scenario("adapters-gone", "the adapters are unplugged under a conversation, and plugged in") { lab in
            let pair = try lab.meetByRadio()
            try pair.sendSteadily()
            try lab.machine.run(["daemon", "btvirt", "kill"])
            try pair.linkLoss(within: .seconds(3))
            try lab.check("Puma is told why", pair.one.view(of: pair.other).cause.contains("adapter"))
            try pair.one.transport(is: "there is no adapter hci0")
            try lab.machine.run(["daemon", "btvirt", "start"])
            try resume(pair)
        },
        Scenario("bluetoothd-killed", "bluetoothd is killed: the conversation does not notice") { lab in
            let pair = try lab.meetByRadio()
            let (puma, lynx) = (pair.one, pair.other)
            try pair.sendSteadily()
            try lab.machine.run(["daemon", "bluetoothd", "kill"])
            try puma.transport(is: "`systemctl start bluetooth`")
            try lab.pass(.seconds(2))
            try lab.check("the conversation goes on", puma.isUnbroken(with: lynx))
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try puma.transport(is: "up")
            try pair.stopSending()
            // A third peer that has seen nobody yet finds what was registered again.
            let jaguar = try lab.machine.peer("Jaguar", .radio(1))
            try lab.wait(for: "Jaguar to find Puma", within: .seconds(40)) { jaguar.finds(puma) }
            try lab.check("it is still one conversation", puma.isUnbroken(with: lynx))
        },
        Scenario("bluetoothd-stopped", "bluetoothd is stopped cleanly, and started again") { lab in
            let pair = try lab.meetByRadio()
            try pair.sendSteadily()
            try lab.machine.run(["daemon", "bluetoothd", "stop"])
            try pair.linkLoss(within: .seconds(5))
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try resume(pair)
        },
        Scenario("bus-killed", "the system bus is killed and started again, and bluetoothd with it") { lab in
            let puma = try lab.machine.peer("Puma", .radio(0))
            try lab.wait(for: "Puma to be advertised") { puma.advertisedName != nil }
            try lab.machine.run(["daemon", "dbus-daemon", "kill"])
            try puma.transport(is: "no D-Bus system bus")
            try lab.machine.run(["daemon", "dbus-daemon", "start"])
            try lab.machine.run(["sh", "-c", "daemon bluetoothd kill || true"])
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try puma.transport(is: "up", within: .seconds(20))
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.wait(for: "Lynx to find Puma", within: .seconds(40)) { lynx.finds(puma) }
        },
        Scenario("air-still-8s", "the radio is silent for 8 s: suspected, then heard again") { lab in
            let pair = try lab.meetByRadio()
            try pair.sendSteadily()
            try lab.machine.run(["daemon", "btvirt", "pause"])
            try lab.pass(.seconds(8))
            try lab.machine.run(["daemon", "btvirt", "resume"])
            try pair.messageFlow(within: .seconds(30))
            try pair.stopAsOneConversation()
        },
        Scenario("unpaired-kept", "bluetoothd keeps the connection to a device that is not paired") {
            try keepUnpaired($0)
        },
        Scenario(
            "killed", "a program is killed: the other is told at once, and finds it again",
            limit: .seconds(150)
        ) { lab in
            let puma = try lab.machine.peer("Puma", .radio(0))
            let lynx = try lab.machine.peer("Lynx", .radio(1).kept(in: "lynx"))
            try Pair(puma, lynx).meet(findingWithin: .seconds(40))
            lynx.signal(SIGKILL)
            try lab.wait(for: "Puma to look for another link", within: .seconds(3)) {
                puma.view(of: lynx).state == "reconnecting"
            }
            try lab.wait(for: "Puma to give Lynx up", within: .seconds(60)) {
                puma.view(of: lynx).state != "reconnecting" && !puma.finds(lynx)
            }
            let again = try lab.machine.peer("Lynx", .radio(1).kept(in: "lynx"))
            try lab.check("it is the same peer", again.id == lynx.id)
            try Pair(puma, again).find(within: .seconds(40))
            try Pair(puma, again).invite(within: .seconds(20))
            puma.send(20, to: again)
            try lab.wait(for: "20 messages to arrive") { again.received(from: puma).count == 20 }
        },
        Scenario("calls-in-vain", "each call to an unreachable peer fails with its own reason") {
            try failingCalls($0)
        },
        Scenario("late-adapter", "the adapter is off at first; once it is on, everything starts") { lab in
            try lab.machine.run(["adapter", "hci0", "power", "off"])
            let puma = try lab.machine.peer("Puma", .radio(0))
            try puma.transport(is: "the adapter hci0 is powered off")
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.machine.run(["adapter", "hci0", "power", "on"])
            try Pair(puma, lynx).meet(findingWithin: .seconds(40))
        },
        Scenario("two-programs", "two programs of one service on one adapter are two peers") { lab in
            let puma = try lab.machine.peer("Puma", .radio(0))
            let jaguar = try lab.machine.peer("Jaguar", .radio(0))
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            for peer in [puma, jaguar] { try Pair(lynx, peer).meet(findingWithin: .seconds(40)) }
            puma.quit()
            try lab.wait(for: "Lynx to lose Puma", within: .seconds(20)) { !lynx.finds(puma) }
            try Pair(lynx, jaguar).exchangeMessages()
        },
        Scenario(
            "fifty-reconnects", "fifty conversations one after the other leave no descriptor behind",
            limit: .seconds(150)
        ) { lab in
            let pair = try lab.meetByRadio()
            let descriptors = { try pair.peers.map { try descriptorCount(of: $0) }.reduce(0, +) }
            let before = try descriptors()
            for number in 0..<50 {
                let (leaver, other) = pair.directions[number % 2]
                try part(Pair(leaver, other))
                try Pair(other, leaver).invite(within: .seconds(20))
            }
            try pair.exchangeMessages()
            // An inquiry, or a pipe that has just ended, may keep some open for a moment.
            try lab.wait(for: "as few descriptors as before", within: .seconds(20)) {
                try descriptors() <= before
            }
        },
        Scenario("searches-stopped", "searches that stop while asking leave bluetoothd answering") { lab in
            let puma = try lab.machine.peer("Puma", .radio(0))
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.wait(for: "Lynx to find Puma", within: .seconds(40)) { lynx.finds(puma) }
            for number in 0..<200 {
                lynx.sendCommand("browse off")
                lynx.sendCommand("browse on")
                try lab.pass(.microseconds(number % 40 * 250))
            }
            try lab.machine.run(["adapter", "hci0", "is-powered"])
            lynx.sendCommand("browse off")
            try lab.wait(for: "Lynx to have stopped") { !lynx.finds(puma) }
            lynx.sendCommand("browse on")
            try lab.wait(for: "Lynx to find Puma again", within: .seconds(20)) { lynx.finds(puma) }
        },
        Scenario("two-ways", "over a network and Bluetooth: one peer, over what there is") { lab in
            let pair = Pair(
                try lab.machine.peer("Puma", .over(TransportFlags.both(0))),
                try lab.machine.peer("Lynx", .over(TransportFlags.both(1))))
            try pair.wait(for: "each to see the other twice", within: .seconds(40)) { $0.routes.count == 2 }
            try pair.invite()
            try lab.check(
                "the network carries it", pair.one.view(of: pair.other).transports == ["tcp"])
            try pair.sendSteadily()
            for (isUp, transport) in [(false, "bluetooth"), (true, "tcp")] {
                try lab.setNetwork(isUp: isUp)
                try pair.move(to: transport)
                try pair.messageFlow(within: .seconds(30))
            }
            try pair.stopAsOneConversation()
        },
    ]

    /// Waits until a conversation that lost its link has another one, and everything has arrived.
    private static func resume(_ pair: Pair) throws {
        try pair.connection(within: .seconds(30))
        try pair.messageFlow(within: .seconds(30))
        try pair.stopAsOneConversation()
    }

    /// Lets the first leave the second, which can then be invited again.
    private static func part(_ pair: Pair) throws {
        pair.one.leave(pair.other)
        try pair.wait(for: "both to have parted") { $0.state == "available" }
    }

    private static func keepUnpaired(_ lab: Lab) throws {
        // The seconds for which bluetoothd keeps a device after an inquiry has seen it. By default, 30.
        let timeoutSeconds = 2
        let settings = "/etc/bluetooth/main.conf"
        try lab.machine.run(["cp", settings, "/run/settings"])
        defer { _ = try? lab.machine.run(["cp", "/run/settings", settings]) }
        try lab.machine.run([
            "sh", "-c", "printf '[General]\nTemporaryTimeout = \(timeoutSeconds)\n' >\(settings)",
        ])
        try lab.machine.run(["replace-adapters"])
        // bluetoothd may have seen a device so long ago that it even ends the link that is just
        // being made. Then Puma invites again.
        let pair = Pair(
            try lab.machine.peer("Puma", .radio(0).meeting), try lab.machine.peer("Lynx", .radio(1)))
        try pair.connection(within: .seconds(40))
        try pair.exchangeMessages()
        let start = lab.journal.now
        // Meanwhile inquiries continue, each of which sees the other device again.
        try lab.pass(.seconds(timeoutSeconds * 6))
        try pair.exchangeMessages()
        try lab.check(
            "the link was never lost",
            !pair.directions.flatMap { $0.view(of: $1).states }.contains {
                $0.state == "reconnecting" && $0.at > start
            })
    }

    private static func failingCalls(_ lab: Lab) throws {
        // Done first, because a link between two devices lasts some seconds longer than its last connection, whether or
        // not new ones are allowed, and Puma asks every device that it sees for its sessions.
        try lab.machine.run(["adapter", "hci1", "discoverable", "off"])
        let puma = try lab.machine.peer("Puma", .radio(0))
        try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
        let (away, nobody) = (
            "is it switched on, discoverable and within", "nobody listens there; is the program"
        )
        for (address, reason) in [
            ("00:AA:01:01:00:01/3", away), ("00:AA:01:01:00:01/30", nobody), ("00:AA:01:01:00:01", nobody),
            ("00:AA:01:77:00:77/3", away), ("00:AA:01:00:00:00/3", "leads back to this session"),
        ] {
            try puma.call("bluetooth://\(address)", failsWith: reason, within: .seconds(20))
            try lab.machine.run(["adapter", "hci1", "discoverable", "on"])
        }
    }

    /// The number of descriptors that a peer's process has open.
    private static func descriptorCount(of peer: PeerProcess) throws -> Int {
        guard let folder = opendir("/proc/\(peer.process)/fd") else {
            throw Failure.system("no descriptors of \(peer.name)")
        }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }
}

/// The transports of a program in a machine with Bluetooth, as `-t` names them.
enum TransportFlags {
    /// One adapter.
    static func radio(_ number: Int) -> String { "bluetooth:adapter=hci\(number),interval=1" }

    /// The machine's network, and one adapter.
    static func both(_ number: Int) -> String { "tcp:interface=lo,mdns=embedded,\(radio(number))" }
}

extension PeerProcess.Options {
    /// Options for one adapter.
    static func radio(_ number: Int) -> Self { .over(TransportFlags.radio(number)) }
}

extension PeerProcess {
    /// Waits until its transport's condition, `up` or the reason for which it is down, contains these words.
    fileprivate func transport(is words: String, within limit: Duration = .seconds(10)) throws {
        try host.lab.wait(for: "\(name)'s transport to be \"\(words)\"", within: limit) {
            conditions["bluetooth"]?.contains(words) == true
        }
    }
}

extension Lab {
    /// The machine that this runs on.
    var machine: Host { hosts[0] }

    /// Switches the machine's network, which carries everything except Bluetooth, on or off.
    func setNetwork(isUp: Bool) throws {
        try machine.run(["ip", "link", "set", "lo", isUp ? "up" : "down"])
    }

    /// Connects Puma on hci0 and Lynx on hci1.
    fileprivate func meetByRadio() throws -> Pair {
        let pair = Pair(try machine.peer("Puma", .radio(0)), try machine.peer("Lynx", .radio(1)))
        try pair.meet(findingWithin: .seconds(40))
        return pair
    }
}
