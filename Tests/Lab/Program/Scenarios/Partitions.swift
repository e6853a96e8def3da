/// The servers of a cluster lose each other, while two peers are at different ones.
enum Partitions {
    static let all = [
        Scenario(
            "nats-partition",
            "the servers' connections break for 3 s: the conversation resumes, nothing is lost"
        ) { lab throws(Failure) in try resumes(lab, after: .reset, .seconds(3)) },
        Scenario(
            "nats-partition-silent",
            "nothing passes between the servers for 3 s: the conversation continues, nothing is lost"
        ) { lab throws(Failure) in try resumes(lab, after: .silent, .seconds(3)) },
        Scenario(
            "nats-partition-until-broken",
            "the servers' connections break until the peers give up their link: another takes over, nothing lost",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let (cluster, puma, lynx) = try Brokers.meet(lab)
            try resumes(lab, cluster, puma, lynx, after: .reset) { () throws(Failure) in
                try lab.wait(for: "both to look for another link", within: .seconds(25)) {
                    puma.view(of: lynx).state == "reconnecting" && lynx.view(of: puma).state == "reconnecting"
                }
                // Time for dials that find nobody.
                try lab.pass(.seconds(3))
            }
        },
        Scenario(
            "nats-partition-until-ended",
            "the servers' connections break for too long: both are told so, and talk again once they are back",
            limit: .seconds(180)
        ) { lab throws(Failure) in
            let (cluster, puma, lynx) = try Brokers.meet(lab, grace: 2)
            try lab.sendSteadily(puma, lynx)
            try cluster.separate(true, by: .reset)
            try lab.wait(for: "both to be told that the conversation is over", within: .seconds(40)) {
                !Lifelines.isUnbroken(puma, lynx) && !Lifelines.isUnbroken(lynx, puma)
            }
            for (one, other) in [(puma, lynx), (lynx, puma)] {
                let cause = one.view(of: other).states.first { $0.state == "disconnected" }?.cause ?? ""
                try lab.check("\(one.name) is told why: \(cause)", !cause.isEmpty)
            }
            try cluster.separate(false, by: .reset)
            try cluster.waitUntilComplete()
            // A session that was not found is asked every 4 s whether it is back.
            try lab.find(puma, lynx)
            lynx.invite(puma)
            try lab.connection(of: puma, lynx)
            // What was on its way when the conversation ended is lost, so only what comes now is compared.
            let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
            puma.send(20, to: lynx)
            lynx.send(20, to: puma)
            try lab.wait(for: "20 messages each in the new conversation") {
                puma.received(from: lynx).count >= before.0 + 20
                    && lynx.received(from: puma).count >= before.1 + 20
            }
        },
    ]

    private static func resumes(
        _ lab: Lab, after cut: NATSCluster.Cut, _ span: Duration
    ) throws(Failure) {
        let (cluster, puma, lynx) = try Brokers.meet(lab)
        // Time is the subject.
        try resumes(lab, cluster, puma, lynx, after: cut) { () throws(Failure) in try lab.pass(span) }
    }

    private static func resumes(
        _ lab: Lab, _ cluster: NATSCluster, _ puma: PeerProcess, _ lynx: PeerProcess,
        after cut: NATSCluster.Cut, _ meanwhile: () throws(Failure) -> Void
    ) throws(Failure) {
        try lab.sendSteadily(puma, lynx)
        let used = (try cluster.server(of: puma).host.name, try cluster.server(of: lynx).host.name)
        try lab.check("the two use different servers, \(used)", used.0 != used.1)
        try cluster.separate(true, by: cut)
        try meanwhile()
        let before = (puma.received(from: lynx).count, lynx.received(from: puma).count)
        let start = lab.journal.now
        try cluster.separate(false, by: cut)
        try lab.wait(for: "messages to flow again") {
            puma.received(from: lynx).count > before.0 + 50 && lynx.received(from: puma).count > before.1 + 50
        }
        lab.step("that took \((lab.journal.now - start).written) s")
        try lab.stopSending(puma, lynx)
        try lab.check(
            "it is still one conversation",
            Lifelines.isUnbroken(puma, lynx) && Lifelines.isUnbroken(lynx, puma))
    }
}
