/// What has passed on one pipe: what the session did with it, and what it has told so far. Whatever it does next is held against
/// that.
///
/// A value that knows no loop and calls nobody; what breaks a rule is thrown.
struct PipeLedger {
    private enum Phase {
        case open
        /// The session has closed it, and it is drained only where its bytes were to be sent.
        case closedHere(PipeCloseManner)
        /// The session has closed it, and it has told that it is drained.
        case drained
        /// It has told that it is over.
        case closedThere
    }

    /// What a paused pipe may still tell, as having been under way: far more than any of the transports here holds.
    static let underWay = 4 << 20

    private var phase = Phase.open
    private var hasEnded = false
    private var isPaused = false
    private var toldWhilePaused = 0
    private var bytesTold = 0
    private var bytesTaken = 0
    /// It did not take what it was given, so it must have failed, and takes nothing more.
    private var mustHaveFailed = false

    /// Whether neither side has closed it.
    var isOpen: Bool { if case .open = phase { true } else { false } }

    // MARK: What the session does

    mutating func closed(_ manner: PipeCloseManner) {
        if isOpen { phase = .closedHere(manner) }
    }

    mutating func paused() {
        guard !isPaused else { return }
        isPaused = true
        toldWhilePaused = 0
    }

    mutating func resumed() { isPaused = false }

    /// `count` bytes were given to `write`, which has left `left` of them.
    mutating func wrote(_ count: Int, left: Int, _ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen else { return }
        guard left == 0 else {
            throw ContractBreach(.writeTakesAll, "write left \(left) of \(count) bytes in the queue")
        }
        let taken = counters.bytesWritten - bytesTaken
        guard taken >= 0, taken <= count, taken == 0 || !mustHaveFailed else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWritten went from \(bytesTaken) to \(counters.bytesWritten) with a write of \(count)")
        }
        if taken < count { mustHaveFailed = true }
        bytesTaken = counters.bytesWritten
        try checkWaiting(counters)
    }

    /// Holds what a pipe says that it has counted, outside of all it tells, against what was seen.
    func check(_ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen else { return }
        try checkReceived(counters)
        guard counters.bytesWritten == bytesTaken else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWritten went from \(bytesTaken) to \(counters.bytesWritten) by itself")
        }
        try checkWaiting(counters)
    }

    /// To be called outside of all that the pipe tells.
    func checkReceived(_ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen, counters.bytesReceived != bytesTold else { return }
        throw ContractBreach(
            .countsWhatItTells, "bytesReceived is \(counters.bytesReceived) after \(bytesTold) bytes")
    }

    private func checkWaiting(_ counters: PipeCounters) throws(ContractBreach) {
        guard counters.bytesWaiting >= 0, counters.bytesWaiting <= counters.bytesWritten else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWaiting is \(counters.bytesWaiting) of \(counters.bytesWritten) bytes written")
        }
    }

    // MARK: What the pipe tells

    /// The pipe counts `counted` bytes while it tells `count` of them, which may be among those or not.
    mutating func received(_ count: Int, counted: Int) throws(ContractBreach) {
        // Sessions close a pipe that has ended, but this says more of what is wrong than that something came after the close.
        guard !hasEnded else {
            throw ContractBreach(.nothingAfterTheEnd, "\(count) bytes were received after pipeEnded")
        }
        try checkMayTell("received")
        guard count > 0 else { throw ContractBreach(.noEmptySlices, "an empty slice was received") }
        if isPaused {
            toldWhilePaused += count
            guard toldWhilePaused <= Self.underWay else {
                throw ContractBreach(
                    .pausedPipeIsQuiet, "\(toldWhilePaused) bytes were received since pauseReading")
            }
        }
        guard counted >= bytesTold else {
            throw ContractBreach(
                .countsWhatItTells, "bytesReceived is \(counted) after \(bytesTold) bytes, when more come")
        }
        bytesTold += count
    }

    func becameWritable(_ writableBytes: Int) throws(ContractBreach) {
        try checkMayTell("pipeBecameWritable")
        guard writableBytes > 0 else {
            throw ContractBreach(
                .writableWhenTold, "pipeBecameWritable was told, and writableBytes is \(writableBytes)")
        }
    }

    mutating func ended() throws(ContractBreach) {
        guard !hasEnded else { throw ContractBreach(.pipeEndsOnce, "pipeEnded was told a second time") }
        try checkMayTell("pipeEnded")
        hasEnded = true
    }

    mutating func wasClosed() throws(ContractBreach) {
        try checkMayTell("pipeClosed")
        phase = .closedThere
    }

    mutating func drained(waiting: Int) throws(ContractBreach) {
        switch phase {
        case .closedHere(.afterWriting): break
        case .closedThere: return try checkMayTell("pipeDrained")
        case .drained: throw ContractBreach(.pipeDrainsOnce, "pipeDrained was told a second time")
        case .open, .closedHere(.now):
            throw ContractBreach(.pipeDrainsOnce, "pipeDrained was told without a close(.afterWriting)")
        }
        guard waiting == 0 else {
            throw ContractBreach(.pipeDrainsOnce, "pipeDrained was told, and bytesWaiting is \(waiting)")
        }
        phase = .drained
    }

    private func checkMayTell(_ word: String) throws(ContractBreach) {
        switch phase {
        case .open: return
        case .closedHere, .drained: throw ContractBreach(.pipeQuietAfterClose, "\(word) was told after close")
        case .closedThere: throw ContractBreach(.pipeClosedIsLast, "\(word) was told after pipeClosed")
        }
    }
}
