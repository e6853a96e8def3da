import Glibc
import NighCore

/// The traffic of one connected stream socket: the bytes that wait, the reads, and the events that the loop watches
/// for. It decides nothing and calls nobody; its pipe does both. It does not own the descriptor. Loop only.
package struct SocketStream {
    /// The sizes in which kinds of sockets differ.
    package struct Sizes {
        /// How many bytes may wait before the pipe counts as backed up.
        let highWaterMark: Int
        /// The most bytes that are handed to the kernel at once.
        let pieceSize: Int
        /// How many such pieces one wake-up sends before others have their turn.
        let piecesPerWakeUp: Int

        package init(highWaterMark: Int, pieceSize: Int, piecesPerWakeUp: Int) {
            self.highWaterMark = highWaterMark
            self.pieceSize = pieceSize
            self.piecesPerWakeUp = piecesPerWakeUp
        }
    }

    /// The result of one read.
    package enum ReadResult {
        /// Bytes. If `isAll` is false, there may be more.
        case bytes(ByteSlice, isAll: Bool)
        /// The other end has finished writing.
        case end
        /// The read failed with this `errno`: `EAGAIN` if there is nothing yet.
        case failed(Int32)
    }

    private let descriptor: Int32
    private let buffer: ReadBuffer
    private let gatherList: GatherList
    private let sizes: Sizes
    private var watch: DescriptorWatch?
    private var bytesReceived = 0
    private var bytesWritten = 0
    private var owesRoom = false

    /// The bytes that the socket has not taken yet.
    package private(set) var waiting = ByteQueue()

    /// Whether to watch for incoming bytes.
    package var isReading = false {
        didSet { if isReading != oldValue { watchWhatIsWanted() } }
    }

    /// Whether to watch for the end of both directions, which reading reports as well.
    package var watchesHangUp = false {
        didSet { if watchesHangUp != oldValue { watchWhatIsWanted() } }
    }

    package init(_ descriptor: Int32, _ sizes: Sizes, on loop: UVEventLoop) {
        self.descriptor = descriptor
        self.sizes = sizes
        buffer = loop.readBuffer
        gatherList = loop.gatherList
    }

    // MARK: Watching

    /// Watches the descriptor and calls `handler` when there is something to do. Fails if the loop cannot wait for the
    /// descriptor.
    package mutating func begin(
        on loop: UVEventLoop, _ handler: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) {
        watch = try loop.watch(descriptor, for: [], handler)
    }

    /// Drops waiting bytes and stops watching, for good.
    package mutating func end() {
        waiting.removeAll()
        watch?.cancel()
        watch = nil
    }

    /// Continues to watch after an error was reported. If the error was not taken from the socket, it is reported
    /// again.
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
    package mutating func receive() -> ReadResult {
        let room = buffer.room()
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return count == 0 ? .end : .failed(errno) }
        bytesReceived &+= count
        return .bytes(buffer.take(count), isAll: count < room.count)
    }

    /// Reads once and drops the bytes. Returns nil if there were bytes, 0 at the end, and an `errno` otherwise.
    func discard() -> Int32? {
        let room = buffer.room()
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        return count > 0 ? nil : count == 0 ? 0 : errno
    }

    // MARK: Writing

    /// How many bytes may be written without being held up.
    package var writableBytes: Int { sizes.highWaterMark &- waiting.byteCount }

    package var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = waiting.byteCount
        return counters
    }

    /// Takes all bytes out of `queue`. Sends those for which the socket has room. Returns 0, or the `errno` of a broken
    /// socket.
    package mutating func write(_ queue: inout ByteQueue) -> Int32 {
        bytesWritten &+= queue.byteCount
        if waiting.isEmpty {
            let number = Self.send(from: &queue, to: descriptor, sizes, gatherList)
            guard number == 0 else {
                queue.removeAll()
                return number
            }
        }
        guard !queue.isEmpty else { return 0 }
        waiting.append(contentsOf: &queue)
        if waiting.byteCount >= sizes.highWaterMark { owesRoom = true }
        watchWhatIsWanted()
        return 0
    }

    /// Sends the waiting bytes for which the socket has room. Returns 0, or the `errno` of a broken socket.
    package mutating func writeWaiting() -> Int32 {
        let number = Self.send(from: &waiting, to: descriptor, sizes, gatherList)
        if number == 0 { watchWhatIsWanted() }
        return number
    }

    /// Returns whether the stream was backed up and has room again, which the pipe has to report. True once each time.
    package mutating func takeWritableNotice() -> Bool {
        guard owesRoom, waiting.byteCount <= sizes.highWaterMark / 2 else { return false }
        owesRoom = false
        return true
    }

    /// Sends bytes from the front of `queue` while the socket has room. This is static because a method would hold a
    /// copy of the whole stream while the queue changes, and the queue would then be copied too.
    private static func send(
        from queue: inout ByteQueue, to descriptor: Int32, _ sizes: Sizes, _ gatherList: GatherList
    ) -> Int32 {
        for _ in 0..<sizes.piecesPerWakeUp {
            guard !queue.isEmpty else { return 0 }
            let (sent, offered) = sendPiece(of: queue, to: descriptor, sizes.pieceSize, gatherList)
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
        of queue: borrowing ByteQueue, to descriptor: Int32, _ pieceSize: Int, _ gatherList: GatherList
    ) -> (sent: Int, offered: Int) {
        if queue.sliceCount == 1 {
            // Nearly all small messages are one slice, and the kernel has less to read then.
            let bytes = queue.bytes(at: 0)
            let size = min(bytes.count, pieceSize)
            return (
                Glibc.send(descriptor, bytes.baseAddress, size, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)),
                size
            )
        }
        let pieces = gatherList.pieces
        var offered = 0
        var count = 0
        let most = min(queue.sliceCount, GatherList.capacity)
        while count < most, offered < pieceSize {
            // The queue keeps the slice until the part of it that was sent is dropped.
            let bytes = queue.bytes(at: count)
            let size = min(bytes.count, pieceSize &- offered)
            let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
            pieces[count] = iovec(iov_base: base, iov_len: size)
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
