import NighCore
import NighTestKit

/// A byte stream between two users of a world: what each has written, and what the other has read of it. Every byte
/// follows from the stream, the direction and the place, so a reader can tell whether it is the right one.
///
/// `@unchecked Sendable`: confined to the world's thread, as everything in a world.
final class WorldStream: @unchecked Sendable {
    /// One direction of the stream.
    struct Direction {
        /// The bytes that the writer's session has accepted.
        var written = 0
        var isFinished = false
        /// Whether the writer gave up writing, or the reader reading.
        var isCancelled = false
        var isStopped = false
        /// The bytes that the reader has read.
        var read = 0
        var hasEnded = false
    }

    let number: Int
    let opener: SessionRun
    let other: Int
    /// The conversation that it belongs to, by the number in the session machines.
    var conversation: UInt64
    /// The end at the opener, and the one at the other user. An end that is nil was not opened yet, or was dropped.
    var ends: [ByteStream?] = [nil, nil]
    /// The user at each end; the second is nil until the stream has arrived there.
    var users: [SessionRun?]
    /// The ledger's number for each user's messages when the stream was opened, or had arrived. A conversation that one
    /// side has left may begin again under its number, because the other side still asks for it; the streams of before
    /// are over then.
    var senders: [Int?] = [nil, nil]
    /// From the opener, and to it.
    var directions = [Direction(), Direction()]

    init(number: Int, opener: SessionRun, other: Int, conversation: UInt64) {
        self.number = number
        self.opener = opener
        self.other = other
        self.conversation = conversation
        users = [opener, nil]
    }

    var name: String { "stream \(number)" }

    /// Whether the conversation still lasts, as the user at this end was last told.
    func lasts(at end: Int) -> Bool {
        guard let user = users[end], user.session != nil, !user.isClosing else { return false }
        let stream = user.streams[end == 0 ? other : opener.index]
        return stream?.conversation == conversation && stream?.number == senders[end]
    }

    /// Whether nothing is left to be done at this end.
    func isOver(at end: Int) -> Bool {
        let (own, their) = (directions[end], directions[1 - end])
        return (own.isFinished || own.isCancelled || own.isStopped) && (their.hasEnded || their.isStopped)
    }

    /// Returns bytes of a direction.
    func bytes(_ direction: Int, from start: Int, count: Int) -> [UInt8] {
        NumberedMessage.bytes(ofStream: key(direction), from: start, count: count)
    }

    /// Distinguishes the content of a direction from that of all others.
    private func key(_ direction: Int) -> Int { number << 1 | direction }

    /// Records what a reader has read. Returns what is wrong with it.
    func recordArrival(of bytes: ByteSlice, in direction: Int) -> String? {
        let start = directions[direction].read
        directions[direction].read += bytes.count
        if directions[direction].read > directions[direction].written {
            return
                "\(directions[direction].read) bytes of \(name) are read, \(directions[direction].written) were written"
        }
        let isIntact = bytes.withUnsafeBytes {
            NumberedMessage.isIntact($0, ofStream: key(direction), from: start)
        }
        return isIntact
            ? nil : "\(bytes.count) bytes of \(name) from \(start) on are not those that were written"
    }
}
