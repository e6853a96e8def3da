/// How many bytes of a stream the other side may send ahead of this side's reader.
///
/// A window never shrinks. It grows where a larger one lets neither side wait for the other: for files while the link
/// is faster than the disk, and for forwarded connections while the other side can send half of it in a round trip of
/// the link. On a slow link it stays as it is, since messages would only wait behind what is under way.
struct StreamWindow {
    private(set) var size: UInt64
    private let first: UInt64
    private let largest: UInt64
    /// Whether the window grows with the bytes of a round trip on the link, not with those that wait for the reader.
    let followsLink: Bool
    /// The start of the round trip that is measured now, and the bytes received in it.
    private var roundStart: Moment?
    private var roundBytes: UInt64 = 0

    init(_ size: Int, for purpose: StreamPurpose) {
        self.size = UInt64(size)
        first = self.size
        largest = self.size * UInt64(purpose.windowGrowth)
        followsLink = purpose.windowFollowsLink
    }

    /// By how much the window is larger than at first.
    var growth: UInt64 { size - first }

    /// Notes that `unread` received bytes were still unread when more was granted.
    mutating func note(unread: UInt64) {
        if !followsLink, unread >= size / 2 { size = min(size * 2, largest) }
    }

    /// Notes bytes that have come. Grows by at most `room` if the other side has sent half of the window within
    /// `roundTrip`, the shortest one of the link. Returns by how much it has grown.
    mutating func note(received count: Int, at now: Moment, roundTrip: Moment.Span, room: UInt64) -> UInt64 {
        guard let roundStart else {
            roundStart = now
            return 0
        }
        roundBytes &+= UInt64(count)
        let span = now - roundStart
        guard span >= roundTrip else { return 0 }
        let carried = Double(roundBytes) * Double(roundTrip.nanoseconds) / Double(span.nanoseconds)
        self.roundStart = now
        roundBytes = 0
        guard carried >= Double(size / 2), size * 2 <= largest, size <= room else { return 0 }
        size *= 2
        return size / 2
    }

    /// Notes that another link carries the stream.
    mutating func noteLink() {
        roundStart = nil
        roundBytes = 0
    }
}
