import NighCore
import NighLoop
import SessionArguments

/// Finds peers by name or PeerID.
extension CommandSession {
    /// The time without a result after which the search adapts: a transport that is down is expected to stay down, the
    /// command reports that it waits, and a peer announced with a number behind the name is taken, too.
    static let patience = Moment.Span.seconds(1)

    /// The search for one peer.
    ///
    /// `@unchecked Sendable`: all mutable state is used on the loop only.
    final class PeerSearch: @unchecked Sendable {
        fileprivate let choice: PeerChoice
        fileprivate let purpose: InvitationPurpose?
        /// Whether the command says that it searches.
        fileprivate let isAnnounced: Bool
        fileprivate var completion: ((Result<Peer, any Error>) -> Void)?
        fileprivate var result: Result<Peer, any Error>?
        /// Whether the search takes longer than `patience`.
        fileprivate var isOverdue = false
        /// The peers that were meant but run something else, and were reported.
        fileprivate var reported: Set<PeerID> = []

        fileprivate init(_ choice: PeerChoice, _ purpose: InvitationPurpose?, isAnnounced: Bool) {
            self.choice = choice
            self.purpose = purpose
            self.isAnnounced = isAnnounced
        }

        /// Whether `peer` accepts the purpose of the search, as far as it says.
        fileprivate func suits(_ peer: Peer) -> Bool { purpose?.isAccepted(by: peer) != false }
    }

    /// The maximum number of peers that a search reports because they run something else.
    private static let maximumReports = 8

    /// Waits until discovery sees the peer that `choice` names; after `patience`, also one that is announced with a
    /// number behind that name. Skips peers that advertise purposes, but not `purpose`, and says so: something else may
    /// run there soon. Fails if there is no such peer by the deadline, if there are several, or if no transport works
    /// and none has worked before. Cancelling the task ends the search.
    ///
    /// - Parameter isAnnounced: The command says that it searches, if that takes a while.
    func find(
        _ choice: PeerChoice, for purpose: InvitationPurpose? = nil, until deadline: Moment,
        isAnnounced: Bool = true
    ) async throws -> Peer {
        let search = PeerSearch(choice, purpose, isAnnounced: isAnnounced)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                loop.execute { [self] in
                    // The search may have been cancelled before it began.
                    if let result = search.result { return continuation.resume(with: result) }
                    search.completion = { continuation.resume(with: $0) }
                    searches.append(search)
                    check(search)
                    loop.schedule(at: loop.now + Self.patience) { [self] in noteDelay(of: search) }
                    guard deadline < .never else { return }
                    loop.schedule(at: deadline) { [self] in
                        end(search, .failure(transportsUnavailable ?? notFound(search)))
                    }
                }
            }
        } onCancel: {
            loop.execute { [self] in end(search, .failure(CancellationError())) }
        }
    }

    /// Checks whether a peer that is looked for is there now. Loop only.
    func checkSearches() { for search in searches { check(search) } }

    private func noteDelay(of search: PeerSearch) {
        guard search.result == nil, !isClosing else { return }
        if let transportsUnusable { return end(search, .failure(transportsUnusable)) }
        search.isOverdue = true
        check(search)
        guard search.isAnnounced, search.reported.isEmpty else { return }
        let meant = suggestion(for: search.choice).map { "; did you mean \($0)?" } ?? ""
        results.showWaiting(Line("looking for \(search.choice) …\(meant)", .faint))
    }

    /// The peers that discovery sees now.
    private var visiblePeers: [Peer] { peers.values.filter { !$0.routes.isEmpty } }

    /// The name of a visible peer that may have been meant.
    private func suggestion(for choice: PeerChoice) -> String? {
        guard case .named(let text) = choice else { return nil }
        return PeerName(text).suggestion(among: visiblePeers.map(\.displayName))
    }

    private func notFound(_ search: PeerSearch) -> any Error {
        let choice = search.choice
        if case .code = choice {
            return NighError(
                .browsing, .unknownPeer, peer: "\(choice)",
                advice:
                    "check that `nigh send` still runs there and that both are on one network; with --from and its "
                    + "address nothing has to be found; `nigh doctor` finds what is wrong")
        }
        let seen = visiblePeers
        if let purpose = search.purpose, let other = choice.matching(seen).min(by: { $0.id < $1.id }) {
            return NighError(
                .browsing, .unsupported("`\(purpose.counterpart)`"), peer: label(of: other.id),
                advice: "it \(purpose.mismatch(with: other))")
        }
        let others = seen.map { peer in
            "\(peer.name) (\(peer.identity.short)\(InvitationPurpose.program(of: peer).map { ", runs \($0)" } ?? ""))"
        }.sorted()
        let visible =
            others.isEmpty ? "no peer is visible" : "visible peers: \(others.joined(separator: ", "))"
        let meant = suggestion(for: choice).map { "did you mean \($0)? " } ?? ""
        let address =
            TransportAddress.withScheme("\(choice)").map { "; if it is an address, write \($0)" } ?? ""
        return NighError(
            .browsing, .unknownPeer, peer: "\(choice)",
            advice: "\(meant)\(visible)\(address); `nigh discover \(options.service)` lists peers, "
                + "`nigh doctor` finds what is wrong")
    }

    private func end(_ search: PeerSearch, _ result: Result<Peer, any Error>) {
        guard search.result == nil else { return }
        search.result = result
        searches.removeAll { $0 === search }
        if search.isOverdue { results.endWaiting() }
        search.completion?(result)
        search.completion = nil
    }

    private func check(_ search: PeerSearch) {
        let seen = visiblePeers
        var suitable = search.choice.matching(seen.filter(search.suits))
        // A name that was taken on the network is announced with a number.
        if suitable.isEmpty, search.isOverdue {
            suitable = search.choice.matchingNumbered(seen.filter(search.suits))
        }
        // Of several programs of one person that take the same, any will do. The one with the identity's own key is
        // there longest.
        guard let first = suitable.first(where: { $0.id == $0.identity }) ?? suitable.first else {
            if search.isOverdue { reportOthers(search.choice.matching(seen), search) }
            return
        }
        guard suitable.allSatisfy({ $0.identity == first.identity }) else {
            let names = suitable.map { label(of: $0.id) }.sorted().joined(separator: ", ")
            let advice =
                if case .code = search.choice { "name the right one with --from" } else {
                    "choose one by the beginning of its PeerID"
                }
            return end(
                search,
                .failure(
                    NighError(
                        .browsing, .invalid("choice \"\(search.choice)\": it matches \(names)"),
                        advice: advice)))
        }
        end(search, .success(first))
    }

    /// Reports the programs of matching peers that accept other purposes, and what to run there.
    private func reportOthers(_ others: [Peer], _ search: PeerSearch) {
        guard let purpose = search.purpose else { return }
        for peer in others.sorted(by: { $0.id < $1.id })
        where search.reported.count < Self.maximumReports && search.reported.insert(peer.id).inserted {
            onRemark("\(label(of: peer.id)) \(purpose.mismatch(with: peer)); waiting for that")
        }
    }
}
