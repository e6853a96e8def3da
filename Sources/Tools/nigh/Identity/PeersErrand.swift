import Arguments
import JSONText
import NighCore

/// `nigh peers`: shows the peers that this user's programs know, and forgets them.
struct PeersErrand: Errand {
    /// What the command does with the known peers.
    enum Deed: Sendable {
        case show(onlyPaired: Bool)
        case unpair(String)
        case forget(String)
    }

    let command = "peers"
    let output: OutputOptions
    let deed: Deed

    static let description = Command<any Errand>(
        "peers", "Shows whom your programs know, and forgets them",
        text: """
            Whoever was met over an encrypted link is known: their key is remembered. Whoever was paired is trusted, because two people \
            have compared digits (see `nigh pair`).
            """,
        OutputOptions.options, Option(flag: "paired", "only those who are paired"),
        examples: [Example("", "everybody"), Example("forget Puma", "as if you had never met")],
        subcommands: [
            Command(
                "unpair", "Takes a pairing back; the peer stays known", OutputOptions.options, peerOperand,
                examples: [Example("Puma", "Puma is no more to be trusted than anybody else")]
            ) { PeersErrand(output: $0, deed: .unpair($1)) },
            Command(
                "forget", "Forgets a peer altogether", OutputOptions.options, peerOperand,
                examples: [Example("Puma", "as if you had never met")]
            ) { PeersErrand(output: $0, deed: .forget($1)) },
        ]
    ) { PeersErrand(output: $0, deed: .show(onlyPaired: $1)) }

    private static let peerOperand = Operand(
        "PEER", .text("PEER"), "a name, a PeerID, or how one begins")

    static let kind = Results.Kind("peer", plural: "peers")
    var kinds: [Results.Kind] { if case .show = deed { [Self.kind] } else { [] } }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        let store = try TrustStore.standard()
        switch deed {
        case .show(let onlyPaired): show(store.peers.filter { $0.isPaired || !onlyPaired }, results)
        case .unpair(let text):
            let peer = try find(text, in: store)
            store.unpair(peer.id)
            try store.save()
            results.sumUp(
                Self.members(of: peer, isPaired: false), words: ["\(named(peer)) is not paired any more."])
        case .forget(let text):
            let peer = try find(text, in: store)
            store.forget(peer.id)
            try store.save()
            results.sumUp(Self.members(of: peer, isPaired: false), words: ["\(named(peer)) is forgotten."])
        }
        return .well
    }

    private func show(_ peers: [TrustedPeer], _ results: Results) {
        var table = TextTable([
            ("NAME", .left), ("PEER", .left), ("KEY", .left), ("SINCE", .left), ("LAST SEEN", .left),
        ])
        for peer in peers {
            results.tell(Self.kind, Self.members(of: peer, isPaired: peer.isPaired), words: [])
            table.add([
                Line(peer.name.description, .strong), Line(peer.id.short),
                peer.isPaired ? Line("paired", .good) : "known", Line("\(peer.since)"),
                Line("\(peer.lastSeen)"),
            ])
        }
        results.sumUp(
            [.init("count", .integer(peers.count))],
            words: peers.isEmpty ? ["Nobody is known yet."] : table.lines)
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
        let found = all.filter { PeerChoice.means(text, $0.id, $0.name) }
        guard let peer = found.first else {
            throw NighError(
                .trusting, .unknownPeer, peer: text, advice: "`nigh peers` shows who is known")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.name) (\($0.id.short))" }.joined(separator: ", ")
            throw NighError(
                .trusting, .invalid("choice \"\(text)\": it means \(names)"),
                advice: "name one by how its PeerID begins")
        }
        return peer
    }
}
