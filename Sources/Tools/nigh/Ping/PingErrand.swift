import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh ping`: pings one peer repeatedly, and reports how long each round trip takes.
struct PingErrand: Errand {
    let command = "ping"
    let output: OutputOptions
    let session: SessionOptions
    let choice: PeerChoice
    let plan: PingPlan
    let thresholds: PingThresholds
    /// How long the peer is looked for and called; nil means without limit.
    let patience: Duration?

    static let description = Command<any Errand>(
        "ping", "Measures the round trip to a peer, again and again",
        text: """
            PEER is a name, how its PeerID begins (four characters are enough), or an address as `nigh host` prints it. Any \
            session answers by itself, once its program has accepted the invitation; `nigh host` always does.

            A ping overtakes messages that wait, so it tells how long the way is, not how long the queue. Whose turn comes while \
            there is no link is lost, and does not wait: so the loss tells for how long the link was away. The session looks for \
            another link by itself, and this command for the peer when its conversation has ended; replies go on when there is \
            one.

            Jitter is the mean of how much each round trip differs from the one before. Percentiles are by nearest rank, and known \
            to within 1.6 %; least, mean and greatest are exact. Nothing is kept but counts, so it may run for months.
            """,
        OutputOptions.options, SessionOptions.options,
        PingErrand.planOptions, PingErrand.thresholdOptions,
        Option(
            "wait", .duration(in: .milliseconds(100) ... .seconds(86_400)), default: .seconds(20),
            "for how long the peer is looked for, called again while it is not reached, and its answer waited for"
        ),
        Operand("PEER", .peer, "who is asked"),
        examples: [
            Example("Puma", "whoever is called Puma, once a second until Ctrl-C"),
            Example(
                "tcp://192.168.1.7:4000 -c 100 -i 10ms",
                "a hundred, ten milliseconds apart, without looking for anybody"),
            Example("Puma --until", "waits until Puma is there and answers"),
            Example(
                "Puma -c 200 -i 50ms --max-p99 20ms --max-loss 1%",
                "whether the link is good enough for a game; status 4 where not"),
        ]
    ) { output, session, plan, thresholds, patience, choice in
        PingErrand(
            output: output, session: session, choice: choice, plan: plan, thresholds: thresholds,
            patience: plan.endsWithReply ? nil : patience)
    }

    private static let planOptions = OptionGroup(
        "Pings",
        Option(
            "count", short: "c", .integer("COUNT", in: 1...1_000_000_000), "how many; until Ctrl-C without it"
        ),
        Option(
            "interval", short: "i", .duration("INTERVAL", in: .zero ... .seconds(3_600)),
            default: .seconds(1),
            "from one to the next; with 0 the next goes as soon as the one before is answered"),
        Option("size", .size("BYTES", in: 0...1_024), default: 32, "bytes in each"),
        Option(
            "timeout", .duration(in: .milliseconds(1) ... .seconds(3_600)), default: .seconds(5),
            "for how long an answer is waited for; then the ping is lost"),
        Option(
            flag: "until",
            "looks for the peer however long it takes, and ends with the first reply, as when a device is to come up"
        ),
        Option(flag: "quiet", short: "q", "only the summary, no single replies")
    ) { count, interval, size, timeout, until, quiet in
        if until, count != nil { throw Misuse("--until ends with the first reply, so --count says nothing") }
        return PingPlan(
            count: count, interval: interval, size: size, timeout: timeout, endsWithReply: until,
            isQuiet: quiet)
    }

    private static let thresholdOptions = OptionGroup(
        "Thresholds",
        Option(
            "max-p99", .duration(in: .microseconds(1) ... .seconds(3_600)),
            "status 4 where one ping in a hundred takes longer"),
        Option("max-loss", .percent, "status 4 where more are lost")
    ) { p99, loss in PingThresholds(p99: p99, loss: loss) }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let mine = try CommandSession(session, role: .client, results: results) {
            // The maximum that a session allows: this command must also work with a short interval on a stalled link.
            $0.limits.pendingPings = 192
        }
        let pinger = Pinger(mine, choice: choice, plan: plan, results: results)
        mine.start(onEvent: { pinger.took($0) })
        let peer: Peer
        do {
            let calling = CommandSession.CallPatience(span: patience, includesAddresses: patience == nil)
            peer = try await interruption.cancels { [choice] in
                try await mine.connect(to: choice, for: .ping, calling)
            }
        } catch {
            await mine.close()
            throw interruption.isRequested ? CancellationError() : error
        }
        reportPeer(peer, results)
        interruption.onRequest { pinger.finish() }
        let tally = await pinger.run(with: peer)
        let leftOut = await mine.onLoop { _ in pinger.itemsLeftOut }
        await mine.close()
        return sumUp(tally, about: peer, leftOut: leftOut, results)
    }

    static let peerKind = Results.Kind("peer", plural: "peers")
    static let kinds = [peerKind] + Pinger.kinds

    private func reportPeer(_ peer: Peer, _ results: Results) {
        results.tell(
            Self.peerKind, Self.members(of: peer),
            words: [
                Line("\(peer.name)", .strong)
                    + Line(
                        " (\(peer.id.short)) is connected over \(peer.transport ?? "?"); \(plan.size) bytes a ping"
                    )
            ])
    }

    static func members(of peer: Peer) -> [JSON.Member] {
        [
            .init("name", .text(peer.name.description)), .init("peer_id", .text(peer.id.description)),
            .init("transport", JSON(peer.transport)),
        ]
    }

    private func sumUp(_ tally: PingTally, about peer: Peer, leftOut: Int, _ results: Results) -> ExitStatus {
        let missed = tally.received > 0 ? thresholds.missed(by: tally) : []
        results.sumUp(
            [.init("peer", .object(Self.members(of: peer)))] + tally.json + [
                .init("items_left_out", .integer(leftOut)),
                .init("missed", .list(missed.map(JSON.text))),
            ],
            words: ["" as Line] + tally.words(about: peer) + missed.map { Line("missed: ", .bad) + Line($0) })
        guard tally.received > 0 else { return .failed }
        return missed.isEmpty ? .well : .missed
    }
}
