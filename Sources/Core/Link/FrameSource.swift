/// Has frames for a link to write, besides those that the link writes itself.
package protocol FrameSource {
    /// Moves frames of at most about `budget` bytes to `queue`. `header` makes those headers whose payload lies elsewhere.
    func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter)
}

/// The source of a link that writes only what it has to say itself: there is none.
private enum NoFrames: FrameSource {
    func gather(into queue: inout ByteQueue, budget: Int, header: inout ControlWriter) {}
}

extension LinkMachine {
    /// Moves what the link itself has to say to `queue`.
    package func gather(into queue: inout ByteQueue, budget: Int) {
        gather(into: &queue, budget: budget, from: NoFrames?.none)
    }
}
