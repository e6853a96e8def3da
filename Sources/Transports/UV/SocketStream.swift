import Glibc
import NighCore

/// The traffic of one connected stream socket: what waits to be sent, what is read, what the loop watches for. It decides nothing
/// and tells nobody; that is for the pipe which has it. It does not own the descriptor. Loop only.
package struct SocketStream {
    /// In what one kind of socket differs from another.
    package struct Measures {
        /// As much may wait before the pipe counts as backed up.
        let highWaterMark: Int
        /// The most that is handed to the kernel at once.
        let pieceSize: Int
        /// How many such pieces one wake sends before others have their turn.
        let share: Int

        package init(highWaterMark: Int, pieceSize: Int, share: Int) {
            self.highWaterMark = highWaterMark
            self.pieceSize = pieceSize
            self.share = share
        }
    }

    /// What one read came to.
    package enum Reading {
        /// Bytes; `isAll` unless there may be more.
        case bytes(ByteSlice, isAll: Bool)
        /// The other end has said its last.
        case end
        /// An `errno`: `EAGAIN` where there is nothing yet.
        case failed(Int32)
    }

    /// How many slices one call sends at most.
    private static let callPieces = 64

    private let descriptor: Int32
    private let buffer: ReadBuffer
    private let measures: Measures
    private var watch: DescriptorWatch?
    private var bytesReceived = 0
    private var bytesWritten = 0
    private var owesRoom = false

    /// What the socket has not taken yet.
    package private(set) var waiting = ByteQueue()

    /// Whether what comes is of interest.
    package var isReading = false {
        didSet { if isReading != oldValue { watchWhatIsWanted() } }
    }

    /// Whether to be told when both directions are over, which reading tells as well.
    var watchesHangUp = false {
        didSet { if watchesHangUp != oldValue { watchWhatIsWanted() } }
    }

    package init(_ descriptor: Int32, _ measures: Measures, on loop: UVEventLoop) {
        self.descriptor = descriptor
        self.measures = measures
        buffer = loop.readBuffer
    }

    // MARK: Watching

    /// Has `tell` called when there is something to do. Fails where the loop cannot wait for the descriptor.
    package mutating func begin(
        on loop: UVEventLoop, _ tell: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) {
        watch = try loop.watch(descriptor, for: [], tell)
    }

    /// Drops what waits and watches no more, for good.
    package mutating func end() {
        waiting.removeAll()
        watch?.cancel()
        watch = nil
    }

    /// To be called after an error was told and has been taken from the socket, or is still there to be told again.
    package func resume() { watch?.resume() }

    private func watchWhatIsWanted() {
        var wanted: DescriptorEvents = []
        if isReading { wanted.insert(.readable) }
        if !waiting.isEmpty { wanted.insert(.writable) }
        if watchesHangUp { wanted.insert(.hungUp) }
        watch?.events = wanted
    }

    // MARK: Reading

    /// Reads once, into the loop's buffer.
    package mutating func receive() -> Reading {
        let room = buffer.room()
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return count == 0 ? .end : .failed(errno) }
        bytesReceived &+= count
        return .bytes(buffer.take(count), isAll: count < room.count)
    }

    /// Reads once and forgets what came: nil, or 0 at the end, or an `errno`.
    func discard() -> Int32? {
        let room = buffer.room()
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        return count > 0 ? nil : count == 0 ? 0 : errno
    }

    // MARK: Writing

    /// What may be written without being held up.
    package var writableBytes: Int { measures.highWaterMark &- waiting.byteCount }

    package var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = waiting.byteCount
        return counters
    }

    /// Takes all out of `queue`, and sends what the socket takes now. Returns 0, or the `errno` of a socket that has broken.
    package mutating func write(_ queue: inout ByteQueue) -> Int32 {
        bytesWritten &+= queue.byteCount
        if waiting.isEmpty {
            let number = Self.send(from: &queue, to: descriptor, measures)
            guard number == 0 else {
                queue.removeAll()
                return number
            }
        }
        guard !queue.isEmpty else { return 0 }
        waiting.append(contentsOf: &queue)
        if waiting.byteCount >= measures.highWaterMark { owesRoom = true }
        watchWhatIsWanted()
        return 0
    }

    /// Sends of what waits as much as the socket takes now. Returns 0, or the `errno` of a socket that has broken.
    package mutating func writeOn() -> Int32 {
        let number = Self.send(from: &waiting, to: descriptor, measures)
        if number == 0 { watchWhatIsWanted() }
        return number
    }

    /// Whether it was backed up and is well again, which is to be told; true once each time.
    package mutating func takeRelief() -> Bool {
        guard owesRoom, waiting.byteCount <= measures.highWaterMark / 2 else { return false }
        owesRoom = false
        return true
    }

    /// Sends from the front of `queue` what the socket takes now. Static, since as a method it would hold a copy of all this while the
    /// queue changes, which would then be copied as well.
    private static func send(
        from queue: inout ByteQueue, to descriptor: Int32, _ measures: Measures
    ) -> Int32 {
        for _ in 0..<measures.share {
            guard !queue.isEmpty else { return 0 }
            let (sent, offered) = sendPiece(of: queue, to: descriptor, measures.pieceSize)
            guard sent >= 0 else {
                let number = errno
                let isPassing = [EAGAIN, EINTR, ENOBUFS, ENOMEM].contains(number)
                return isPassing ? 0 : number
            }
            queue.drop(sent)
            if sent < offered { return 0 }
        }
        return 0
    }

    private static func sendPiece(
        of queue: borrowing ByteQueue, to descriptor: Int32, _ pieceSize: Int
    ) -> (sent: Int, offered: Int) {
        withUnsafeTemporaryAllocation(of: iovec.self, capacity: callPieces) { pieces in
            var offered = 0
            var count = 0
            let most = min(queue.sliceCount, callPieces)
            while count < most, offered < pieceSize {
                // The queue keeps the slice until what is sent of it has been dropped.
                let bytes = queue.bytes(at: count)
                let size = min(bytes.count, pieceSize &- offered)
                let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                pieces.initializeElement(at: count, to: iovec(iov_base: base, iov_len: size))
                offered &+= size
                count &+= 1
            }
            var message = msghdr()
            message.msg_iov = pieces.baseAddress
            message.msg_iovlen = count
            let sent = sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            return (sent, offered)
        }
    }
}
