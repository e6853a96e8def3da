import Glibc
import NighCore
import NighSystem

/// Records the frames and packets on a session's links. Give it to the session as its observer, and call `finish` after
/// the session has closed. A record holds everything **in plain text**; only the owner of its file can read it.
///
/// On the session's loop it does little and never waits. Entries go into a queue of at most `queueLimit` bytes, and a
/// thread of the recorder's own writes them from there. While the disk is too slow for that, entries are left out, and
/// an entry says how many.
///
/// `@unchecked Sendable`: `transcript` and `scratch` belong to the loop, the state of both threads is in the queue, and
/// the rest never changes.
public final class LinkRecorder: SessionLayer, LinkObserver, @unchecked Sendable {
    /// The most bytes of entries that wait for the disk.
    public static let queueLimit = 8 << 20

    private let queue: RecordQueue
    private let thread = LoopThread()
    private let descriptor: Int32
    private let path: String
    private var transcript: LinkTranscript
    private var scratch: [UInt8] = []

    /// Creates the file and begins to record. Only its owner can read and write it. The file must not exist yet, unless
    /// it may be overwritten; then a new file replaces a plain file or a link.
    ///
    /// - Parameter headLimit: how many bytes of each payload are recorded; nil for all. The payload of a packet follows
    ///   its kind.
    public convenience init(path: String, headLimit: Int? = nil, overwrites: Bool = false) throws(NighError) {
        let descriptor = try Self.makeFile(path, overwrites: overwrites)
        try self.init(descriptor: descriptor, path: path, headLimit: headLimit, queueLimit: Self.queueLimit)
    }

    /// Records to a descriptor that is already open, and closes it at the end.
    package init(
        descriptor: Int32, path: String = "the record", headLimit: Int? = nil,
        queueLimit: Int = LinkRecorder.queueLimit
    ) throws(NighError) {
        self.descriptor = descriptor
        self.path = path
        let start = Self.wallClock()
        queue = RecordQueue(
            limit: queueLimit, beginning: RecordFormat.header(time: start, headLimit: headLimit))
        transcript = LinkTranscript(headLimit: headLimit ?? .max, wallClock: Self.wallClock)
        do throws(NighError) {
            try thread.start { [queue] in Self.write(from: queue, to: descriptor) }
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func makeFile(_ path: String, overwrites: Bool) throws(NighError) -> Int32 {
        if overwrites {
            var about = stat()
            if lstat(path, &about) == 0 {
                guard [S_IFREG, S_IFLNK].contains(about.st_mode & S_IFMT) else {
                    throw NighError(
                        .configuring,
                        .invalid("record \(path): it is not a plain file, so it is not replaced"),
                        advice: "name another file")
                }
                unlink(path)
            }
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor < 0 else { return descriptor }
        let number = errno
        throw NighError(
            .configuring, .system(number, "making the record \(path): \(String(cString: strerror(number)))"),
            advice: number == EEXIST
                ? "name another file, or have this one overwritten"
                : "name a file in a folder that you may write to")
    }

    private static func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Records an event. Called on the session's loop.
    public func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
        transcript.convert(event, on: link, at: moment) { entry in
            scratch.removeAll(keepingCapacity: true)
            RecordFormat.write(entry, to: &scratch)
            queue.add(scratch, of: entry)
        }
        if scratch.capacity > 1 << 20 { scratch = [] }
    }

    /// Writes the last entries and closes the file. It waits for the disk, so do not call it on a loop. Call it once
    /// the session has closed. If the disk failed, returns why the record is incomplete.
    public func finish() -> NighError? {
        queue.end()
        thread.join()
        guard let number = queue.failure else { return nil }
        return NighError(
            .conversing, .system(number, "writing the record \(path): \(String(cString: strerror(number)))"),
            advice: "the record is complete up to there; free disk space, or record only the "
                + "beginning of each payload")
    }

    private static func write(from queue: RecordQueue, to descriptor: Int32) {
        var bytes: [UInt8] = []
        while queue.take(into: &bytes) {
            if let number = write(bytes, to: descriptor) { queue.fail(number) }
        }
        // The file is on the disk before `finish` returns. For a pipe this does nothing.
        fsync(descriptor)
        close(descriptor)
    }

    /// Writes all bytes. Returns an `errno`, or nil if that worked.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        bytes.withUnsafeBytes { all in
            var rest = all[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = Glibc.write(descriptor, part.baseAddress, part.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : EIO }
                rest = rest.dropFirst(count)
            }
            return nil
        }
    }
}

/// Entries on their way from a loop to a disk. The queue is bounded, and adding to it never waits.
///
/// `@unchecked Sendable`: the lock guards all state.
final class RecordQueue: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private let limit: Int
    private var waiting: [UInt8]
    private var missing = (entries: 0 as UInt64, bytes: 0 as UInt64)
    private var hasEnded = false
    private var failed: Int32?

    init(limit: Int, beginning: [UInt8]) {
        self.limit = limit
        waiting = beginning
    }

    /// Adds the bytes of an entry. If there is no room, or a gap has begun that cannot be recorded yet, the entry
    /// counts as missing.
    func add(_ bytes: [UInt8], of entry: RecordEntry) {
        lock.withLock {
            guard failed == nil else { return }
            if missing.entries > 0, waiting.count + Self.gapByteCount + bytes.count <= limit {
                closeGap(at: entry.time)
            }
            guard missing.entries == 0, waiting.count + bytes.count <= limit else {
                missing.entries += 1
                missing.bytes += UInt64(entry.linkByteCount)
                return
            }
            if waiting.isEmpty { changed.notify() }
            waiting += bytes
            lastTime = entry.time
        }
    }

    private static let gapByteCount = 37
    private var lastTime: Int64 = 0

    private func closeGap(at time: Int64) {
        RecordFormat.write(
            RecordEntry(time: time, link: 0, .gap(entries: missing.entries, bytes: missing.bytes)),
            to: &waiting)
        missing = (0, 0)
    }

    /// Ends the queue. Nothing is added any more.
    func end() {
        lock.withLock {
            if missing.entries > 0 { closeGap(at: lastTime) }
            hasEnded = true
            changed.notify()
        }
    }

    /// Waits for bytes, and replaces the content of `bytes` with all that wait. Returns false at the end.
    func take(into bytes: inout [UInt8]) -> Bool {
        bytes.removeAll(keepingCapacity: true)
        lock.withLock {
            while waiting.isEmpty, !hasEnded { changed.wait(with: lock) }
            swap(&waiting, &bytes)
        }
        return !bytes.isEmpty
    }

    /// Marks the queue as failed. All entries, present and future, are dropped.
    func fail(_ number: Int32) {
        lock.withLock {
            failed = failed ?? number
            waiting.removeAll()
        }
    }

    /// The `errno` if writing has failed.
    var failure: Int32? { lock.withLock { failed } }
}

extension RecordEntry {
    /// How many bytes of a link the entry stands for.
    fileprivate var linkByteCount: Int {
        switch content {
        case .preface(_, let bytes): bytes.count
        case .frame(let frame): 4 + frame.length
        case .packet(let packet): DatagramPacket.headerByteCount + packet.length
        case .opened, .secured, .greeted, .ended, .gap: 0
        }
    }
}
