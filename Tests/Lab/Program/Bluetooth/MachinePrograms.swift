import Glibc

/// Programs that people use, over two adapters of one machine: games, files, and the doctor.
enum MachinePrograms {
    static let all =
        [
            Scenario("game", "two people play over Bluetooth, and so do bots: both sides see the same") {
                lab in
                let transports = [0, 1].map(TransportFlags.radio)
                let puma = try lab.machine.game("Puma", ["host", "--plain"], over: transports[0])
                let lynx = try lab.machine.game("Lynx", ["join", "Puma", "--plain"], over: transports[1])
                try Games.twoGames(puma, lynx, findingWithin: .seconds(40))
                try puma.waitForOutput("Lynx wants to play, over bluetooth.")
                for player in [puma, lynx] { player.signal(SIGTERM) }
                for player in [puma, lynx] { try player.waitForEnd() }
                try Games.machineGames(lab, 3, on: [lab.machine, lab.machine], over: transports)
            },
            Scenario(
                "game-two-ways", "a game that begins on the network and, once that is cut, ends on Bluetooth"
            ) { try moveGame($0) },
            Scenario(
                "send-cut-thrice",
                "10 MiB are sent, the radio silent for 4 s, an adapter off for 3 s and for 12 s: the file arrives whole, none of it sent from the start again",
                limit: .seconds(180)
            ) { try cutFile($0) },
            Scenario(
                "send-two-ways",
                "a folder of 200 files begins on the network, goes on over Bluetooth once that is cut, and ends on the network",
                limit: .seconds(240)
            ) { try moveFolder($0) },
            Scenario(
                "carried-from-tcp",
                "a peer with TCP only and one with Bluetooth only talk through one that has both, until it dies",
                limit: .seconds(150)
            ) { try carry($0) },
            Scenario("doctor", "each requirement of Bluetooth is removed in turn: the doctor names it") {
                lab in
                let needs = [
                    "dbus", "bluetoothd", "permission", "adapter", "unblocked", "powered", "discoverable",
                ]
                try lab.machine.doctor(["-t", adapter])
                    .check(needs.map { .pass("bluetooth.\($0)") }, status: 0)
                for broken in brokenSetUps { try broken.check(in: lab) }
                // Later scenarios find everything as it was.
                for name in ["dbus-daemon", "bluetoothd", "btvirt"] {
                    try lab.machine.run(["daemon", name, "start"])
                }
            },
        ] + MachineForwarding.all

    private static let adapter = "bluetooth:adapter=hci0"

    /// The order matters: each leaves what the next one needs.
    private static let brokenSetUps = [
        broken(
            "not discoverable", "\(adapter),discoverable=no", ["adapter", "hci0", "discoverable", "off"],
            .warn(
                "bluetooth.discoverable", "devices that are not paired do not find this one",
                cure: "`bluetoothctl discoverable on`"), status: 0),
        broken(
            "adapter off", adapter, ["adapter", "hci0", "power", "off"],
            .fail("bluetooth.powered", "the adapter hci0 is powered off", cure: "`bluetoothctl power on`"),
            status: 3),
        broken(
            "no adapter", "bluetooth", ["daemon", "btvirt", "kill"],
            .fail("bluetooth.adapter", "there is no Bluetooth adapter", cure: "plug one in"), status: 3),
        broken(
            "bluetoothd down", adapter, ["daemon", "bluetoothd", "kill"],
            .fail(
                "bluetooth.bluetoothd", "bluetoothd is not running", cure: "`systemctl start bluetooth`"),
            status: 3),
        broken(
            "no dbus", "\(adapter),tcp:interface=lo,mdns=embedded", ["daemon", "dbus-daemon", "kill"],
            .fail("bluetooth.dbus", "no D-Bus system bus", cure: "`systemctl start dbus`"), status: 1),
    ]

    private static func broken(
        _ name: String, _ transport: String, _ command: [String], _ line: DoctorLine, status: Int
    ) -> BrokenSetUp {
        BrokenSetUp(name, transport, line, status: status) { lab in
            try lab.machine.run(command)
            return lab.machine
        }
    }

    private static func moveGame(_ lab: Lab) throws {
        let puma = try lab.machine.game("Puma", ["host", "--plain"], over: TransportFlags.both(0))
        let lynx = try lab.machine.game("Lynx", ["--plain"], over: TransportFlags.both(1))
        try lynx.waitForOutput("Puma, a free seat, over tcp or bluetooth", within: .seconds(40))
        lynx.type("j 1")
        let game = try TypedGame.begin(puma, lynx)
        try puma.waitForOutput("Lynx wants to play, over tcp.")
        game.timeout = .seconds(40)
        let moves = Games.moves[0]
        try game.play(Array(moves.prefix(5)))
        try lab.setNetwork(isUp: false)
        try game.play(moves[5]) {
            for player in [puma, lynx] {
                try player.waitForOutput("The game goes on over bluetooth.", within: .seconds(40))
            }
        }
        try game.playToTheEnd(Array(moves.dropFirst(6)))
        try lab.check("nobody had left", !puma.hasPrinted("Lynx left the table"))
        try lab.setNetwork(isUp: true)
    }

    private static func cutFile(_ lab: Lab) throws {
        let machine = lab.machine
        let transfer = try Transfer(
            10 << 20, from: machine, over: TransportFlags.radio(1), to: machine,
            over: TransportFlags.radio(0), in: "/tmp", "--give-up", "90s", "--inject", "rate=1m")
        try transfer.passes(quarters: 1, within: .seconds(90))
        try machine.run(["daemon", "btvirt", "pause"])
        // Time is the subject, here and below.
        try lab.pass(.seconds(4))
        try machine.run(["daemon", "btvirt", "resume"])
        try transfer.passes(quarters: 2)
        for (span, quarters) in [(3, 3), (12, 4)] {
            let lineCount = transfer.sender.lines.count
            try machine.run(["adapter", "hci0", "power", "off"])
            try transfer.sender.waitForOutput("\"state\":\"lost\"", after: lineCount)
            try lab.pass(.seconds(span))
            try machine.run(["adapter", "hci0", "power", "on"])
            if quarters < 4 { try transfer.passes(quarters: quarters, within: .seconds(60)) }
        }
        try transfer.arrives(within: .seconds(90))
    }

    private static func moveFolder(_ lab: Lab) throws {
        let machine = lab.machine
        // The radio may be the faster one to find the other.
        let transfer = try Transfer(
            20_000_000, from: machine, over: TransportFlags.both(1), to: machine,
            over: TransportFlags.both(0),
            in: "/tmp",
            made: "mkdir $0; for n in $(seq 200); do head -c $(($1/200)) /dev/urandom >$0/photo-$n.jpg; done",
            beforeSending: { try machine.run(["adapter", "hci1", "power", "off"]) },
            "--give-up", "90s", "--inject", "rate=400k")
        try transfer.sender.waitForOutput("\"transport\":\"tcp\",\"items\":201", within: .seconds(20))
        try machine.run(["adapter", "hci1", "power", "on"])
        try transfer.passes(quarters: 1)
        try lab.setNetwork(isUp: false)
        try transfer.sender.waitForOutput(
            "\"state\":\"back\",\"transport\":\"bluetooth\"", within: .seconds(40))
        try transfer.passes(quarters: 2, within: .seconds(60))
        try lab.setNetwork(isUp: true)
        for side in [transfer.sender, transfer.receiver] {
            try side.waitForOutput("\"state\":\"moved\",\"transport\":\"tcp\"", within: .seconds(40))
        }
        try transfer.end(within: .seconds(90))
        try machine.run(["diff", "--recursive", "/tmp/sent", "/tmp/received/sent"])
        try lab.check("it was one conversation", transfer.sender.hasPrinted("\"conversations\":1,"))
    }

    private static func carry(_ lab: Lab) throws {
        // Nobody else is on the machine.
        let port = 4_711
        func peer(_ name: String, _ transport: String) throws -> PeerProcess {
            try lab.machine.peer(name, .over(transport).adding("--mesh", "--relays"))
        }
        let middle = try peer(
            "Ocelot", "tcp:interface=lo,mdns=off,port=\(port),\(TransportFlags.radio(0))")
        let far = try peer("Lynx", TransportFlags.radio(1))
        try Pair(middle, far).meet(findingWithin: .seconds(40))
        let near = try peer("Puma", "tcp:interface=lo,mdns=off")
        near.sendCommand("call tcp://127.0.0.1:\(port)")
        let ends = Pair(near, far)
        try ends.move(to: "via")
        try lab.check(
            "the two hops are TCP and Bluetooth",
            [near, far].map { $0.view(of: middle).transports } == [["tcp"], ["bluetooth"]])
        try ends.exchangeMessages()
        middle.signal(SIGKILL)
        try ends.end(within: .seconds(60))
    }
}
