/// The link goes and comes back.
enum Lifelines {
    /// How two hosts are separated.
    private enum Cut: Sendable {
        /// Both can see it, as when a plug is pulled.
        case plug
        /// Neither can notice.
        case silent

        func apply(_ isCut: Bool, to host: Host) throws(Failure) {
            switch self {
            case .plug: try host.setLink(isUp: !isCut)
            case .silent: try host.setSilent(isCut)
            }
        }
    }

    static let all = [
        Scenario("link-down-5s", "a plug pulled for 5 s: the conversation resumes, nothing lost or doubled") {
            lab throws(Failure) in try short(.plug, lab)
        },
        Scenario(
            "link-down-until-broken",
            "a plug pulled until the link is given up: another takes over, nothing lost"
        ) {
            lab throws(Failure) in
            let (puma, lynx) = try meet(lab)
            try resumes(lab, puma, lynx, after: .plug) { () throws(Failure) in
                try lab.wait(for: "both to look for another link", within: .seconds(25)) {
                    puma.view(of: lynx).state == "reconnecting" && lynx.view(of: puma).state == "reconnecting"
                }
            }
        },
        Scenario("link-silent-5s", "the same when neither side can notice") { lab throws(Failure) in
            try short(.silent, lab)
        },
        Scenario(
            "link-down-5s-by-hand", "the same without discovery: the address given by hand is called again"
        ) {
            lab throws(Failure) in
            let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=off"))
            let lynx = try lab.host("lynx").peer("Lynx", .over("tcp:mdns=off"))
            try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
            lynx.sendCommand("call tcp://\(puma.host.address()):\(try puma.port())")
            try lab.connection(of: puma, lynx)
            try resumes(lab, puma, lynx, after: .plug)
        },
        Scenario(
            "link-down-60s", "a plug pulled for 60 s: both are notified, and find each other again",
            limit: .seconds(150)
        ) {
            lab throws(Failure) in try long(.plug, lab)
        },
        Scenario("link-silent-60s", "the same when neither side can notice", limit: .seconds(150)) {
            lab throws(Failure) in try long(.silent, lab)
        },
        Scenario("connection-reset", "the connection is reset again and again: the conversation continues") {
            lab throws(Failure) in
            let (puma, lynx) = try meet(lab)
            try lab.sendSteadily(puma, lynx)
            for (one, other) in [(puma, lynx), (lynx, puma), (puma, lynx)] {
                let breaks = other.view(of: one).states.count { $0.state == "reconnecting" }
                try one.host.filter(in: "meta l4proto tcp reject with tcp reset")
                try lab.wait(for: "\(other.name) to look for another link") {
                    other.view(of: one).states.count { $0.state == "reconnecting" } > breaks
                }
                try one.host.filter()
                let before = (one.received(from: other).count, other.received(from: one).count)
                try lab.wait(for: "messages to flow again") {
                    one.received(from: other).count > before.0 + 50
                        && other.received(from: one).count > before.1 + 50
                }
            }
            try lab.stopSending(puma, lynx)
            try lab.check("it is still one conversation", isUnbroken(puma, lynx) && isUnbroken(lynx, puma))
        },
        Scenario("second-way", "two hosts share two networks, and the one in use disappears") {
            lab throws(Failure) in
            let hosts = [
                try lab.host("puma", addresses: .version4), try lab.host("lynx", addresses: .version4),
            ]
            for host in hosts { try host.plug("eth1", into: "other", .version4) }
            let puma = try hosts[0].peer("Puma", Findings.embedded)
            let lynx = try hosts[1].peer("Lynx", Findings.embedded)
            try lab.meet(puma, lynx)
            try lab.check("each knows the other once", puma.views.count == 1 && lynx.views.count == 1)
            try lab.sendSteadily(puma, lynx)
            let used = try Addresses.connections(of: hosts[1]).contains { $0.contains("10.77.0.") } ? 0 : 1
            try hosts[1].setLink("eth\(used)", isUp: false)
            let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
            try lab.wait(for: "messages to flow by the other way", within: .seconds(40)) {
                puma.received(from: lynx).count > before.0 + 50
                    && lynx.received(from: puma).count > before.1 + 50
            }
            try lab.stopSending(puma, lynx)
            try lab.check("it is still one conversation", isUnbroken(puma, lynx) && isUnbroken(lynx, puma))
        },
    ]

    /// Whether the conversation never ended as `one` saw it.
    static func isUnbroken(_ one: PeerProcess, _ other: PeerProcess) -> Bool {
        !one.view(of: other).states.contains { $0.state == "disconnected" }
    }

    private static func meet(_ lab: Lab) throws(Failure) -> (PeerProcess, PeerProcess) {
        let puma = try lab.host("puma").peer("Puma", Findings.embedded)
        let lynx = try lab.host("lynx").peer("Lynx", Findings.embedded)
        try lab.meet(puma, lynx)
        return (puma, lynx)
    }

    private static func short(_ cut: Cut, _ lab: Lab) throws(Failure) {
        let (puma, lynx) = try meet(lab)
        try resumes(lab, puma, lynx, after: cut)
    }

    private static func resumes(
        _ lab: Lab, _ puma: PeerProcess, _ lynx: PeerProcess, after cut: Cut,
        _ meanwhile: (() throws(Failure) -> Void)? = nil
    ) throws(Failure) {
        try lab.sendSteadily(puma, lynx)
        try cut.apply(true, to: lynx.host)
        // Time is the subject.
        if let meanwhile { try meanwhile() } else { try lab.pass(.seconds(5)) }
        let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
        try cut.apply(false, to: lynx.host)
        try lab.wait(for: "messages to flow again", within: .seconds(20)) {
            puma.received(from: lynx).count > before.0 + 50 && lynx.received(from: puma).count > before.1 + 50
        }
        try lab.stopSending(puma, lynx)
        try lab.check("it is still one conversation", isUnbroken(puma, lynx) && isUnbroken(lynx, puma))
    }

    private static func long(_ cut: Cut, _ lab: Lab) throws(Failure) {
        let span = Duration.seconds(60)
        let (puma, lynx) = try meet(lab)
        try lab.sendSteadily(puma, lynx)
        let start = lab.journal.now
        try cut.apply(true, to: lynx.host)
        try lab.wait(for: "both to be told that the conversation is over", within: .seconds(45)) {
            !isUnbroken(puma, lynx) && !isUnbroken(lynx, puma)
        }
        try lab.wait(for: "neither to show the other any more", within: span + start - lab.journal.now) {
            !puma.finds(lynx) && !lynx.finds(puma)
        }
        try lab.pass(span + start - lab.journal.now)
        try cut.apply(false, to: lynx.host)
        try lab.find(puma, lynx, within: .seconds(30))
        lynx.invite(puma)
        try lab.connection(of: puma, lynx)
        let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
        puma.send(20, to: lynx)
        lynx.send(20, to: puma)
        try lab.wait(for: "20 messages each in the new conversation") {
            puma.received(from: lynx).count >= before.0 + 20
                && lynx.received(from: puma).count >= before.1 + 20
        }
        try lab.check("each knows the other once", puma.views.count == 1 && lynx.views.count == 1)
    }
}
