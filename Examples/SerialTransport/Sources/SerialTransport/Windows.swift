// Numbers, credit and resends: what one direction of a pipe is at each of its ends. Values that are given what came and
// return what to send, so that tests need neither wires nor sleeps.
import NighCore

/// What is written at this end, kept from the first byte that the other end has not acknowledged.
struct SendWindow {
    private var kept = ByteQueue()
    private var acknowledged: UInt64 = 0
    /// The number of the next byte to go out: less than it was, after `goBack`.
    private var next: UInt64 = 0
    private var furthest: UInt64 = 0
    private var limit = UInt64(ReceiveWindow.size)
    private var gapSeen: UInt64?

    /// Bytes written and not acknowledged.
    var waiting: Int { kept.byteCount }
    /// Bytes sent and not acknowledged.
    var underWay: Int { Int(next - acknowledged) }

    mutating func append(_ queue: inout ByteQueue) { kept.append(contentsOf: &queue) }

    /// The next bytes to send, as far as the other end has room; nil for none.
    mutating func nextPiece() -> (number: UInt64, bytes: [UInt8])? {
        let count = min(kept.byteCount - underWay, Frame.pieceLimit, Int(max(limit, next) - next))
        guard count > 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var (skip, index) = (underWay, 0)
        while bytes.count < count {
            let slice = kept[index]
            index += 1
            if skip < slice.count {
                let end = min(slice.count, skip + count - bytes.count)
                slice[skip..<end].withUnsafeBytes { bytes += $0 }
            }
            skip = max(0, skip - slice.count)
        }
        defer {
            next += UInt64(count)
            furthest = max(furthest, next)
        }
        return (next, bytes)
    }

    /// What the other end says has come. Returns whether that is news.
    mutating func take(_ word: Frame.Acknowledgement) -> Bool {
        guard word.received >= acknowledged, word.received <= furthest else { return false }
        let isNews = word.received > acknowledged || word.limit > limit
        limit = max(limit, word.limit)
        kept.drop(Int(word.received - acknowledged))
        acknowledged = word.received
        next = max(next, acknowledged)
        // Each frame behind the gap tells of it, and once is enough.
        if word.isGap, gapSeen != acknowledged {
            gapSeen = acknowledged
            goBack()
        }
        return isNews
    }

    /// Sends again from the first byte that is not acknowledged.
    mutating func goBack() { next = acknowledged }
}

/// What has come from the other end, and how much more may come.
struct ReceiveWindow {
    /// How much may be held for a reader that has paused.
    static let size = 32 * 1_024

    private(set) var held = ByteQueue()
    private var received: UInt64 = 0
    private var isGap = false

    /// To be sent after `take`, and from time to time, since the last one may be lost.
    var acknowledgement: Frame.Acknowledgement {
        .init(received: received, limit: received + UInt64(Self.size - held.byteCount), isGap: isGap)
    }

    /// Bytes came, the first of that number: too early, too late, or as they should.
    mutating func take(_ bytes: [UInt8], at number: UInt64) {
        isGap = number > received
        guard !isGap, received - number < UInt64(bytes.count) else { return }
        let fresh = bytes.dropFirst(Int(received - number)).prefix(Self.size - held.byteCount)
        guard !fresh.isEmpty else { return }
        held.append(ByteSlice(fresh))
        received += UInt64(fresh.count)
    }

    mutating func popFirst() -> ByteSlice? { held.popFirst() }
}
