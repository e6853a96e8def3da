import Glibc

/// Programs are killed, started again, stopped and continued, or leave.
enum Processes {
    static let all =
        Scenario.withoutAndWithDaemons(
            "killed-and-restarted", "one peer, no ghost; killed for good, lost in 30 s"
        ) {
            try restart($0, daemon: $1)
        } + [
            Scenario("stopped", "stopped for 12 s: suspected, nothing lost; for 40 s: both are told") {
                try stop($0)
            }
        ]
        + Scenario.withoutAndWithDaemons(
            "goodbye", "Ctrl-C on a peer: the other sees it leave and vanish at once"
        ) {
            try goodbye($0, daemon: $1)
        }

    private static func restart(_ lab: Lab, daemon: Bool) throws {
        let puma = try lab.host("puma", daemon: daemon).peer("Puma")
        let host = try lab.host("lynx", daemon: daemon)
        var lynx = try host.peer("Lynx", .byItself.kept(in: "lynx.pem"))
        try Pair(puma, lynx).meet()
        // Has no conversation, so that it only hears of Lynx by discovery.
        let ocelot = try puma.host.peer("Ocelot")
        for round in 1...2 {
            lab.step("round \(round)")
            let former = lynx
            try Pair(puma, former).connection()
            let start = lab.journal.now
            former.signal(SIGKILL)
            try lab.wait(for: "the process to have ended") { !former.isRunning }
            lynx = try host.peer("Lynx", .byItself.kept(in: "lynx.pem"))
            let again = lynx
            try lab.check("it is the same peer", again.id == former.id && again.run != former.run)
            try lab.wait(for: "Lynx to find Puma") { again.finds(puma) }
            again.invite(puma)
            try Pair(again, puma).connection(within: .seconds(20))
            try lab.wait(for: "Puma to have been told of the end") {
                puma.view(of: again).states.contains { $0.state == "disconnected" && $0.at >= start }
            }
            again.send(20, to: puma)
            try lab.wait(for: "20 messages of the new run") { puma.received(from: again).count == 20 }
            try lab.wait(for: "Puma to know two peers") { puma.views.count == 2 }
            try lab.wait(for: "Puma and Ocelot to see it") { puma.finds(again) && ocelot.finds(again) }
        }
        lab.step("killed for good")
        lynx.signal(SIGKILL)
        for peer in [puma, ocelot] {
            try lab.wait(for: "\(peer.name) to lose Lynx", within: .seconds(30)) {
                !peer.finds(lynx) && peer.view(of: lynx).state == "unavailable"
            }
        }
    }

    private static func stop(_ lab: Lab) throws {
        let pair = try lab.pair()
        try pair.meet()
        let (puma, lynx) = (pair.one, pair.other)
        puma.send(to: lynx, every: .milliseconds(20))
        try lab.wait(for: "messages to flow") { lynx.received(from: puma).count > 10 }
        lynx.signal(SIGSTOP)
        try lab.wait(for: "Puma to suspect that Lynx is gone", within: .seconds(14)) {
            puma.view(of: lynx).isSuspected
        }
        try lab.pass(.seconds(1))
        lynx.signal(SIGCONT)
        try lab.wait(for: "Puma to hear Lynx again") {
            !puma.view(of: lynx).isSuspected && puma.isConnected(to: lynx)
        }
        try pair.stopAsOneConversation()
        lab.step("for 40 s")
        lynx.signal(SIGSTOP)
        let start = lab.journal.now
        try lab.wait(for: "Puma to be told", within: .seconds(40)) { !puma.isUnbroken(with: lynx) }
        try lab.pass(.seconds(40) + start - lab.journal.now)
        lynx.signal(SIGCONT)
        try lab.wait(for: "Lynx to be told", within: .seconds(20)) { !lynx.isUnbroken(with: puma) }
        try pair.find(within: .seconds(30))
        try pair.invite()
        try pair.exchangeMessages()
    }

    private static func goodbye(_ lab: Lab, daemon: Bool) throws {
        let pair = try lab.pair(daemon: daemon)
        try pair.meet()
        let (puma, lynx) = (pair.one, pair.other)
        lynx.send(50, to: puma)
        try lab.wait(for: "50 messages to be taken") { lynx.sent(to: puma).count == 70 }
        lynx.signal(SIGINT)
        try lab.wait(for: "Puma to see Lynx leave", within: .seconds(2)) { !puma.isUnbroken(with: lynx) }
        try lab.wait(for: "Lynx to vanish", within: .seconds(3)) {
            !puma.finds(lynx) && puma.view(of: lynx).state == "unavailable"
        }
        try lab.wait(for: "Lynx to have ended") { !lynx.isRunning }
        try lab.check("it ended in good order", lynx.ending == .exited(0))
        try lab.check("what it sent before has arrived", lynx.hasDelivered(to: puma))
    }
}
