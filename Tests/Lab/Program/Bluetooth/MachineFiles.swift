/// Sends a file with `nigh send` and `nigh receive` over two adapters of one machine.
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
                over: radio(0))
            let sender = try machine.nigh(
                "Lynx", ["send", "Puma", source, "--json-lines", "--give-up", "90s", "--inject", "rate=1m"],
                over: radio(1))
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
        }
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

    private static func radio(_ number: Int) -> String { "bluetooth:adapter=hci\(number),interval=1" }
}
