/// Provides the frames that a link writes besides its own.
package protocol FrameSource {
    /// Moves frames of at most about `budget` bytes to `queue`. `header` creates the
    /// headers of payloads that lie elsewhere.
    func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter)
}

/// A source without frames, for a link that writes only its own.
private enum NoFrames: FrameSource {
    func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter) {}
}

extension LinkMachine {
    /// Moves the link's own frames to `queue`.
    package mutating func gather(into queue: inout ByteQueue, budget: Int) {
        gather(into: &queue, budget: budget, from: NoFrames?.none)
    }
}
