import Nigh

/// Numbered messages both ways, so many each, with everybody a session gets connected to: what has gone and come, and whether
/// that is all.
struct Exchange {
    /// How many go to each, and come from each.
    let count: UInt64
    /// Milliseconds between two.
    let pause: Int
    private var began: Set<PeerID> = []
    private var sent: [PeerID: UInt64] = [:]
    private var received: [PeerID: UInt64] = [:]

    init(count: UInt64, pause: Int) {
        self.count = count
        self.pause = pause
    }

    /// A peer got connected; whether it is for the first time, so that sending begins.
    mutating func begin(with peer: PeerID) -> Bool { began.insert(peer).inserted }

    /// A message was accepted by the session.
    mutating func didSend(to peer: PeerID) { sent[peer, default: 0] += 1 }

    /// A message arrived whole.
    mutating func didReceive(from peer: PeerID) { received[peer, default: 0] += 1 }

    /// Whether somebody came, and with nobody anything is left to do.
    var isDone: Bool { !began.isEmpty && began.allSatisfy { sent[$0] == count && received[$0] == count } }
}
