import NighLoop
import NighCore

/// Receives the messages of one run at one end: checks and counts them, and measures between the mark and the end.
///
/// `@unchecked Sendable`: used on the session's loop only.
final class BenchReceiver: @unchecked Sendable {
    let run: UInt16
    let size: Int
    private let loop: UVEventLoop
    /// The first four bytes of a message whose number modulo 4 is 0. The other messages differ in the second byte.
    private let beginning: UInt32
    private var messages = 0
    private var reportAt: Int
    private var mark: (messages: Int, at: Moment)?

    /// The first reports are sent early, so that the sender soon knows how fast the path is.
    private static let firstReport = 64 << 10
    private static let lastEarlyReport = 16 << 20

    /// The result of receiving one message.
    enum Step {
        case counted
        /// It is time to report to the sender how much has arrived.
        case reportDue
        /// All messages have arrived: the count measured here, and the one that the sender reports for that time.
        case complete(received: BenchCount, sent: BenchCount)
    }

    init(_ order: BenchOrder, loop: UVEventLoop) {
        run = order.run
        size = Int(order.size)
        self.loop = loop
        beginning = BenchPayload.beginning(run: order.run)
        reportAt = max(1, Self.firstReport / size)
    }

    /// Everything that has arrived so far, including the warm-up.
    var amount: BenchAmount { BenchAmount(messages, of: size) }

    /// Receives a message of the bulk lane if it is the expected one and nothing else has to be done. Otherwise returns
    /// false, and the message has to be passed to `receive`.
    @inline(__always)
    func receiveExpected(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard messages &+ 1 != reportAt, isExpected(bytes) else { return false }
        messages &+= 1
        return true
    }

    /// Receives a message of the bulk lane; throws if it is neither the expected message nor a mark or an end.
    func receive(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) -> Step {
        guard isExpected(bytes) else { return try receiveMarker(bytes) }
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

    private func receiveMarker(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) -> Step {
        switch try BenchPayload.marker(bytes, run: run) {
        case .mark:
            guard mark == nil else { throw BenchBreach("a second mark") }
            mark = (messages, loop.now)
            return .counted
        case .end(let sent):
            guard let mark else { throw BenchBreach("an end without a mark") }
            let received = BenchCount(messages - mark.messages, of: size, in: loop.now - mark.at)
            guard received.amount == sent.amount else {
                throw BenchBreach(
                    "\(sent.amount.messages) messages were reported sent, \(received.amount.messages) came")
            }
            return .complete(received: received, sent: sent)
        }
    }
}
