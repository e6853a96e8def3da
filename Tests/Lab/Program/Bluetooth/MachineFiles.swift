/// Sends files with `nigh send` and `nigh receive` over two adapters of one machine.
enum MachineFiles {
    static let all = [
        Scenario(
            "send-cut-thrice",
            "10 MiB are sent, the radio silent for 4 s, an adapter off for 3 s and for 12 s: the file arrives whole, none of it sent from the start again",
            limit: .seconds(180)
        ) { lab throws(Failure) in
            let machine = lab.machine
            let (folder, source) = ("/tmp/nigh-received", "/tmp/nigh-big.bin")
            // Removes what an earlier attempt left.
            try machine.run(["rm", "-rf", folder, source])
            try machine.run(["mkdir", folder])
            try Files.makeFile(10 << 20, at: source, on: machine)
            let receiver = try machine.nigh(
                "Puma", ["receive", "--accept", "any", "--once", "--into", folder, "--json-lines"],
                over: TransportFlags.radio(0))
            let sender = try machine.nigh(
                "Lynx", ["send", "Puma", source, "--json-lines", "--give-up", "90s", "--inject", "rate=1m"],
                over: TransportFlags.radio(1))
            let sending = Files.Sending(sender, of: 10 << 20)
            try sending.passes(quarters: 1, within: .seconds(90))
            try machine.run(["daemon", "btvirt", "pause"])
            // Time is the subject, here and below.
            try lab.pass(.seconds(4))
            try machine.run(["daemon", "btvirt", "resume"])
            try sending.passes(quarters: 2)
            try switchOff(lab, sender, for: .seconds(3))
            try sending.passes(quarters: 3, within: .seconds(60))
            try switchOff(lab, sender, for: .seconds(12))
            try Files.arrives(
                lab, sender, receiver, folder: (machine, folder), source: (machine, source),
                within: .seconds(90))
        },
        Scenario(
            "send-two-ways",
            "a folder of 200 files begins on the network, goes on over Bluetooth once that is cut, and ends on the network",
            limit: .seconds(240)
        ) { lab throws(Failure) in
            let machine = lab.machine
            let (folder, source) = ("/tmp/nigh-received", "/tmp/nigh-photos")
            // An earlier attempt may have left these.
            try machine.run(["rm", "-rf", folder, source])
            try machine.run(["mkdir", folder, source])
            try machine.run([
                "sh", "-c",
                "for n in $(seq 200); do head -c 100000 /dev/urandom > \(source)/photo-$n.jpg; done",
            ])
            let receiver = try machine.nigh(
                "Puma", ["receive", "--accept", "any", "--once", "--into", folder, "--json-lines"],
                over: TransportFlags.both(0))
            // The radio may be the faster one to find the other.
            try machine.run(["adapter", "hci1", "power", "off"])
            let sender = try machine.nigh(
                "Lynx",
                ["send", "Puma", source, "--json-lines", "--give-up", "90s", "--inject", "rate=400k"],
                over: TransportFlags.both(1))
            try sender.waitForOutput("\"transport\":\"tcp\",\"items\":201", within: .seconds(20))
            try machine.run(["adapter", "hci1", "power", "on"])
            let sending = Files.Sending(sender, of: 20_000_000)
            try sending.passes(quarters: 1)
            try lab.setNetwork(isUp: false)
            try sender.waitForOutput("\"state\":\"back\",\"transport\":\"bluetooth\"", within: .seconds(40))
            try sending.passes(quarters: 2, within: .seconds(60))
            try lab.setNetwork(isUp: true)
            for side in [sender, receiver] {
                try side.waitForOutput("\"state\":\"moved\",\"transport\":\"tcp\"", within: .seconds(40))
            }
            try sender.waitForEnd(within: .seconds(90))
            try receiver.waitForEnd()
            try machine.run(["diff", "--recursive", source, "\(folder)/nigh-photos"])
            try lab.check(
                "it was one conversation", sender.hasPrinted("\"conversations\":1,"))
            let left = try machine.run(["ls", folder])
            try lab.check("nothing else is left: \(left.joined(separator: " "))", left == ["nigh-photos"])
        },
    ]

    /// Switches the receiver's adapter off for `span`. Both sides are notified.
    private static func switchOff(
        _ lab: Lab, _ sender: GameProcess, for span: Duration
    ) throws(Failure) {
        let told = sender.lines.count
        try lab.machine.run(["adapter", "hci0", "power", "off"])
        try sender.waitForOutput("\"state\":\"lost\"", after: told)
        try lab.pass(span)
        try lab.machine.run(["adapter", "hci0", "power", "on"])
    }
}
