import Nigh

extension Session {
    /// Sends to a peer that reads nothing until the send buffer is full.
    func fill(_ peer: Peer) async {
        while true {
            do throws(NighError) {
                try trySend([UInt8](repeating: 0, count: 16 << 10), to: peer.id)
            } catch {
                if case .bufferFull = error.cause { return }
            }
            await Task.yield()
        }
    }
}
