/// The numbered messages that one peer received from others, and those it sent, run by run.
struct Ledger {
    /// One direction between two runs of two programs.
    struct Lane: Hashable {
        /// The sender's PeerID.
        var peer: String
        /// The run of the sender's program.
        var run: String
    }

    private(set) var received: [Lane: [UInt64]] = [:]
    /// The numbers of the sent messages, by receiver.
    private(set) var sent: [String: [UInt64]] = [:]
    /// The first violation of a promise.
    private(set) var fault: String?

    /// Records a message that arrived whole. The numbers of a run must increase. Gaps are checked
    /// where the sent messages are known.
    mutating func didReceive(_ number: UInt64, from lane: Lane) {
        if let last = received[lane]?.last, number <= last {
            let isRepeated = received[lane]?.contains(number) ?? false
            let words = isRepeated ? "was given twice" : "came out of order, after \(last)"
            fault = fault ?? "message \(number) of \(lane.peer.prefix(8)) \(words)"
        }
        received[lane, default: []].append(number)
    }

    /// Records a message that did not arrive as it was sent.
    mutating func didReceiveDamaged(_ words: String) { fault = fault ?? "a damaged message: \(words)" }

    /// Records a message that the session accepted.
    mutating func didSend(_ number: UInt64, to peer: String) { sent[peer, default: []].append(number) }
}
