import Glibc

/// Programs ask each other and call each other's actors, thousands of times, while their links break and others of them
/// are killed.
enum Calling {
    /// How often something happens in these scenarios: a few times, or as the environment says.
    static let rounds = getenv("LAB_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 4

    static let all = [
        Scenario(
            "calls-reset", "the connection is reset again and again: each call is made once, and answered",
            limit: .seconds(60 + rounds * 10)
        ) { lab throws(Failure) in
            let puma = try lab.host("puma").peer("Puma", Findings.embedded)
            let lynx = try lab.host("lynx").peer("Lynx", Findings.embedded)
            try lab.meet(puma, lynx)
            puma.ask(lynx)
            for round in 0..<rounds {
                let (one, other) = round % 2 == 0 ? (puma, lynx) : (lynx, puma)
                let breaks = other.view(of: one).states.count { $0.state == "reconnecting" }
                try one.host.filter(in: "meta l4proto tcp reject with tcp reset")
                try lab.wait(for: "\(other.name) to look for another link") {
                    other.view(of: one).states.count { $0.state == "reconnecting" } > breaks
                }
                try one.host.filter()
                try lab.wait(for: "the two to be connected again") {
                    puma.isConnected(to: lynx) && lynx.isConnected(to: puma)
                }
                // Time for calls on this link.
                try lab.pass(.seconds(1))
            }
            try check(lab, puma, lynx)
        },
        Scenario(
            "calls-killed",
            "one side of many calls is killed at any moment: nothing hangs, no call is made twice",
            limit: .seconds(60 + rounds * 15)
        ) { lab throws(Failure) in try killing(lab) },
    ]

    /// Checks, once no more is asked, that each question and call was answered once.
    static func check(_ lab: Lab, _ puma: PeerProcess, _ lynx: PeerProcess) throws(Failure) {
        puma.stopSending()
        try lab.pass(.seconds(2))
        for peer in [puma, lynx] { try peer.count() }
        let (questions, calls) = (
            puma.statistics["questionsAnswered"] ?? 0, puma.statistics["callsAnswered"] ?? 0
        )
        let asked = lynx.statistics["questionsOfOthers"] ?? 0
        try lab.check(
            "\(questions) questions and \(calls) calls were answered, \(asked) were worked on, none failed, none came twice",
            min(questions, calls) > 500
                && (questions + calls...questions + calls + 32).contains(asked)
                && puma.statistics["questionsWrong"] == 0 && puma.statistics["questionsFailed"] == 0
                && lynx.statistics["questionsRepeated"] == 0)
        try lab.check("nothing is left of them", isNothingLeft(puma) && isNothingLeft(lynx))
        try lab.check("it was one conversation", Lifelines.isUnbroken(puma, lynx))
    }

    private static func isNothingLeft(_ peer: PeerProcess) -> Bool {
        peer.statistics["questionsLeft"] == 0 && peer.statistics["questionsOfOthersLeft"] == 0
    }

    private static func killing(_ lab: Lab) throws(Failure) {
        var options = Findings.embedded
        options.showsNumbers = true
        let hosts = [try lab.host("puma"), try lab.host("lynx")]
        var (puma, lynx) = (
            try hosts[0].peer("Puma", options.kept(in: "puma.pem")),
            try hosts[1].peer("Lynx", options.kept(in: "lynx.pem"))
        )
        try lab.meet(puma, lynx)
        var numbers: [UInt64] = []
        var causes: [String: Int] = [:]
        for round in 0..<rounds {
            let before = lynx.asked.count
            puma.ask(lynx)
            try lab.wait(for: "calls to be made") { lynx.asked.count > before + 100 }
            try lab.pass(.milliseconds(.random(in: 0...300)))
            if round % 2 == 0 {
                lynx.signal(SIGKILL)
                try lab.wait(for: "Lynx to be gone") { !lynx.isRunning }
                numbers += lynx.asked
                lynx = try hosts[1].peer("Lynx", options.kept(in: "lynx.pem"))
            } else {
                puma.signal(SIGKILL)
                try lab.wait(for: "Puma to be gone") { !puma.isRunning }
                puma = try hosts[0].peer("Puma", options.kept(in: "puma.pem"))
            }
            let (left, again) = round % 2 == 0 ? (puma, lynx) : (lynx, puma)
            try lab.wait(for: "\(left.name) to be told that the other was restarted") {
                left.finds(again) && left.view(of: again).state == "available"
            }
            left.invite(again)
            try lab.connection(of: puma, lynx)
            puma.stopSending()
            try lab.pass(.milliseconds(100))
            try puma.count()
            try lab.check("Puma waits for nothing", puma.statistics["questionsLeft"] == 0)
            if round % 2 == 0 {
                for (name, count) in puma.statistics where name.hasPrefix("questionsFailed.") {
                    causes[name, default: 0] = count
                }
                // An answer that came before the end lets its task go on in the new conversation.
                try lab.check(
                    "calls under way have failed, and none was answered wrongly",
                    puma.statistics["questionsFailed"] ?? 0 > 0 && puma.statistics["questionsWrong"] == 0)
            }
        }
        numbers += lynx.asked
        puma.stopSending()
        try lynx.count()
        let twice = numbers.count - Set(numbers).count
        try lab.check("none of \(numbers.count) was worked on twice", twice == 0)
        try lab.check("nothing is left of them", isNothingLeft(lynx))
        let right: Set = ["questionsFailed.answer-lost", "questionsFailed.restarted"]
        try lab.check("the errors are right: \(causes)", Set(causes.keys).isSubset(of: right))
    }
}
