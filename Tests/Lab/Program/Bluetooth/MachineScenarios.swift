import Glibc

/// Scenarios with two programs on two adapters of one machine with Bluetooth.
enum MachineScenarios {
    static let all =
        sessions + MachineGames.all + MachineFiles.all + MachineCarriers.all + MachineQuestions.all
        + MachineDoctors.all + MachineForwarding.all

    private static let sessions = [
        Scenario("meets", "two programs find each other, talk, and disconnect") { lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.exchangeMessages(puma, lynx)
            puma.leave(lynx)
            try lab.wait(for: "both to have parted") {
                puma.view(of: lynx).state == "available" && lynx.view(of: puma).state == "available"
            }
        },
        Scenario("adapter-off", "an adapter is off for a while: both are notified, and continue afterwards") {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.sendSteadily(puma, lynx)
            try lab.machine.run(["adapter", "hci0", "power", "off"])
            try lab.expectLinkLoss(puma, lynx, within: .seconds(3))
            try lab.check(
                "Puma is told why", puma.view(of: lynx).cause.contains("the adapter hci0 is powered off"))
            try lab.wait(for: "Puma's transport to be down") {
                puma.conditions["bluetooth"]?.contains("`bluetoothctl power on`") == true
            }
            try lab.machine.run(["adapter", "hci0", "power", "on"])
            try lab.expectResume(puma, lynx)
            try lab.check("the transport is up", puma.conditions["bluetooth"] == "up")
        },
        Scenario("adapters-gone", "the adapters are unplugged during a conversation, and plugged in again") {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.sendSteadily(puma, lynx)
            try lab.machine.run(["daemon", "btvirt", "kill"])
            try lab.expectLinkLoss(puma, lynx, within: .seconds(3))
            try lab.check("Puma is told why", puma.view(of: lynx).cause.contains("adapter"))
            try lab.wait(for: "Puma's transport to be down") {
                puma.conditions["bluetooth"]?.contains("there is no adapter hci0") == true
            }
            try lab.machine.run(["daemon", "btvirt", "start"])
            try lab.expectResume(puma, lynx)
        },
        Scenario("bluetoothd-killed", "bluetoothd is killed: the conversation does not notice") {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.sendSteadily(puma, lynx)
            try lab.machine.run(["daemon", "bluetoothd", "kill"])
            try lab.wait(for: "Puma's transport to be down") {
                puma.conditions["bluetooth"]?.contains("`systemctl start bluetooth`") == true
            }
            try lab.pass(.seconds(2))
            try lab.check("the conversation goes on", Lifelines.isUnbroken(puma, lynx))
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try lab.wait(for: "Puma's transport to be up") { puma.conditions["bluetooth"] == "up" }
            try lab.stopSending(puma, lynx)
            // A third peer that has seen nobody yet finds what was registered again.
            let jaguar = try lab.machine.peer("Jaguar", .radio(1))
            try lab.wait(for: "Jaguar to find Puma", within: .seconds(40)) { jaguar.finds(puma) }
            try lab.check("it is still one conversation", Lifelines.isUnbroken(puma, lynx))
        },
        Scenario("bluetoothd-stopped", "bluetoothd is stopped cleanly, and started again") {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.sendSteadily(puma, lynx)
            try lab.machine.run(["daemon", "bluetoothd", "stop"])
            try lab.expectLinkLoss(puma, lynx, within: .seconds(5))
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try lab.expectResume(puma, lynx)
        },
        Scenario("bus-killed", "the system bus is killed and started again, and bluetoothd with it") {
            lab throws(Failure) in
            let puma = try lab.machine.peer("Puma", .radio(0))
            try lab.wait(for: "Puma to be advertised") { puma.advertisedName != nil }
            try lab.machine.run(["daemon", "dbus-daemon", "kill"])
            try lab.wait(for: "Puma's transport to be down") {
                puma.conditions["bluetooth"]?.contains("no D-Bus system bus") == true
            }
            try lab.machine.run(["daemon", "dbus-daemon", "start"])
            try lab.machine.run(["sh", "-c", "daemon bluetoothd kill || true"])
            try lab.machine.run(["daemon", "bluetoothd", "start"])
            try lab.wait(for: "Puma's transport to be up", within: .seconds(20)) {
                puma.conditions["bluetooth"] == "up"
            }
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.wait(for: "Lynx to find Puma", within: .seconds(40)) { lynx.finds(puma) }
        },
        Scenario("air-still-8s", "the radio is silent for 8 s: the peer is suspected, then heard again") {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            try lab.sendSteadily(puma, lynx)
            try lab.machine.run(["daemon", "btvirt", "pause"])
            try lab.pass(.seconds(8))
            try lab.machine.run(["daemon", "btvirt", "resume"])
            try lab.expectMessageFlow(puma, lynx)
            try lab.stopSending(puma, lynx)
            try lab.check("it is still one conversation", Lifelines.isUnbroken(puma, lynx))
        },
        Scenario(
            "unpaired-kept", "bluetoothd keeps the connection to a device that is not paired",
            limit: .seconds(90)
        ) {
            lab throws(Failure) in
            try keepUnpaired(lab)
        },
        Scenario(
            "killed", "a program is killed: the other is notified at once, and finds it again",
            limit: .seconds(150)
        ) {
            lab throws(Failure) in
            let puma = try lab.machine.peer("Puma", .radio(0))
            let lynx = try lab.machine.peer("Lynx", .radio(1).kept(in: "lynx"))
            try lab.meet(puma, lynx, findingWithin: .seconds(40))
            lynx.signal(SIGKILL)
            try lab.wait(for: "Puma to look for another link", within: .seconds(3)) {
                puma.view(of: lynx).state == "reconnecting"
            }
            try lab.wait(for: "Puma to give Lynx up", within: .seconds(60)) {
                puma.view(of: lynx).state != "reconnecting" && !puma.finds(lynx)
            }
            let again = try lab.machine.peer("Lynx", .radio(1).kept(in: "lynx"))
            try lab.check("it is the same peer", again.id == lynx.id)
            try lab.find(puma, again, within: .seconds(40))
            puma.invite(again)
            try lab.connection(of: puma, again, within: .seconds(20))
            puma.send(20, to: again)
            try lab.wait(for: "20 messages to arrive") { again.received(from: puma).count == 20 }
        },
        Scenario(
            "calls-in-vain", "each call to an unreachable peer fails with its own reason",
            limit: .seconds(120)
        ) {
            lab throws(Failure) in
            try failingCalls(lab)
        },
        Scenario("late-adapter", "the adapter is off at first; once it is on, everything starts") {
            lab throws(Failure) in
            try lab.machine.run(["adapter", "hci0", "power", "off"])
            let puma = try lab.machine.peer("Puma", .radio(0))
            try lab.wait(for: "Puma to say what is wrong") {
                puma.conditions["bluetooth"]?.contains("the adapter hci0 is powered off") == true
            }
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.machine.run(["adapter", "hci0", "power", "on"])
            try lab.meet(puma, lynx, findingWithin: .seconds(40))
        },
        Scenario(
            "two-programs", "two programs of one service on one adapter are two peers", limit: .seconds(120)
        ) {
            lab throws(Failure) in
            let puma = try lab.machine.peer("Puma", .radio(0))
            let jaguar = try lab.machine.peer("Jaguar", .radio(0))
            let lynx = try lab.machine.peer("Lynx", .radio(1))
            try lab.meet(lynx, puma, findingWithin: .seconds(40))
            try lab.meet(lynx, jaguar, findingWithin: .seconds(40))
            puma.quit()
            try lab.wait(for: "Lynx to lose Puma", within: .seconds(20)) { !lynx.finds(puma) }
            try lab.exchangeMessages(lynx, jaguar)
        },
        Scenario(
            "fifty-reconnects", "fifty conversations one after the other leave no descriptor behind",
            limit: .seconds(150)
        ) {
            lab throws(Failure) in
            let (puma, lynx) = try lab.meetByRadio()
            let before = try lab.descriptors(of: puma) + lab.descriptors(of: lynx)
            for number in 0..<50 {
                let (leaver, other) = number.isMultiple(of: 2) ? (puma, lynx) : (lynx, puma)
                leaver.leave(other)
                try lab.wait(for: "both to have parted") {
                    puma.view(of: lynx).state == "available" && lynx.view(of: puma).state == "available"
                }
                other.invite(leaver)
                try lab.connection(of: puma, lynx, within: .seconds(20))
            }
            try lab.exchangeMessages(puma, lynx)
            // An inquiry, or a pipe that has just ended, may keep some open for a moment.
            try lab.wait(for: "as few descriptors as before", within: .seconds(20)) {
                let now = (try? lab.descriptors(of: puma) + lab.descriptors(of: lynx)) ?? .max
                return now <= before
            }
        },
        Scenario(
            "searches-stopped", "searches that stop while they ask a device leave bluetoothd answering",
            limit: .seconds(90)
        ) {
            lab throws(Failure) in
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
        Scenario(
            "two-ways", "over a network and Bluetooth at once: one peer, over whichever is available",
            limit: .seconds(120)
        ) {
            lab throws(Failure) in
            try twoTransports(lab)
        },
    ]

    private static func keepUnpaired(_ lab: Lab) throws(Failure) {
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
        let puma = try lab.machine.peer("Puma", .radio(0).meeting)
        let lynx = try lab.machine.peer("Lynx", .radio(1))
        try lab.connection(of: puma, lynx, within: .seconds(40))
        try lab.exchangeMessages(puma, lynx)
        let start = lab.journal.now
        // Meanwhile inquiries continue, each of which sees the other device again.
        try lab.pass(.seconds(timeoutSeconds * 6))
        try lab.exchangeMessages(puma, lynx)
        for (one, other) in [(puma, lynx), (lynx, puma)] {
            try lab.check(
                "\(one.name)'s link was never lost",
                !one.view(of: other).states.contains { $0.state == "reconnecting" && $0.at > start })
        }
    }

    private static func failingCalls(_ lab: Lab) throws(Failure) {
        // Done first, because a link between two devices lasts some seconds longer than its last connection, whether or
        // not new ones are allowed, and Puma asks every device that it sees for its sessions.
        try lab.machine.run(["adapter", "hci1", "discoverable", "off"])
        let puma = try lab.machine.peer("Puma", .radio(0))
        try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
        let other = "00:AA:01:01:00:01"
        func call(_ address: String, fails words: String) throws(Failure) {
            let count = puma.failures.count
            puma.sendCommand("call bluetooth://\(address)")
            try lab.wait(for: "the call to \(address) to fail", within: .seconds(20)) {
                puma.failures.count > count
            }
            try lab.check("it says \"\(words)\"", puma.failures.last?.contains(words) == true)
        }
        try call("\(other)/3", fails: "is it switched on, discoverable and within")
        try lab.machine.run(["adapter", "hci1", "discoverable", "on"])
        try call("\(other)/30", fails: "nobody listens there; is the program running there")
        try call(other, fails: "nobody listens there; is the program running there")
        try call("00:AA:01:77:00:77/3", fails: "is it switched on, discoverable and within")
        try call("00:AA:01:00:00:00/3", fails: "leads back to this session")
    }

    private static func twoTransports(_ lab: Lab) throws(Failure) {
        let puma = try lab.machine.peer("Puma", .over(TransportFlags.both(0)))
        let lynx = try lab.machine.peer("Lynx", .over(TransportFlags.both(1)))
        try lab.wait(for: "each to see the other twice", within: .seconds(40)) {
            puma.view(of: lynx).routes.count == 2 && lynx.view(of: puma).routes.count == 2
        }
        puma.invite(lynx)
        try lab.connection(of: puma, lynx)
        try lab.check("the network carries it", puma.view(of: lynx).transports == ["tcp"])
        try lab.sendSteadily(puma, lynx)
        try lab.setNetwork(isUp: false)
        try lab.wait(for: "Bluetooth to carry it", within: .seconds(30)) {
            puma.view(of: lynx).transports.last == "bluetooth"
                && lynx.view(of: puma).transports.last == "bluetooth"
        }
        try lab.expectMessageFlow(puma, lynx)
        try lab.setNetwork(isUp: true)
        try lab.wait(for: "the network to carry it again", within: .seconds(40)) {
            puma.view(of: lynx).transports.last == "tcp" && lynx.view(of: puma).transports.last == "tcp"
        }
        try lab.expectMessageFlow(puma, lynx)
        try lab.stopSending(puma, lynx)
        try lab.check(
            "nobody has lost anybody for good",
            !puma.view(of: lynx).states.contains { $0.state == "disconnected" }
                && !lynx.view(of: puma).states.contains { $0.state == "disconnected" })
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

extension Lab {
    /// The machine that this runs on.
    var machine: Host { hosts[0] }

    /// Switches the machine's network, which carries everything except Bluetooth, on or off.
    func setNetwork(isUp: Bool) throws(Failure) {
        try machine.run(["ip", "link", "set", "lo", isUp ? "up" : "down"])
    }

    /// Connects Puma on hci0 and Lynx on hci1.
    func meetByRadio() throws(Failure) -> (puma: PeerProcess, lynx: PeerProcess) {
        let puma = try machine.peer("Puma", .radio(0))
        let lynx = try machine.peer("Lynx", .radio(1))
        try meet(puma, lynx, findingWithin: .seconds(40))
        return (puma, lynx)
    }

    /// Waits until both look for another link.
    func expectLinkLoss(_ one: PeerProcess, _ other: PeerProcess, within limit: Duration) throws(Failure) {
        try wait(for: "both to look for another link", within: limit) {
            one.view(of: other).state == "reconnecting" && other.view(of: one).state == "reconnecting"
        }
    }

    /// Waits until a conversation that lost its link has another one, and everything has arrived.
    func expectResume(_ one: PeerProcess, _ other: PeerProcess) throws(Failure) {
        try connection(of: one, other, within: .seconds(30))
        try expectMessageFlow(one, other)
        try stopSending(one, other)
        try check(
            "it is still one conversation",
            Lifelines.isUnbroken(one, other) && Lifelines.isUnbroken(other, one))
    }

    /// Waits until more than fifty further messages have arrived at each side.
    func expectMessageFlow(_ one: PeerProcess, _ other: PeerProcess) throws(Failure) {
        let before = (one.received(from: other).count, other.received(from: one).count)
        try wait(for: "messages to flow", within: .seconds(30)) {
            one.received(from: other).count > before.0 + 50
                && other.received(from: one).count > before.1 + 50
        }
    }

    /// The number of descriptors that a peer's process has open.
    func descriptors(of peer: PeerProcess) throws(Failure) -> Int {
        guard let folder = opendir("/proc/\(peer.process)/fd") else {
            throw .system("no descriptors of \(peer.name)")
        }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }
}
