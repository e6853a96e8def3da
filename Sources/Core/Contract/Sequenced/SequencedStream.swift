/// One end of a byte stream in both directions over a channel of packets: a message broker, a serial line. A machine
/// without I/O.
///
/// The channel delivers a packet unchanged or not at all. The bytes are numbered, so a lost packet is noticed. Then the
/// stream fails or, if it resends, its writer continues from the first missing byte. The reader grants room, so it
/// never holds more than its window.
///
/// [PROTOCOL.md](../../../../docs/reference/PROTOCOL.md) has the format of the packets.
package struct SequencedStream {
    /// The sizes of a stream at one end.
    package struct Sizes: Hashable, Sendable {
        /// The length of the longest packet that the channel carries.
        package var packet: Int
        /// The most bytes that this end holds for a reader that has paused.
        package var window: Int

        package init(packet: Int, window: Int) {
            self.packet = packet
            self.window = window
        }
    }

    /// How long a writer waits for an acknowledgement before it sends its bytes again.
    package struct Patience: Hashable, Sendable {
        /// The time that an answer takes on an idle channel.
        package var answer: Moment.Span
        /// The time that one byte takes, one way.
        package var nanosecondsPerByte: Int64

        package init(answer: Moment.Span, nanosecondsPerByte: Int64) {
            self.answer = answer
            self.nanosecondsPerByte = nanosecondsPerByte
        }

        func span(for byteCount: Int) -> Moment.Span {
            answer + Moment.Span(nanoseconds: nanosecondsPerByte * 2 * Int64(byteCount))
        }
    }

    /// Why a stream can carry nothing more.
    package enum Failure: Hashable, Sendable {
        /// The other end has given the stream up.
        case aborted
        /// The channel has lost packets.
        case packetsLost
        /// The other end breaks the rules.
        case invalid(String)
    }

    /// The packet that gives a stream up.
    package static let abort: [UInt8] = [Kind.abort.rawValue]
    /// The length of the fields before the bytes in a packet.
    package static let headLength = 9

    private enum Kind: UInt8 {
        case bytes = 1
        case room = 2
        case end = 3
        case abort = 4
    }

    private let sizes: Sizes
    /// Nil if the stream does not resend.
    private let patience: Patience?

    // Sending. The end of the bytes takes a number of its own, as if it were a byte.

    /// The bytes from `firstKept` on: those that are still to be sent and, if the stream resends, acknowledged.
    private var kept = ByteQueue()
    private var firstKept: UInt64 = 0
    /// The number behind the last byte that was written, which is also the number of the end.
    private var writtenCount: UInt64 = 0
    /// The number of the next byte to send.
    private var next: UInt64 = 0
    /// The number behind the last byte that was ever sent.
    private var furthest: UInt64 = 0
    /// The number from which on the other end has no room.
    private var limit: UInt64
    private var endsAfterKept = false
    /// The number from which on bytes were sent again because the other end missed them.
    private var lastGap: UInt64?
    private var owesProbe = false
    private var lastProgress: Moment

    // Receiving.

    private var held = ByteQueue()
    private var received: UInt64 = 0
    private var granted: UInt64
    private var isEndReceived = false
    private var isGap = false
    private var owesRoom = false

    /// Creates a stream.
    ///
    /// - Parameters:
    ///   - theirWindow: the window of the other end.
    ///   - patience: how long to wait before sending again. If nil, a lost packet ends the stream.
    package init(_ sizes: Sizes, theirWindow: Int, patience: Patience? = nil, at now: Moment) {
        self.sizes = sizes
        self.patience = patience
        limit = UInt64(clamping: theirWindow)
        granted = UInt64(clamping: sizes.window)
        lastProgress = now
    }

    // MARK: Writing

    /// The number of written bytes that wait here.
    package var waiting: Int { kept.byteCount }

    /// Whether everything that was written before `finish`, and the end behind it, has been sent and, if the stream
    /// resends, acknowledged.
    package var isFinished: Bool { endsAfterKept && kept.isEmpty && firstKept > writtenCount }

    /// Takes all bytes out of `queue`, to send them.
    package mutating func write(_ queue: inout ByteQueue) {
        writtenCount += UInt64(queue.byteCount)
        kept.append(contentsOf: &queue)
    }

    /// Ends the bytes of this end. Nothing is written afterwards.
    package mutating func finish() { endsAfterKept = true }

    /// Returns the next packet to send; nil if there is none, or if the other end has no room for it.
    package mutating func nextPacket(at now: Moment) -> [UInt8]? {
        if owesRoom {
            owesRoom = false
            granted = received + UInt64(sizes.window - held.byteCount)
            return Self.packet(.room, received, reserving: 9) { packet in
                packet.write(granted)
                packet.write(UInt8(isGap ? 1 : 0))
            }
        }
        let unsent = writtenCount - min(next, writtenCount)
        let count = min(unsent, UInt64(sizes.packet - Self.headLength), limit - min(next, limit))
        if count > 0 { return bytePacket(Int(count), at: now) }
        if endsAfterKept, next == writtenCount {
            moveNext(by: 1, at: now)
            return Self.packet(.end, writtenCount) { _ in }
        }
        guard owesProbe else { return nil }
        owesProbe = false
        return Self.packet(.bytes, next) { _ in }
    }

    private mutating func bytePacket(_ count: Int, at now: Moment) -> [UInt8] {
        owesProbe = false
        let packet = Self.packet(.bytes, next, reserving: count) { packet in
            var (skipped, left, index) = (Int(next - firstKept), count, 0)
            while left > 0 {
                let bytes = kept.bytes(at: index)
                index += 1
                guard skipped < bytes.count else { skipped -= bytes.count; continue }
                let end = min(bytes.count, skipped + left)
                packet.write(raw: UnsafeRawBufferPointer(rebasing: bytes[skipped..<end]))
                left -= end - skipped
                skipped = 0
            }
        }
        moveNext(by: UInt64(count), at: now)
        return packet
    }

    private mutating func moveNext(by count: UInt64, at now: Moment) {
        if next == firstKept { lastProgress = now }
        next += count
        furthest = max(furthest, next)
        if patience == nil { drop(before: next) }
    }

    /// Forgets the bytes before `number`, which need not be sent again.
    private mutating func drop(before number: UInt64) {
        kept.drop(Int(min(number, writtenCount) - min(firstKept, writtenCount)))
        firstKept = number
    }

    private static func packet(
        _ kind: Kind, _ number: UInt64, reserving count: Int = 0, _ write: (inout FieldWriter) -> Void
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(headLength + count)
        bytes.append(kind.rawValue)
        var packet = FieldWriter(behind: bytes)
        packet.write(number)
        write(&packet)
        return packet.bytes
    }

    // MARK: Sending again

    /// The moment from which on `resend` does something; nil if nothing has to be acknowledged.
    package var resendTime: Moment? {
        guard let patience else { return nil }
        let inFlight = Int(next - firstKept)
        let isBlocked = !kept.isEmpty && next >= limit
        return inFlight > 0 || isBlocked ? lastProgress + patience.span(for: inFlight) : nil
    }

    /// Continues from the first byte that is not acknowledged, if that is due. If the other end had no room, asks
    /// whether it has some now, because its answer may have been lost.
    package mutating func resend(at now: Moment) {
        guard let resendTime, now >= resendTime else { return }
        lastProgress = now
        owesProbe = true
        next = firstKept
    }

    // MARK: Receiving

    /// The number of received bytes that have not been read.
    package var heldCount: Int { held.byteCount }

    /// Whether the other end has ended its bytes, and all have been read.
    package var isReadToEnd: Bool { isEndReceived && held.isEmpty }

    /// Handles a packet of the other end. Returns a failure if the stream can carry nothing more.
    package mutating func receive(_ packet: ByteSlice, at now: Moment) -> Failure? {
        packet.withUnsafeBytes { bytes in
            var fields = FieldReader(bytes)
            do throws(WireError) {
                let kind = try fields.number(UInt8.self, "kind of a packet")
                guard kind != Kind.abort.rawValue else { return .aborted }
                let number = try fields.number(UInt64.self, "number of a packet")
                switch Kind(rawValue: kind) {
                case .bytes: return received(packet[Self.headLength..<packet.count], at: number)
                case .end: return receivedEnd(at: number)
                case .room:
                    let limit = try fields.number(UInt64.self, "limit")
                    let isGap = try fields.number(UInt8.self, "gap")
                    return acknowledged(before: number, limit: limit, isGap: isGap != 0, at: now)
                case .abort, nil: return nil  // A packet of a later version.
                }
            } catch {
                return .invalid("\(error)")
            }
        }
    }

    /// Returns the next bytes that have arrived; nil if there are none.
    package mutating func read() -> ByteSlice? {
        let bytes = held.popFirst()
        let room = received + UInt64(sizes.window - held.byteCount)
        if !isEndReceived, room - granted >= UInt64(sizes.window / 2) { owesRoom = true }
        return bytes
    }

    private mutating func received(_ bytes: ByteSlice, at number: UInt64) -> Failure? {
        if let failure = checkOrder(number) { return failure }
        guard !isGap, number <= received, received - number < UInt64(bytes.count) else { return nil }
        let fresh = bytes[Int(received - number)..<bytes.count]
        guard !isEndReceived else { return .invalid("bytes behind the end") }
        guard UInt64(fresh.count) <= granted - received else { return .invalid("more bytes than granted") }
        held.append(fresh)
        received += UInt64(fresh.count)
        return nil
    }

    private mutating func receivedEnd(at number: UInt64) -> Failure? {
        if let failure = checkOrder(number) { return failure }
        guard !isGap, number == received, !isEndReceived else { return nil }
        isEndReceived = true
        received += 1
        granted = max(granted, received)
        return nil
    }

    /// Checks that the packet with that number does not come too early. Every packet of a stream that resends is
    /// acknowledged, also one that is here already: the last acknowledgement may have been lost.
    private mutating func checkOrder(_ number: UInt64) -> Failure? {
        guard patience != nil else { return number == received ? nil : .packetsLost }
        isGap = number > received
        owesRoom = true
        return nil
    }

    private mutating func acknowledged(
        before number: UInt64, limit: UInt64, isGap: Bool, at now: Moment
    ) -> Failure? {
        guard number <= furthest else { return .invalid("acknowledgement of bytes that were not sent") }
        if limit > self.limit || number > firstKept { lastProgress = now }
        self.limit = max(self.limit, limit)
        guard patience != nil else { return nil }
        if number > firstKept {
            drop(before: number)
            next = max(next, number)
        }
        // Each packet behind the gap reports it, and going back once is enough.
        if isGap, number == firstKept, lastGap != number {
            lastGap = number
            next = number
        }
        return nil
    }
}
