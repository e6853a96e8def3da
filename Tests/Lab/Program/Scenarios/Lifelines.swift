/// The link goes and comes back.
enum Lifelines {
    /// How two hosts are separated.
    enum Cut: String, Sendable {
        /// Both can see it, as when a plug is pulled.
        case plug
        /// Neither can notice.
        case silence

        func apply(_ isCut: Bool, to host: Host) throws {
            switch self {
            case .plug: try host.setLink(isUp: !isCut)
            case .silence: try host.setSilent(isCut)
            }
        }
    }

    static let all = [
        Scenario(
            "link-down", "a plug pulled for 5 s, until the link is given up, for 60 s", limit: .seconds(200)
        ) {
            try cut(.plug, $0)
        },
        Scenario("link-silent", "the same when neither side can notice", limit: .seconds(200)) {
            try cut(.silence, $0)
        },
        Scenario("connection-reset", "the connection is reset again and again: the conversation goes on") {
            lab in
            let pair = try lab.pair(.embedded)
            try pair.meet()
            try pair.sendSteadily()
            for (one, other) in pair.directions + [pair.directions[0]] {
                let breaks = { other.view(of: one).states.count { $0.state == "reconnecting" } }
                let before = breaks()
                try one.host.filter(in: "meta l4proto tcp reject with tcp reset")
                try lab.wait(for: "\(other.name) to look for another link") { breaks() > before }
                try one.host.filter()
                try pair.messageFlow()
            }
            try pair.stopAsOneConversation()
        },
        Scenario("second-way", "two hosts share two networks, and the one in use disappears") { lab in
            let hosts = try ["puma", "lynx"].map { try lab.host($0, addresses: .version4) }
            for host in hosts { try host.plug("eth1", into: "other", .version4) }
            let pair = Pair(try hosts[0].peer("Puma", .embedded), try hosts[1].peer("Lynx", .embedded))
            try pair.meet()
            try pair.checkTheyAreAlone()
            try pair.sendSteadily()
            let used = try hosts[1].connections().contains { $0.contains("10.77.0.") } ? 0 : 1
            try hosts[1].setLink("eth\(used)", isUp: false)
            try pair.messageFlow(within: .seconds(40))
            try pair.stopAsOneConversation()
        },
        Scenario("packets-blocked", "UDP is dropped, and let through again: values go on within a second") {
            try blockPackets($0)
        },
    ]

    /// Cuts the two for `span`, and expects that the conversation resumes.
    static func resumes(_ pair: Pair, after cut: Cut, _ span: () throws -> Void) throws {
        try pair.sendSteadily()
        try cut.apply(true, to: pair.other.host)
        try span()
        try cut.apply(false, to: pair.other.host)
        try pair.messageFlow(within: .seconds(20))
        try pair.stopAsOneConversation()
    }

    private static func cut(_ cut: Cut, _ lab: Lab) throws {
        let pair = try lab.pair(.embedded)
        try pair.meet()
        lab.step("for 5 s")
        // Time is the subject, here and below.
        try resumes(pair, after: cut) { try lab.pass(.seconds(5)) }
        lab.step("until the link is given up: another takes over")
        try resumes(pair, after: cut) { try pair.linkLoss(within: .seconds(25)) }
        lab.step("for 60 s: both are notified, and find each other again")
        let span = Duration.seconds(60)
        try pair.sendSteadily()
        let start = lab.journal.now
        try cut.apply(true, to: pair.other.host)
        try pair.end(within: .seconds(45))
        try pair.wait(for: "neither to show the other any more", within: span + start - lab.journal.now) {
            !$0.isFound
        }
        try lab.pass(span + start - lab.journal.now)
        try cut.apply(false, to: pair.other.host)
        try pair.find(within: .seconds(30))
        try pair.invite()
        try pair.exchangeMessagesAnew()
        try pair.checkTheyAreAlone()
    }

    private static func blockPackets(_ lab: Lab) throws {
        let pair = try lab.pair(.byHand)
        let (puma, lynx) = (pair.one, pair.other)
        try pair.callByHand()
        let pace = lab.pace()
        lynx.show(to: puma, every: .milliseconds(20))
        try lab.wait(for: "packets to pass") { lynx.view(of: puma).packets.last == true }
        for way in ["in", "out"] {
            lab.step("UDP is dropped on its way \(way)")
            let rule = "meta l4proto udp drop"
            try way == "in" ? puma.host.filter(in: rule) : puma.host.filter(out: rule)
            try lab.wait(for: "Lynx to be told") { lynx.view(of: puma).packets.last == false }
            let (changes, count) = (lynx.view(of: puma).packets.count, puma.view(of: lynx).values.count)
            try lab.wait(for: "values to go on") { puma.view(of: lynx).values.count > count + 100 }
            try lab.check("it was told once", lynx.view(of: puma).packets.count == changes)
            try puma.host.filter()
            try lab.wait(for: "packets to pass again") { lynx.view(of: puma).packets.last == true }
        }
        lynx.stopSending()
        let numbers = puma.view(of: lynx).values
        try lab.check("values come once and in order", numbers == Array(Set(numbers)).sorted())
        let gap = zip(numbers.dropFirst(), numbers).map { $0 - $1 }.max() ?? 0
        let share = pace()
        // Fifty a second were sent, and for less than a second they were lost. A session that gets no processor
        // notices later.
        try lab.check(
            "at most 50 in a row were lost: \(gap), at a pace of 1 in \(share)", gap <= 50 || share > 1.5)
        try lab.check("it is one conversation", pair.isUnbroken && puma.troubles.isEmpty)
    }
}
