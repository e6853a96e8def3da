import Nigh
import NighCore

/// What comes in one run at one end: checked, counted, and measured between the mark and the end.
///
/// `@unchecked Sendable`: touched on the session's loop alone.
final class BenchReceiver: @unchecked Sendable {
    let run: UInt16
    let size: Int
    private let loop: UVEventLoop
    /// What the messages begin with whose number modulo 4 is 0; the others have it in their second byte.
    private let beginning: UInt32
    // What is touched for each message is not checked for overlapping access at run time, which would cost as much as counting.
    @exclusivity(unchecked) private var messages = 0
    @exclusivity(unchecked) private var reportAt: Int
    private var mark: (messages: Int, at: Moment)?

    /// The first reports come quickly, so that the sender learns early how fast the way is.
    private static let firstReport = 64 << 10
    private static let lastEarlyReport = 16 << 20

    /// What has come of itself.
    enum Step {
        case counted
        /// It is time to tell the sender how much has come.
        case reportDue
        /// All has come: what was measured here, and what the sender says it has sent meanwhile.
        case complete(received: BenchCount, sent: BenchCount)
    }

    init(_ order: BenchOrder, loop: UVEventLoop) {
        run = order.run
        size = Int(order.size)
        self.loop = loop
        beginning = BenchPayload.beginning(run: order.run)
        reportAt = max(1, Self.firstReport / size)
    }

    /// All that has come so far, warm-up included.
    var amount: BenchAmount { BenchAmount(messages, of: size) }

    /// Takes a message of the bulk lane where it is the one whose turn it is and there is nothing else to do; else false, and it
    /// is for `take`.
    @inline(__always)
    func takeOrdinary(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard messages &+ 1 != reportAt, isExpected(bytes) else { return false }
        messages &+= 1
        return true
    }

    /// Takes a message of the bulk lane; fails where it is not the one whose turn it is.
    func take(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) -> Step {
        guard isExpected(bytes) else { return try takeSpecial(bytes) }
        messages &+= 1
        return messages == reportAt ? earlyReport() : .counted
    }

    @inline(__always)
    private func isExpected(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == size else { return false }
        let number = UInt32(truncatingIfNeeded: messages & (BenchPayload.variety &- 1))
        return UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)) == beginning | number << 8
            && UInt32(bytes[size &- 1]) == number
    }

    private func earlyReport() -> Step {
        reportAt = messages * size < Self.lastEarlyReport ? messages * 2 : .max
        return .reportDue
    }

    private func takeSpecial(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) -> Step {
        switch try BenchPayload.special(bytes, run: run) {
        case .mark:
            guard mark == nil else { throw BenchBreach("a second mark") }
            mark = (messages, loop.now)
            return .counted
        case .end(let sent):
            guard let mark else { throw BenchBreach("an end without a mark") }
            let received = BenchCount(messages - mark.messages, of: size, in: loop.now - mark.at)
            guard received.amount == sent.amount else {
                throw BenchBreach(
                    "\(sent.amount.messages) messages were said to be sent, \(received.amount.messages) came")
            }
            return .complete(received: received, sent: sent)
        }
    }
}
