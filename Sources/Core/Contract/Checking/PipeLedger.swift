/// The history of one pipe: the calls of the session, and the reports of the pipe. The next report is checked against
/// it.
///
/// A value that knows no loop and calls nobody. It throws a ``ContractBreach`` when a rule is broken.
struct PipeLedger {
    private enum Phase {
        case open
        /// The session has closed the pipe. The pipe reports that it is drained only if its bytes were to be sent.
        case closedHere(PipeCloseMode)
        /// The session has closed the pipe, and the pipe has reported that it is drained.
        case drained
        /// The pipe has reported `pipeClosed`.
        case closedThere
    }

    /// The most bytes that a paused pipe may still deliver because they were under way: far more than any of the
    /// transports here holds.
    static let pausedByteLimit = 4 << 20

    private var phase = Phase.open
    private var hasEnded = false
    private var isPaused = false
    private var bytesWhilePaused = 0
    private var delivered = 0
    private var bytesWritten = 0
    /// Whether the pipe took fewer bytes than a `write` gave it. Then it must have failed, and may not take any more.
    private var mustHaveFailed = false

    /// Whether neither side has closed the pipe.
    var isOpen: Bool { if case .open = phase { true } else { false } }

    // MARK: Calls of the session

    mutating func closed(_ mode: PipeCloseMode) {
        if isOpen { phase = .closedHere(mode) }
    }

    mutating func paused() {
        guard !isPaused else { return }
        isPaused = true
        bytesWhilePaused = 0
    }

    mutating func resumed() { isPaused = false }

    /// Checks a `write` of `count` bytes that left `left` of them in the queue.
    mutating func wrote(_ count: Int, left: Int, _ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen else { return }
        guard left == 0 else {
            throw ContractBreach(.writeTakesAll, "write left \(left) of \(count) bytes in the queue")
        }
        let taken = counters.bytesWritten - bytesWritten
        guard taken >= 0, taken <= count, taken == 0 || !mustHaveFailed else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWritten went from \(bytesWritten) to \(counters.bytesWritten) with a write of \(count)")
        }
        if taken < count { mustHaveFailed = true }
        bytesWritten = counters.bytesWritten
        try checkWaiting(counters)
    }

    /// Checks the pipe's counters against its history. Not to be called while the handler is being called.
    func check(_ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen else { return }
        try checkReceived(counters)
        guard counters.bytesWritten == bytesWritten else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWritten went from \(bytesWritten) to \(counters.bytesWritten) by itself")
        }
        try checkWaiting(counters)
    }

    /// Checks the count of received bytes. Not to be called while the handler is being called.
    func checkReceived(_ counters: PipeCounters) throws(ContractBreach) {
        guard isOpen, counters.bytesReceived != delivered else { return }
        throw ContractBreach(
            .countsWhatItTells, "bytesReceived is \(counters.bytesReceived) after \(delivered) bytes")
    }

    private func checkWaiting(_ counters: PipeCounters) throws(ContractBreach) {
        guard counters.bytesWaiting >= 0, counters.bytesWaiting <= counters.bytesWritten else {
            throw ContractBreach(
                .countsWhatItTakes,
                "bytesWaiting is \(counters.bytesWaiting) of \(counters.bytesWritten) bytes written")
        }
    }

    // MARK: Reports of the pipe

    /// Checks a delivery of `count` bytes. `counted` is the pipe's count of received bytes, which may or may not
    /// include them.
    mutating func received(_ count: Int, counted: Int) throws(ContractBreach) {
        // A session closes a pipe that has ended. But this error says more about the mistake than "received after
        // close" would.
        guard !hasEnded else {
            throw ContractBreach(.nothingAfterTheEnd, "\(count) bytes were received after pipeEnded")
        }
        try checkMayReport("received")
        guard count > 0 else { throw ContractBreach(.noEmptySlices, "an empty slice was received") }
        if isPaused {
            bytesWhilePaused += count
            guard bytesWhilePaused <= Self.pausedByteLimit else {
                throw ContractBreach(
                    .pausedPipeIsQuiet, "\(bytesWhilePaused) bytes were received since pauseReading")
            }
        }
        guard counted >= delivered else {
            throw ContractBreach(
                .countsWhatItTells, "bytesReceived is \(counted) after \(delivered) bytes, when more come")
        }
        delivered += count
    }

    func becameWritable(_ writableBytes: Int) throws(ContractBreach) {
        try checkMayReport("pipeBecameWritable")
        guard writableBytes > 0 else {
            throw ContractBreach(
                .writableWhenTold, "pipeBecameWritable was reported, but writableBytes is \(writableBytes)")
        }
    }

    mutating func ended() throws(ContractBreach) {
        guard !hasEnded else { throw ContractBreach(.pipeEndsOnce, "pipeEnded was reported a second time") }
        try checkMayReport("pipeEnded")
        hasEnded = true
    }

    mutating func wasClosed() throws(ContractBreach) {
        try checkMayReport("pipeClosed")
        phase = .closedThere
    }

    mutating func drained(waiting: Int) throws(ContractBreach) {
        switch phase {
        case .closedHere(.afterWriting): break
        case .closedThere: return try checkMayReport("pipeDrained")
        case .drained: throw ContractBreach(.pipeDrainsOnce, "pipeDrained was reported a second time")
        case .open, .closedHere(.now):
            throw ContractBreach(.pipeDrainsOnce, "pipeDrained was reported without a close(.afterWriting)")
        }
        guard waiting == 0 else {
            throw ContractBreach(.pipeDrainsOnce, "pipeDrained was reported, but bytesWaiting is \(waiting)")
        }
        phase = .drained
    }

    private func checkMayReport(_ event: String) throws(ContractBreach) {
        switch phase {
        case .open: return
        case .closedHere, .drained:
            throw ContractBreach(.pipeQuietAfterClose, "\(event) was reported after close")
        case .closedThere: throw ContractBreach(.pipeClosedIsLast, "\(event) was reported after pipeClosed")
        }
    }
}
