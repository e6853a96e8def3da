/// The purpose of a stream. It decides who gets the stream at the side that did not open it.
package enum StreamPurpose: UInt8, CaseIterable, Sendable {
    /// The program's own streams, which it gets as events.
    case program = 0
    /// The transfer of files, which programs do not see.
    case files = 1
    /// A pipe between two other peers, which the peer that sees both carries for them.
    case relay = 2
    /// The messages of a channel from the side that opens the stream to the other one, framed by their lengths.
    case channel = 3
    /// The calls that the side which opens the stream makes, and the other side's answers to them.
    case calls = 4
    /// A stream that belongs to a channel. Its name is that of the channel, a slash, and the program's own name for it.
    case channelStream = 5
    /// Calls of one actor of the other side's program, or something else that actors need. The first character of the
    /// name says which.
    case actors = 6
    /// A connection that a program at the opening side has made, and that goes on to a port of the other side's device.
    /// The name is the number of the port.
    case forward = 7
    /// The transfer of files. The sides first compare files that the receiver may already have.
    case comparedFiles = 8
}

extension StreamPurpose {
    /// The bit of a hello that says that its sender accepts such streams. The program's own need none.
    var ability: UInt32 {
        switch self {
        case .program: 0
        case .files: Hello.Ability.files
        case .relay: Hello.Ability.relays
        case .channel: Hello.Ability.channels
        case .calls: Hello.Ability.calls
        case .channelStream: Hello.Ability.channelStreams
        case .actors: Hello.Ability.actors
        case .forward: Hello.Ability.forwarding
        case .comparedFiles: Hello.Ability.comparedFiles
        }
    }

    /// Whether guests may open such streams. They may not have anything carried to others, nor call the program.
    var isForGuests: Bool {
        switch self {
        case .program, .files, .comparedFiles, .channel, .channelStream: true
        case .relay, .calls, .actors, .forward: false
        }
    }

    /// The factor by which the window of such a stream may grow.
    ///
    /// Files are written to a disk, in longer strokes than a link's. Forwarded connections are read at once, so their
    /// speed is a window in each round trip: 256 KiB would be 13 MB/s over a link of 20 ms.
    package var windowGrowth: Int {
        switch self {
        case .program, .relay, .channel, .calls, .channelStream, .actors: 1
        case .files, .comparedFiles: 4
        case .forward: 16
        }
    }

    /// Whether the window of such a stream grows with the bytes that the link carries in a round trip.
    var windowFollowsLink: Bool { self == .forward }
}
