import Arguments
import JSONText
import NighCore
import NighLoop
import NighSystem

/// `nigh status`: shows the user's identity, the running programs, the peers nearby, and unfinished transfers.
struct StatusCommand: Subcommand {
    let commandName = "status"
    let output: OutputOptions
    let session: SessionOptions
    /// How long the command looks for peers.
    let duration: Duration

    static let description = Command<any Subcommand>(
        "status", "Shows who you are, who is near, and what is unfinished",
        text: """
            It calls nobody and advertises nothing, so others do not notice. `nigh discover` goes on looking, `nigh doctor` \
            finds out why somebody is not seen, and `nigh transfers` continues what is unfinished.
            """,
        OutputOptions.options, SessionOptions.options,
        Option(
            "duration", short: "d", .duration(in: .zero ... .seconds(3_600)), default: .seconds(2),
            "how long to look for who is near"),
        examples: [
            Example("", "shows all of it, after looking around for 2 s"),
            Example("-d 0 --json", "shows what this machine knows, for a script"),
        ]
    ) { StatusCommand(output: $0, session: $1, duration: $2) }

    static let near = Results.Kind("peer", plural: "near")
    var kinds: [Results.Kind] { [Self.near, TransfersCommand.kind] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let file = try IdentityFile()
        let own = try? file.load(createIfMissing: false).peerID
        let name = try DisplayName.ofThisUser()
        let users = own.map { IdentityUsers(of: $0, in: file) }
        let (near, fault) = try await lookAround(results, stopRequest)
        let known = (try? TrustStore.standard().peers) ?? []
        let paired = known.filter { peer in peer.isPaired && !near.contains { $0.identity == peer.id } }
        let transfers = TransfersCommand(output: output, folder: nil, action: .list).unfinished()

        for peer in near { results.report(Self.near, PeerReport.members(of: peer), lines: []) }
        for transfer in transfers { results.report(TransfersCommand.kind, transfer.members, lines: []) }
        var table = Lines()
        table.add(
            "you",
            [
                Line(name.description, .strong)
                    + Line(own.map { " (\($0.short))" } ?? ", without an identity until a session makes one")
            ])
        table.add(
            "runs", users.map { $0.isEmpty ? [] : $0.lines.map { Line($0) } } ?? [],
            otherwise: "nothing of yours")
        table.add(
            "near", near.map { self.line(for: $0, own: own) }, otherwise: fault.map { "\($0)" } ?? "nobody")
        table.add(
            "not near",
            paired.map { Line($0.name.description) + Line(" (paired), last seen \($0.lastSeen)", .faint) })
        table.add("unfinished", transfers.map(\.line))
        results.summarize(
            [
                .init("name", .text(name.description)), .init("id", JSON(own.map { "\($0)" })),
                .init("short_id", JSON(own?.short)), .init("file", .text(file.path)),
                .init("programs", users?.json ?? .list([])),
                .init(
                    "paired_elsewhere",
                    .list(
                        paired.map {
                            [
                                "id": .text("\($0.id)"), "name": .text("\($0.name)"),
                                "last_seen": .text("\($0.lastSeen)"),
                            ]
                        })),
                .init("error", fault.map { Results.json(of: $0) } ?? .null),
            ], lines: table.lines)
        return .success
    }

    /// Returns the peers nearby, and why none can be seen if no transport works.
    private func lookAround(_ results: Results, _ stopRequest: StopRequest) async throws -> (
        [Peer], (any Error)?
    ) {
        guard duration > .zero else { return ([], nil) }
        var options = session
        options.identity = options.identity ?? .delegate
        let commandSession = try CommandSession(options, role: .client, results: results)
        commandSession.start()
        let (over, source) = AsyncStream.makeStream(of: Void.self)
        let end = commandSession.loop.now + Moment.Span(duration)
        commandSession.loop.execute { commandSession.loop.schedule(at: end) { source.finish() } }
        stopRequest.onRequest { source.finish() }
        for await _ in over {}
        let (peers, fault) = await commandSession.onLoop { session in
            (session.peers.values.filter { !$0.routes.isEmpty }, session.transportsUnavailable)
        }
        await commandSession.close()
        return (peers.sorted { ($0.name, $0.id) < ($1.name, $1.id) }, peers.isEmpty ? fault : nil)
    }

    private func line(for peer: Peer, own: PeerID?) -> Line {
        let trust = peer.identity == own ? Line("yours", .faint) : PeerReport.line(for: peer.trust)
        return Line(peer.name, .strong) + " (" + trust + ")  " + PeerReport.routes(to: peer) + "  "
            + PeerReport.info(of: peer)
    }

    /// Lines behind a word each, which only the first line of a word shows.
    private struct Lines {
        private(set) var lines: [Line] = []

        /// Adds lines; if there are none, the other text, if there is one.
        mutating func add(_ word: String, _ new: [Line], otherwise: String? = nil) {
            let all = new.isEmpty ? otherwise.map { [Line($0, .faint)] } ?? [] : new
            for (index, line) in all.enumerated() {
                lines.append(Line(index == 0 ? word : "", .faint).padded(to: 12) + line)
            }
        }
    }
}
