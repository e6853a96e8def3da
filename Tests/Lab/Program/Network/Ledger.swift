/// Which numbered messages one peer was given by another, run by run, and which it gave away.
struct Ledger {
    /// One direction between two runs of two programs.
    struct Lane: Hashable {
        /// Who sent, by PeerID.
        var peer: String
        /// Which run of its program.
        var run: String
    }

    private(set) var received: [Lane: [UInt64]] = [:]
    /// By receiver.
    private(set) var sent: [String: [UInt64]] = [:]
    /// The first thing that was not as it must be.
    private(set) var fault: String?

    /// Takes a message that arrived whole. Numbers of a run only grow; gaps are for whoever knows what was sent.
    mutating func didReceive(_ number: UInt64, from lane: Lane) {
        if let last = received[lane]?.last, number <= last {
            let isRepeated = received[lane]?.contains(number) ?? false
            let words = isRepeated ? "was given twice" : "came out of order, after \(last)"
            fault = fault ?? "message \(number) of \(lane.peer.prefix(8)) \(words)"
        }
        received[lane, default: []].append(number)
    }

    /// Takes a message that did not arrive as it was sent.
    mutating func didReceiveDamaged(_ words: String) { fault = fault ?? "a damaged message: \(words)" }

    /// Takes a message that the session accepted.
    mutating func didSend(_ number: UInt64, to peer: String) { sent[peer, default: []].append(number) }
}
