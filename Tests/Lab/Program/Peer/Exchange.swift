import NighLoop

/// Counts numbered messages in both directions, the same number for each peer that a session gets connected to, and
/// says when all have been sent and received.
struct Exchange {
    /// The number of messages to send to each peer, and to receive from it.
    let count: UInt64
    /// The milliseconds between two messages.
    let pause: Int
    private var began: Set<PeerID> = []
    private var sent: [PeerID: UInt64] = [:]
    private var received: [PeerID: UInt64] = [:]

    init(count: UInt64, pause: Int) {
        self.count = count
        self.pause = pause
    }

    /// Records a connected peer; returns whether it is connected for the first time, so that sending begins.
    mutating func begin(with peer: PeerID) -> Bool { began.insert(peer).inserted }

    /// Records a message that the session accepted.
    mutating func didSend(to peer: PeerID) { sent[peer, default: 0] += 1 }

    /// Records a message that arrived whole.
    mutating func didReceive(from peer: PeerID) { received[peer, default: 0] += 1 }

    /// Whether at least one peer has connected and nothing is left to do with any.
    var isDone: Bool { !began.isEmpty && began.allSatisfy { sent[$0] == count && received[$0] == count } }
}
