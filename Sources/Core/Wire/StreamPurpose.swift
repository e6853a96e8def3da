/// What a stream is for. It decides who gets the stream at the side that did not open it.
package enum StreamPurpose: UInt8, Sendable {
    /// The program's own streams, which it gets as events.
    case program = 0
    /// The transfer of files, which programs do not see.
    case files = 1
    /// A pipe between two other peers, which the peer that sees both carries for them.
    case relay = 2
    /// The messages of a channel from the side that opens the stream to the other one, framed by their lengths.
    case channel = 3
}

extension StreamPurpose {
    /// How many times as large as at first the window of such a stream may become.
    ///
    /// Files are written to a disk, in longer strokes than a link's.
    package var windowGrowth: Int {
        switch self {
        case .program, .relay, .channel: 1
        case .files: 4
        }
    }
}
