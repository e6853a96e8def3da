// Numbers, credit and resends of one direction of a pipe, at each of its ends. These values take what arrived and
// return what to send, so tests need neither wires nor sleeps.
import NighTransport

/// The bytes written at this end, from the first one that the other end has not acknowledged.
struct SendWindow {
    private var kept = ByteQueue()
    private var acknowledged: UInt64 = 0
    /// The number of the next byte to send; `goBack` makes it smaller.
    private var next: UInt64 = 0
    private var furthest: UInt64 = 0
    private var limit = UInt64(ReceiveWindow.size)
    private var gapSeen: UInt64?

    /// The number of bytes written and not acknowledged.
    var waiting: Int { kept.byteCount }
    /// The number of bytes sent and not acknowledged.
    var inFlight: Int { Int(next - acknowledged) }

    mutating func append(_ queue: inout ByteQueue) { kept.append(contentsOf: &queue) }

    /// Returns the next bytes to send, as far as the other end has room; nil if there are none.
    mutating func nextPiece() -> (number: UInt64, bytes: [UInt8])? {
        let count = min(kept.byteCount - inFlight, Frame.pieceLimit, Int(clamping: max(limit, next) - next))
        guard count > 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var (skip, index) = (inFlight, 0)
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

    /// Handles an acknowledgement, and returns whether it says anything new.
    mutating func acknowledge(_ answer: Frame.Acknowledgement) -> Bool {
        guard answer.received >= acknowledged, answer.received <= furthest else { return false }
        let isNews = answer.received > acknowledged || answer.limit > limit
        limit = max(limit, answer.limit)
        kept.drop(Int(answer.received - acknowledged))
        acknowledged = answer.received
        next = max(next, acknowledged)
        // Each frame behind the gap reports it, and going back once is enough.
        if answer.isGap, gapSeen != acknowledged {
            gapSeen = acknowledged
            goBack()
        }
        return isNews
    }

    /// Sends again from the first byte that is not acknowledged.
    mutating func goBack() { next = acknowledged }
}

/// The bytes that arrived from the other end, and how many more may come.
struct ReceiveWindow {
    /// The most bytes that are held for a reader that has paused.
    static let size = 32 * 1_024

    private(set) var held = ByteQueue()
    private var received: UInt64 = 0
    private var isGap = false

    /// The acknowledgement to send after `receive`, and from time to time, because the last one may be lost.
    var acknowledgement: Frame.Acknowledgement {
        .init(received: received, limit: received + UInt64(Self.size - held.byteCount), isGap: isGap)
    }

    /// Takes bytes, the first of which has that number. Drops them if they came too early or were here already.
    mutating func receive(_ bytes: [UInt8], at number: UInt64) {
        isGap = number > received
        guard !isGap, received - number < UInt64(bytes.count) else { return }
        let fresh = bytes.dropFirst(Int(received - number)).prefix(Self.size - held.byteCount)
        guard !fresh.isEmpty else { return }
        held.append(ByteSlice(fresh))
        received += UInt64(fresh.count)
    }

    mutating func popFirst() -> ByteSlice? { held.popFirst() }
}
