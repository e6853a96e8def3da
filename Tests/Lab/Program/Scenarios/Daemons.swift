import Glibc

/// The Avahi daemon goes, comes back, or hangs.
enum Daemons {
    static let all = [
        Scenario(
            "daemon-restarted", "the daemon is killed and started again under a conversation",
            limit: .seconds(90)
        ) {
            lab throws(Failure) in
            let pumaHost = try lab.host("puma", daemon: true)
            let puma = try pumaHost.peer("Puma", Findings.daemon)
            let lynx = try lab.host("lynx", daemon: true).peer("Lynx", Findings.daemon)
            try lab.meet(puma, lynx)
            try lab.sendSteadily(puma, lynx)
            try pumaHost.killDaemon()
            let before = lynx.received(from: puma).count
            try lab.wait(for: "messages to go on without the daemon") {
                lynx.received(from: puma).count > before + 20
            }
            try pumaHost.startDaemons()
            let ocelot = try lab.host("ocelot").peer("Ocelot", Findings.embedded)
            try lab.find(puma, ocelot, within: .seconds(15))
            try lab.find(puma, lynx)
            try lab.stopSending(puma, lynx)
            try lab.check(
                "the conversation was never broken",
                puma.view(of: lynx).states.map(\.state).filter {
                    $0 == "connected"
                }.count == 1)
            try lab.meet(puma, ocelot)
        },
        Scenario("daemon-later", "a peer waits for a daemon that is started after it") {
            lab throws(Failure) in
            let pumaHost = try lab.host("puma")
            let puma = try pumaHost.peer("Puma", Findings.daemon)
            let lynx = try lab.host("lynx").peer("Lynx", Findings.embedded)
            try lab.wait(for: "Puma to say what is missing") { !puma.troubles.isEmpty }
            try lab.check(
                "the daemon is named", puma.troubles.contains { $0.lowercased().contains("daemon") })
            try pumaHost.startDaemons()
            try lab.find(puma, lynx, within: .seconds(15))
            try lab.meet(puma, lynx)
        },
        Scenario(
            "daemon-comes-and-goes", "without an option, a peer uses the daemon while there is one",
            limit: .seconds(90)
        ) {
            lab throws(Failure) in
            let pumaHost = try lab.host("puma")
            let puma = try pumaHost.peer("Puma", Findings.byItself)
            let lynx = try lab.host("lynx").peer("Lynx", Findings.byItself)
            try lab.meet(puma, lynx)
            try lab.sendSteadily(puma, lynx)
            for (number, name) in ["Ocelot", "Serval", "Margay"].enumerated() {
                if number == 1 { try pumaHost.killDaemon() } else { try pumaHost.startDaemons() }
                let newcomer = try lab.host(name.lowercased()).peer(name, Findings.embedded)
                try lab.find(puma, newcomer, within: .seconds(15))
                try lab.find(lynx, newcomer)
                try lab.find(puma, lynx)
            }
            try lab.stopSending(puma, lynx)
            try lab.check(
                "it is still one conversation",
                Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
            try lab.check("Puma knows four others", puma.views.count == 4)
            try lab.check("nobody had to be told of trouble", lab.peers.allSatisfy(\.troubles.isEmpty))
        },
        Scenario(
            "daemon-stopped", "a daemon that is stopped does not block the loop", limit: .seconds(90)
        ) {
            lab throws(Failure) in
            let pumaHost = try lab.host("puma", daemon: true)
            let puma = try pumaHost.peer("Puma", Findings.daemon)
            let lynx = try lab.host("lynx").peer("Lynx", Findings.embedded)
            try lab.meet(puma, lynx)
            lab.step("the daemon is stopped")
            pumaHost.daemon?.signal(SIGSTOP)
            // Everything that makes the transport talk to the daemon.
            puma.sendCommand("info mood=patient")
            puma.sendCommand("browse off")
            puma.sendCommand("browse on")
            puma.sendCommand("advertise off")
            puma.sendCommand("advertise on")
            let (start, elapsed) = (lab.journal.now, lab.elapsed)
            for _ in 0..<5 {
                let before = (puma.view(of: lynx).pongs, lynx.view(of: puma).pongs)
                puma.ping(lynx)
                lynx.ping(puma)
                try lab.wait(for: "both to answer a ping", within: .seconds(1)) {
                    puma.view(of: lynx).pongs > before.0 && lynx.view(of: puma).pongs > before.1
                }
                // Time is the subject: a call that waits for the daemon may come later.
                try lab.pass(.milliseconds(500))
            }
            // What hangs with the daemon hangs for as long as the daemon does, however busy the machine is.
            let share = (lab.journal.now - start) / (lab.elapsed - elapsed)
            let slowest = [puma.view(of: lynx), lynx.view(of: puma)].compactMap(\.slowestRoundTrip).max()
            try lab.check(
                "no ping took longer than 250 ms, at a pace of 1 in \(share): \(slowest ?? .zero)",
                (slowest ?? .zero) < .milliseconds(250) * share)
            lab.step("the daemon goes on")
            pumaHost.daemon?.signal(SIGCONT)
            try lab.wait(for: "Lynx to see what Puma says of itself now", within: .seconds(20)) {
                lynx.view(of: puma).info == ["mood=patient"]
            }
            try lab.exchangeMessages(puma, lynx)
        },
    ]
}
