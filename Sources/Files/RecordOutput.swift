/// The output of one side of a transfer: the records that wait to be sent, whether it has paused the transfer, and the
/// memory that it reads pieces of files into.
final class RecordOutput {
    private var waiting: [UInt8] = []
    /// Whether this side has paused the transfer.
    private(set) var isPaused = false
    /// The other side's pause.
    private var pauseThere: TransferCount.Pause?
    /// Room for a header and the longest piece of a file. Records that are sent take its place.
    private let memory = UnsafeMutableRawBufferPointer.allocate(
        byteCount: FileRecord.headerLength + FileRecord.longestPiece, alignment: 16)

    deinit { memory.deallocate() }

    /// The memory for a piece of a file.
    var piece: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: memory[FileRecord.headerLength...])
    }

    /// Returns the first bytes of the piece as a `data` record to send. They stay in place until the memory is used
    /// again.
    func data(_ count: Int) -> TransferWork {
        FileRecord.data(count: count).bytes.withUnsafeBytes { memory.copyMemory(from: $0) }
        return .send(UnsafeRawBufferPointer(rebasing: memory[..<(FileRecord.headerLength + count)]))
    }

    /// The number of bytes that wait.
    var count: Int { waiting.count }

    /// Adds a record.
    func write(_ record: FileRecord) { waiting += record.bytes }

    /// Replaces all records that wait by this one.
    func replaceAll(with record: FileRecord) { waiting = record.bytes }

    /// Pauses the transfer from this side, or resumes it, and says so.
    func setPaused(_ isOn: Bool, because reason: String, in progress: inout TransferCount) {
        guard isPaused != isOn else { return }
        isPaused = isOn
        guard isOn else { return resume(&progress) }
        progress.pause = .init(isHere: true, reason: reason)
        write(.paused(reason))
    }

    /// Ends the pause of this side. That of the other side goes on.
    func resume(_ progress: inout TransferCount) {
        progress.pause = pauseThere
        write(.resumed)
    }

    /// Notes that the other side has paused the transfer or, without a reason, that it has resumed it.
    func notePause(because reason: String?, in progress: inout TransferCount) {
        pauseThere = reason.map { .init(isHere: false, reason: $0) }
        if progress.pause?.isHere != true { progress.pause = pauseThere }
    }

    /// Takes the next bytes to send, which stay in place until the memory is used again. Returns nil if nothing waits.
    func takeNext() -> TransferWork? {
        guard !waiting.isEmpty else { return nil }
        let count = min(waiting.count, memory.count)
        waiting.withUnsafeBytes { memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        waiting.removeFirst(count)
        return .send(UnsafeRawBufferPointer(rebasing: memory[..<count]))
    }
}
