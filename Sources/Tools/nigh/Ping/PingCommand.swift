import Arguments
import JSONText
import NighLoop
import NighCore

/// `nigh ping`: pings one peer repeatedly, and reports how long each round trip takes.
struct PingCommand: Subcommand {
    let commandName = "ping"
    let output: OutputOptions
    let session: SessionOptions
    let choice: PeerChoice
    let plan: PingPlan
    let thresholds: PingThresholds
    /// How long the peer is looked for and called; nil means without limit.
    let timeout: Duration?

    static let description = Command<any Subcommand>(
        "ping", "Measures the round trip to a peer repeatedly",
        text: """
            PEER is a name, the beginning of a PeerID (four characters are enough), or an address as `nigh host` prints it. Every \
            session answers pings by itself once its program has accepted the invitation; `nigh host` always accepts.

            A ping overtakes messages that wait, so it measures the path and not the queue. A ping that falls due while there is \
            no link counts as lost, and is not sent later: so the loss shows for how long the link was gone. The session looks for \
            another link by itself. When the conversation has ended, this command calls the peer again. Replies continue once \
            there is a link.

            With --datagrams the pings travel beside the link, as a program's unreliable messages do: over tcp in UDP packets. A \
            packet that is lost is not sent again, so the loss is that of the network. If packets do not pass at all, each ping is \
            lost as blocked, until they pass.

            Jitter is the mean absolute difference between each round trip and the one before. Percentiles are by nearest rank, \
            and accurate to within 1.6 %; minimum, mean and maximum are exact. Only counts are kept, so it may run for months.
            """,
        OutputOptions.options, SessionOptions.options,
        PingCommand.planOptions, PingCommand.thresholdOptions,
        Option(
            "wait", .duration(in: .milliseconds(100) ... .seconds(86_400)),
            "the time limit for finding the peer, reaching it and getting its answer; by default 20s, and none with --until"
        ),
        Operand("PEER", .peer, "the peer to ping"),
        examples: [
            Example("Puma", "pings Puma once a second until Ctrl-C"),
            Example(
                "tcp://192.168.1.7:4000 -c 100 -i 10ms",
                "sends 100 pings, 10 ms apart, without discovery"),
            Example("Puma --until", "waits until Puma answers"),
            Example(
                "Puma -c 200 -i 50ms --max-p99 20ms --max-loss 1%",
                "checks that the link is good enough for a game; exit status 4 if not"),
            Example("Puma --datagrams -i 20ms", "measures the loss and the jitter of the network itself"),
        ]
    ) { output, session, plan, thresholds, timeout, choice in
        PingCommand(
            output: output, session: session, choice: choice, plan: plan, thresholds: thresholds,
            timeout: timeout ?? (plan.endsWithReply ? nil : .seconds(20)))
    }

    private static let planOptions = OptionGroup(
        "Pings",
        Option(
            "count", short: "c", .integer("COUNT", in: 1...1_000_000_000),
            "the number of pings; by default it pings until Ctrl-C"),
        Option(
            "interval", short: "i", .duration("INTERVAL", in: .zero ... .seconds(3_600)),
            default: .seconds(1),
            "the time between two pings; with 0 the next is sent as soon as the one before is answered"),
        Option("size", .size("BYTES", in: 0...1_024), default: 32, "the payload of each ping in bytes"),
        Option(
            "timeout", .duration(in: .milliseconds(1) ... .seconds(3_600)), default: .seconds(5),
            "how long to wait for an answer; then the ping counts as lost"),
        Option(
            flag: "until",
            "looks for the peer for as long as it takes, and ends with the first reply, for example while a device starts"
        ),
        Option(
            flag: "datagrams",
            "pings beside the link, with packets that are neither queued nor sent again")
    ) { count, interval, size, timeout, until, datagrams in
        if until, count != nil {
            throw UsageError("--until ends with the first reply, so it cannot be used with --count")
        }
        return PingPlan(
            count: count, interval: interval, size: size, timeout: timeout,
            path: datagrams ? .packets : .link, endsWithReply: until)
    }

    private static let thresholdOptions = OptionGroup(
        "Thresholds",
        Option(
            "max-p99", .duration(in: .microseconds(1) ... .seconds(3_600)),
            "exit status 4 if the 99th percentile of the round trips is longer"),
        Option("max-loss", .percent, "exit status 4 if a larger share of the pings is lost")
    ) { p99, loss in PingThresholds(p99: p99, loss: loss) }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let commandSession = try CommandSession(session, role: .client, results: results) {
            // The maximum that a session allows: this command must also work with a short interval on a stalled link.
            $0.limits.pendingPings = 192
        }
        let pinger = Pinger(commandSession, choice: choice, plan: plan, results: results)
        commandSession.start(onEvent: { pinger.handle($0) })
        let peer: Peer
        do {
            let calling = CommandSession.CallLimits(
                timeLimit: timeout, retriesAddresses: plan.endsWithReply, isAnnounced: !results.isQuiet)
            peer = try await stopRequest.cancelling { [choice] in
                let peer = try await commandSession.connect(to: choice, for: .ping, calling)
                try await checkPath(to: peer, by: commandSession)
                return peer
            }
        } catch {
            await commandSession.close()
            throw stopRequest.isRequested ? CancellationError() : error
        }
        let (path, carrier) = await commandSession.onLoop { session in
            let peer = session.peers[peer.id] ?? peer
            return (session.wholePath(to: peer), session.carrier(of: peer))
        }
        reportPeer(peer, path, carrier, results)
        stopRequest.onRequest { pinger.finish() }
        let tally = await pinger.run(with: peer)
        let leftOut = await commandSession.onLoop { _ in pinger.itemsLeftOut }
        await commandSession.close()
        return summarize(tally, about: peer, leftOut: leftOut, results)
    }

    /// Fails if pings cannot travel as they are meant to. The first packet also begins the datagram path, so that the
    /// measured pings find it open.
    private func checkPath(to peer: Peer, by commandSession: CommandSession) async throws {
        guard plan.path == .packets else { return }
        do throws(NighError) {
            _ = try await commandSession.session.ping(peer.id, over: plan.path)
        } catch {
            switch error.cause {
            case .unsupported, .unavailable: throw error
            // Packets may pass later, and a link may come back.
            default: break
            }
        }
    }

    static let peerKind = Results.Kind("peer", plural: "peers")
    var kinds: [Results.Kind] { [Self.peerKind, Pinger.reply, Pinger.loss, Pinger.change] }

    private func reportPeer(_ peer: Peer, _ path: String, _ carrier: PeerID?, _ results: Results) {
        results.report(
            Self.peerKind, Self.members(of: peer) + [.init("through", JSON(carrier.map { "\($0)" }))],
            lines: [
                Line("\(peer.name)", .strong)
                    + Line(
                        " (\(peer.identity.short)) is connected \(path); \(plan.size) bytes a ping\(wording)"
                    )
            ])
    }

    private var wording: String { plan.path == .packets ? ", in packets beside the link" : "" }

    static func members(of peer: Peer) -> [JSON.Member] {
        [
            .init("name", .text(peer.name)), .init("peer_id", .text(peer.id.description)),
            .init("transport", JSON(peer.transport)),
        ]
    }

    private func summarize(_ tally: PingTally, about peer: Peer, leftOut: Int, _ results: Results)
        -> ExitStatus
    {
        let missed = tally.received > 0 ? thresholds.missed(by: tally) : []
        results.summarize(
            [
                .init("peer", .object(Self.members(of: peer))), .init("over", .text(plan.path.rawValue)),
            ] + tally.json + [
                .init("items_left_out", .integer(leftOut)),
                .init("missed", .list(missed.map(JSON.text))),
            ],
            lines: ["" as Line] + tally.lines(about: peer) + missed.map { Line("missed: ", .bad) + Line($0) })
        guard tally.received > 0 else { return .failed }
        return missed.isEmpty ? .success : .missed
    }
}
