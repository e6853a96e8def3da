import NighCore

/// A peer that another peer reports to be connected to.
package struct ReportedPeer: Equatable, Sendable {
    package let report: MemberReport
    /// The path of their conversation; nil if it was not reported.
    package let path: ConversationPath?
}

/// The peers that connected peers report. A value. No report is proven.
struct ReportedPeers {
    /// One peer's report about another peer.
    private struct Report {
        var isMesh: Bool
        var isCarried: Bool
        var path: ConversationPath?
    }

    private struct Entry {
        var advertisement: Advertisement
        var reports: [PeerID: Report] = [:]
    }

    private var entries: [PeerID: Entry] = [:]
    /// The number of peers that each peer reports.
    private var counts: [PeerID: Int] = [:]

    /// Whether a peer reports this one.
    func contains(_ id: PeerID) -> Bool { entries[id] != nil }

    /// The last reported advertisement of a peer.
    func advertisement(of id: PeerID) -> Advertisement? { entries[id]?.advertisement }

    /// The peers that report to carry pipes to this one, by PeerID.
    func carriers(of id: PeerID) -> [PeerID] { reporters(of: id) { $0.isCarried } }

    /// The peers that report this one as a member of their mesh, by PeerID.
    func meshMembers(connectedTo id: PeerID) -> [PeerID] { reporters(of: id) { $0.isMesh } }

    private func reporters(of id: PeerID, where isMeant: (Report) -> Bool) -> [PeerID] {
        (entries[id]?.reports ?? [:]).filter { isMeant($0.value) }.keys.sorted()
    }

    /// The peers that one peer reports, by PeerID.
    func peers(reportedBy reporter: PeerID) -> [ReportedPeer] {
        entries.values.compactMap { entry in
            entry.reports[reporter].map { report in
                ReportedPeer(
                    report: MemberReport(
                        isMesh: report.isMesh, isCarried: report.isCarried,
                        advertisement: entry.advertisement),
                    path: report.path)
            }
        }.sorted { $0.report.advertisement.peer < $1.report.advertisement.peer }
    }

    /// The IDs of the peers that one peer reports, sorted.
    func ids(reportedBy reporter: PeerID) -> [PeerID] {
        entries.filter { $0.value.reports[reporter] != nil }.keys.sorted()
    }

    /// Stores a peer's report about another one. Fails if the peer reports more than `limit` peers.
    mutating func note(_ report: MemberReport, by reporter: PeerID, limit: Int) throws(WireError) {
        let id = report.advertisement.peer
        var entry = entries[id] ?? Entry(advertisement: report.advertisement)
        if entry.reports[reporter] == nil {
            guard counts[reporter, default: 0] < limit else {
                throw .malformed("more members than are allowed")
            }
            counts[reporter, default: 0] += 1
        }
        entry.reports[reporter] = Report(
            isMesh: report.isMesh, isCarried: report.isCarried, path: entry.reports[reporter]?.path)
        entry.advertisement = report.advertisement
        entries[id] = entry
    }

    /// Stores the path of a peer's conversation with a peer that it reports.
    mutating func note(_ path: ConversationPath, to id: PeerID, by reporter: PeerID) {
        entries[id]?.reports[reporter]?.path = path
    }

    /// Removes a peer's report about another one. Returns false if there is none.
    mutating func remove(_ id: PeerID, by reporter: PeerID) -> Bool {
        guard entries[id]?.reports.removeValue(forKey: reporter) != nil else { return false }
        if entries[id]?.reports.isEmpty == true { entries[id] = nil }
        counts[reporter] = counts[reporter].flatMap { $0 > 1 ? $0 - 1 : nil }
        return true
    }
}
