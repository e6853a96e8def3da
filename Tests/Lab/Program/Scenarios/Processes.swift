import Glibc

/// Programs are killed, started again, stopped and continued, or leave.
enum Processes {
    /// The time for which a killed peer may still be shown.
    static let lossBound = Duration.seconds(30)

    static let all = [
        Scenario(
            "killed-and-restarted", "killed and started again with the same identity: one peer, no ghost"
        ) {
            lab throws(Failure) in try restart(lab, daemon: false)
        },
        Scenario("killed-and-restarted-daemon", "the same with daemons") { lab throws(Failure) in
            try restart(lab, daemon: true)
        },
        Scenario("killed", "killed and not started again: lost within 30 s", limit: .seconds(90)) {
            lab throws(Failure) in try lossAfterKill(lab, connected: true)
        },
        Scenario("killed-unconnected", "the same when there was no conversation", limit: .seconds(90)) {
            lab throws(Failure) in try lossAfterKill(lab, connected: false)
        },
        Scenario("stopped-12s", "stopped for 12 s: suspected, then heard again, nothing lost") {
            lab throws(Failure) in
            let (puma, lynx) = try pair(lab)
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
            try lab.stopSending(puma, lynx)
            try lab.exchangeMessages(puma, lynx)
            try lab.check("it is still one conversation", Lifelines.isUnbroken(puma, lynx))
        },
        Scenario("stopped-40s", "stopped for 40 s: both are notified, and talk again", limit: .seconds(120)) {
            lab throws(Failure) in
            let (puma, lynx) = try pair(lab)
            lynx.signal(SIGSTOP)
            let start = lab.journal.now
            try lab.wait(for: "Puma to be told", within: .seconds(40)) { !Lifelines.isUnbroken(puma, lynx) }
            try lab.pass(.seconds(40) + start - lab.journal.now)
            lynx.signal(SIGCONT)
            try lab.wait(for: "Lynx to be told", within: .seconds(20)) { !Lifelines.isUnbroken(lynx, puma) }
            try lab.find(puma, lynx, within: .seconds(30))
            puma.invite(lynx)
            try lab.connection(of: puma, lynx)
            try lab.exchangeMessages(puma, lynx)
        },
        Scenario(
            "crowd", "1,000 conversations of one process cut at once: no descriptor and no memory is leaked",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let lines = try lab.host("puma").run(
                [try Spawning.ownPath(), CrowdProgram.name], within: .seconds(110))
            for line in lines { lab.step(line) }
        },
        Scenario("goodbye", "Ctrl-C on a peer: the other sees it leave and vanish at once") {
            lab throws(Failure) in try goodbye(lab, daemon: false)
        },
        Scenario("goodbye-daemon", "the same with daemons") { lab throws(Failure) in
            try goodbye(lab, daemon: true)
        },
    ]

    private static func pair(
        _ lab: Lab, daemon: Bool = false
    ) throws(Failure) -> (PeerProcess, PeerProcess) {
        let puma = try lab.host("puma", daemon: daemon).peer("Puma", Findings.byItself)
        let lynx = try lab.host("lynx", daemon: daemon).peer("Lynx", Findings.byItself.kept(in: "lynx.pem"))
        try lab.meet(puma, lynx)
        return (puma, lynx)
    }

    private static func restart(_ lab: Lab, daemon: Bool) throws(Failure) {
        let (puma, lynx) = try pair(lab, daemon: daemon)
        for round in 1...2 {
            lab.step("round \(round)")
            guard let running = lynx.host.peers.last else { return }
            try lab.connection(of: puma, running)
            let start = lab.journal.now
            running.signal(SIGKILL)
            try lab.wait(for: "the process to have ended") { !running.isRunning }
            let again = try lynx.host.peer("Lynx", Findings.byItself.kept(in: "lynx.pem"))
            try lab.check("it is the same peer", again.id == lynx.id && again.run != running.run)
            try lab.wait(for: "Lynx to find Puma") { again.finds(puma) }
            again.invite(puma)
            try lab.wait(for: "Puma to be connected to the new run", within: .seconds(20)) {
                again.isConnected(to: puma) && puma.isConnected(to: again)
                    && puma.when(again, was: "disconnected", since: start) != nil
            }
            again.send(20, to: puma)
            try lab.wait(for: "20 messages of the new run") { puma.received(from: again).count == 20 }
            try lab.check("Puma knows one peer", puma.views.count == 1)
            try lab.wait(for: "Puma to see it") { puma.finds(again) }
        }
    }

    private static func lossAfterKill(_ lab: Lab, connected: Bool) throws(Failure) {
        let puma = try lab.host("puma").peer("Puma", Findings.embedded)
        let lynx = try lab.host("lynx").peer("Lynx", Findings.embedded)
        try lab.find(puma, lynx)
        if connected { try lab.meet(puma, lynx) }
        lynx.signal(SIGKILL)
        try lab.wait(for: "Puma to lose Lynx", within: lossBound) {
            !puma.finds(lynx) && puma.view(of: lynx).state == "unavailable"
        }
    }

    private static func goodbye(_ lab: Lab, daemon: Bool) throws(Failure) {
        let (puma, lynx) = try pair(lab, daemon: daemon)
        lynx.send(50, to: puma)
        try lab.wait(for: "50 messages to be taken") { lynx.sent(to: puma).count == 70 }
        lynx.signal(SIGINT)
        try lab.wait(for: "Puma to see Lynx leave", within: .seconds(2)) {
            puma.when(lynx, was: "disconnected") != nil
        }
        try lab.wait(for: "Lynx to vanish", within: .seconds(3)) {
            !puma.finds(lynx) && puma.view(of: lynx).state == "unavailable"
        }
        try lab.wait(for: "Lynx to have ended") { !lynx.isRunning }
        try lab.check("it ended in good order", lynx.ending == .exited(0))
        try lab.check("what it sent before has arrived", lynx.hasDelivered(to: puma))
    }
}
