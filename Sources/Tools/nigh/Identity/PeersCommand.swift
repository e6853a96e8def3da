import Arguments
import JSONText
import NighCore
import NighSystem
import SessionArguments

/// `nigh peers`: shows the peers that this user's programs know, and forgets them.
struct PeersCommand: Subcommand {
    /// An action on the known peers.
    enum Action: Sendable {
        case show(onlyPaired: Bool)
        case unpair(String)
        case forget(String)
    }

    let commandName = "peers"
    let output: OutputOptions
    let action: Action

    static let description = Command<any Subcommand>(
        "peers", "Shows the peers that your programs know, or forgets them",
        text: """
            A peer that was met over an encrypted link is known: its key is remembered. A paired peer is trusted, because \
            two people have compared digits (see `nigh pair`). `nigh discover` shows who is nearby, and `nigh map` which \
            of them are connected to each other.
            """,
        OutputOptions.options, Option(flag: "paired", "shows only paired peers"),
        examples: [
            Example("", "shows all known peers"), Example("forget Puma", "removes all that is known of Puma"),
        ],
        subcommands: [
            Command(
                "unpair", "Removes a pairing; the peer stays known", OutputOptions.options, peerOperand,
                examples: [Example("Puma", "trusts Puma no more than any other peer")]
            ) { PeersCommand(output: $0, action: .unpair($1)) },
            Command(
                "forget", "Forgets a peer completely", OutputOptions.options, peerOperand,
                examples: [Example("Puma", "removes all that is known of Puma")]
            ) { PeersCommand(output: $0, action: .forget($1)) },
        ]
    ) { PeersCommand(output: $0, action: .show(onlyPaired: $1)) }

    private static let peerOperand = Operand(
        "PEER", .text("PEER", candidates: .lines(of: CompleteCommand.line(for: .peers))),
        "a name, a PeerID, or the beginning of a PeerID")

    static let kind = Results.Kind("peer", plural: "peers")
    var kinds: [Results.Kind] { if case .show = action { [Self.kind] } else { [] } }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let store = try TrustStore.standard()
        switch action {
        case .show(onlyPaired: false): show(store.peers, ifNone: "No peer is known yet.", results)
        case .show(onlyPaired: true):
            show(store.peers.filter(\.isPaired), ifNone: "No peer is paired.", results)
        case .unpair(let text):
            let peer = try find(text, in: store)
            store.unpair(peer.id)
            try store.save()
            results.summarize(
                Self.members(of: peer, isPaired: false), lines: ["\(named(peer)) is not paired any more."])
        case .forget(let text):
            let peer = try find(text, in: store)
            store.forget(peer.id)
            try store.save()
            results.summarize(
                Self.members(of: peer, isPaired: false), lines: ["\(named(peer)) is forgotten."])
        }
        return .success
    }

    private func show(_ peers: [TrustedPeer], ifNone remark: Line, _ results: Results) {
        var table = TextTable([
            ("NAME", .left), ("PEER", .left), ("KEY", .left), ("SINCE", .left), ("LAST SEEN", .left),
        ])
        for peer in peers {
            results.report(Self.kind, Self.members(of: peer, isPaired: peer.isPaired), lines: [])
            table.add([
                Line(peer.name.description, .strong), Line(peer.id.short),
                peer.isPaired ? Line("paired", .good) : "known", Line("\(peer.since)"),
                Line("\(peer.lastSeen)"),
            ])
        }
        results.summarize(
            [.init("count", .integer(peers.count))],
            lines: peers.isEmpty ? [remark] : table.lines)
    }

    private func named(_ peer: TrustedPeer) -> Line {
        Line(peer.name.description, .strong) + " (\(peer.id.short))"
    }

    private static func members(of peer: TrustedPeer, isPaired: Bool) -> [JSON.Member] {
        [
            .init("id", .text(peer.id.description)), .init("short_id", .text(peer.id.short)),
            .init("name", .text(peer.name.description)), .init("paired", .bool(isPaired)),
            .init("since", .text("\(peer.since)")), .init("last_seen", .text("\(peer.lastSeen)")),
        ]
    }

    private func find(_ text: String, in store: TrustStore) throws(NighError) -> TrustedPeer {
        let all = store.peers
        let name = PeerName(text)
        let found = name.matching(all) { ($0.id, $0.name) }
        guard let peer = found.first else {
            let meant = name.suggestion(among: all.map(\.name)).map { "did you mean \($0)? " } ?? ""
            throw NighError(
                .trusting, .unknownPeer, peer: text, advice: "\(meant)`nigh peers` lists the known peers")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.name) (\($0.id.short))" }.joined(separator: ", ")
            throw NighError(
                .trusting, .invalid("choice \"\(text)\": it matches \(names)"),
                advice: "choose one by the beginning of its PeerID")
        }
        return peer
    }
}
