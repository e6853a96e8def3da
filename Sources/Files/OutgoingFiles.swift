import NighCore

/// The sender's side of a transfer: offers the items, learns which bytes of each the receiver has, and sends the
/// others.
///
/// The receiver reports each file in pieces with hashes. This side reads the same pieces of its own file and sends
/// those that differ. So the bytes of a file pass through the running hash once, in order, whether they are sent or
/// not.
package final class OutgoingFiles: TransferSide {
    /// The receiver's report of an item that is not finished.
    private final class Report {
        let index: Int
        /// The pieces that the receiver has, from the beginning on, and how many of them were compared.
        private(set) var pieces: [Piece] = []
        private var count = 0
        var compared = 0
        /// Whether the report has ended.
        var isComplete = false
        /// The hash of the file that the receiver kept earlier.
        var wholeHash: [UInt8]?
        /// Whether the receiver only asks for the hash.
        var isQuestion = false

        init(_ index: Int) { self.index = index }

        /// Adds a piece. Only the last one may be short, so that there are no more pieces than the size of the file
        /// allows.
        func add(_ piece: Piece, ofAtMost size: Int) throws(WireError) {
            guard count.isMultiple(of: FileRecord.longestPiece), count + piece.count <= size else {
                throw .malformed("a report on more bytes than a file has, or in pieces that are too short")
            }
            count += piece.count
            pieces.append(piece)
        }
    }

    private struct Piece {
        var count: Int
        var hash: [UInt8]
    }

    /// The file that is being compared and sent.
    private struct Current {
        let index: Int
        let file: any SourceFile
        let hash = RunningHash()
        /// The bytes that were read.
        var position = 0
        /// Up to where bytes are sent before more are compared.
        var sendingEnd = 0
        /// The offset of the next `data` record, once `begin` has stated it.
        var announced: Int?
    }

    private enum State {
        case offering(next: Int)
        case waitingForAnswer
        case sending
        case finishing
        case over(TransferEnding)
    }

    package let items: [FileItem]
    private let version: FileVersion
    private let source: any FileSource
    private let metadata: [UInt8]
    private var state = State.offering(next: -1)
    private var cutter = RecordCutter()
    private var reports: [Report] = []
    private var current: Current?
    package private(set) var outcomes: [ItemOutcome]
    package private(set) var progress = TransferCount()
    private var stored: [Int: Int] = [:]
    private var unfinished: Int
    private let output = RecordOutput()

    /// Called once the outcome of each item is known, before the receiver learns that this side knows it. From then on
    /// the receiver takes the same files for new ones, so a program that sends unfinished files again has to forget
    /// them now.
    package var onDecided: (([ItemOutcome]) -> Void)?

    package init(_ source: any FileSource, metadata: [UInt8] = [], version: FileVersion = .first) {
        self.source = source
        self.version = version
        items = source.items
        self.metadata = metadata
        outcomes = Array(repeating: .pending, count: items.count)
        unfinished = items.count
        for item in items { progress.add(item) }
    }

    package var takesBytes: Bool { true }

    // MARK: The program

    /// Pauses the transfer from this side, or resumes it.
    package func setPaused(_ isOn: Bool, because reason: String) {
        if !hasEnded { output.setPaused(isOn, because: reason, in: &progress) }
    }

    /// Ends the transfer from this side.
    package func stop(_ fault: FileFault) {
        guard !hasEnded else { return }
        output.replaceAll(with: .stop(fault))
        end(.stoppedHere(fault))
    }

    package var isUnderway: Bool {
        switch state {
        case .sending, .finishing: true
        case .offering, .waitingForAnswer, .over: false
        }
    }

    package var hasEnded: Bool { if case .over = state { true } else { false } }

    package func leave() { if case .finishing = state { end(.complete) } }

    private func end(_ ending: TransferEnding) {
        guard !hasEnded else { return }
        state = .over(ending)
        current = nil
        progress.current = nil
    }

    // MARK: Receiving

    package func receive(_ bytes: UnsafeRawBufferPointer) {
        guard !hasEnded else { return }
        do throws(WireError) {
            try cutter.cut(bytes) { part throws(WireError) in
                guard !hasEnded else { return }
                guard case .record(let record) = part else { throw .malformed("bytes of a file") }
                try handle(record)
            }
        } catch {
            stop(FileFault(.violation, error.message))
        }
    }

    package func receiveEnd(_ error: NighError?) {
        switch state {
        case .over: break
        // Everything is decided, however the stream ends now.
        case .sending where unfinished == 0:
            // The receiver learns that this side knows it from its end, which follows.
            if error == nil { onDecided?(outcomes) }
            end(.complete)
        case .finishing: end(.complete)
        default: end(.lost(error ?? NighError(.sending, .streamCancelled("the receiver left"))))
        }
    }

    private func handle(_ record: FileRecord) throws(WireError) {
        switch record {
        case .stop(let fault): return end(.stopped(fault))
        case .paused(let reason): return output.notePause(because: reason, in: &progress)
        case .resumed: return output.notePause(because: nil, in: &progress)
        case .accept:
            guard case .waitingForAnswer = state else { break }
            state = .sending
            return
        case .have(let index, let count, let hash):
            guard (1...FileRecord.longestPiece).contains(count) else { break }
            return try report(index) { report throws(WireError) in
                try report.add(Piece(count: count, hash: hash), ofAtMost: items[index].size ?? 0)
            }
        case .ready(let index): return try report(index) { $0.isComplete = true }
        case .compare(let index):
            guard version != .first, items.indices.contains(index), items[index].size != nil else { break }
            return try report(index) { report in
                report.isQuestion = true
                report.isComplete = true
            }
        case .whole(let index, let hash):
            return try report(index) { report in
                report.wholeHash = hash
                report.isComplete = true
            }
        case .stored(let index, let count):
            guard items.indices.contains(index) else { break }
            guard outcomes[index] == .pending else { return }
            guard (0...position(in: index)).contains(count) else { break }
            // Stored bytes stay stored until a report says otherwise.
            if count > stored[index] ?? 0 { setStored(count, of: index) }
            return
        case .kept(let index):
            guard items.indices.contains(index), mayBeKept(index) else { break }
            setStored(items[index].size ?? sent[index]?.size ?? 0, of: index)
            return conclude(index, .kept(path: nil, hash: sent[index]?.hash))
        case .failed(let index, let fault):
            guard items.indices.contains(index) else { break }
            return conclude(index, .failed(fault, words: fault.explanation))
        case .offer, .item, .begin, .data, .end, .same, .missing, .claim: break
        }
        throw .malformed("a record of files comes out of turn")
    }

    /// The sizes and hashes of the files that were sent whole and have no outcome yet.
    private var sent: [Int: (size: Int, hash: [UInt8])] = [:]

    /// How many bytes of an item the receiver can have at most: those that were sent or compared.
    private func position(in index: Int) -> Int {
        sent[index]?.size ?? (current?.index == index ? current?.position ?? 0 : 0)
    }

    private func mayBeKept(_ index: Int) -> Bool {
        guard case .sending = state, outcomes[index] == .pending else { return false }
        return items[index].kind == .folder || sent[index] != nil
    }

    private func setStored(_ count: Int, of index: Int) {
        progress.done += count - (stored[index] ?? 0)
        stored[index] = count
    }

    private func conclude(_ index: Int, _ outcome: ItemOutcome) {
        guard outcomes[index] == .pending else { return }
        outcomes[index] = outcome
        unfinished -= 1
        progress.conclude(outcome)
        if current?.index == index { current = nil }
        stored[index] = nil
        sent[index] = nil
        reportCounts[index] = nil
    }

    /// Adds to the receiver's report on an item.
    private func report(
        _ index: Int, _ change: (Report) throws(WireError) -> Void
    ) throws(WireError) {
        guard case .sending = state, items.indices.contains(index), items[index].kind == .file else {
            throw .malformed("a report on an item out of turn")
        }
        guard outcomes[index] == .pending else { return }
        if let last = reports.last, last.index == index, !last.isComplete {
            return try change(last)
        }
        // The receiver says nothing more of an item that has ended in the middle of its report.
        if let last = reports.last, !last.isComplete, outcomes[last.index] != .pending {
            reports.removeLast()
        }
        guard reports.last?.isComplete ?? true, reports.count < Self.mostReports else {
            throw .malformed("reports on too many items")
        }
        let count = reportCounts[index, default: 0] + 1
        guard count <= Self.mostReportsOfOne else {
            return fail(
                index,
                FileFailure(
                    "\(items[index].path) was sent \(Self.mostReportsOfOne) times, and the receiver asks for it again",
                    .damaged, other: "it was sent \(Self.mostReportsOfOne) times, and is not sent again"))
        }
        let report = Report(index)
        try change(report)
        reportCounts[index] = count
        reports.append(report)
    }

    /// How often the receiver has reported on each item that has no outcome yet.
    private var reportCounts: [Int: Int] = [:]

    /// The most items whose reports wait.
    static let mostReports = 128
    /// The most reports on one item that are followed. A receiver reports once more when a file has arrived damaged.
    static let mostReportsOfOne = 4

    // MARK: Working

    package func work() -> TransferWork {
        if let next = output.takeNext() { return next }
        switch state {
        case .offering(let next): return offer(next)
        case .waitingForAnswer: return .wait
        case .sending:
            if unfinished == 0 {
                state = .finishing
                onDecided?(outcomes)
                return .finish
            }
            return output.isPaused ? .wait : sendNext()
        case .finishing: return .wait
        case .over(let ending): return .over(ending)
        }
    }

    private func offer(_ next: Int) -> TransferWork {
        if next < 0 { output.write(.offer(count: items.count, metadata: metadata, version: version)) }
        let first = max(next, 0)
        let last = min(first + 256, items.count)
        for var item in items[first..<last] {
            if version == .first { item.isExecutable = false }
            output.write(.item(item))
        }
        state = last < items.count ? .offering(next: last) : .waitingForAnswer
        return .again
    }

    private func sendNext() -> TransferWork {
        guard let current else { return openNext() }
        do throws(FileFailure) {
            return try advance(current)
        } catch {
            fail(current.index, error)
            return .again
        }
    }

    /// This side cannot send the item.
    private func fail(_ index: Int, _ failure: FileFailure) {
        output.write(.missing(index: index, failure.fault))
        conclude(index, .failed(failure.fault, words: failure.description))
    }

    /// Opens the next file that the receiver has reported on.
    private func openNext() -> TransferWork {
        while let report = reports.first {
            guard outcomes[report.index] == .pending else {
                // The rest of the report, if there is one, is ignored when it comes.
                reports.removeFirst()
                continue
            }
            do throws(FileFailure) {
                current = Current(index: report.index, file: try source.open(report.index))
                progress.current = report.index
            } catch {
                if error.lacksDescriptors { return .waitForRoom }
                fail(report.index, error)
            }
            return .again
        }
        return .wait
    }

    /// Compares or sends the next bytes of the current file.
    private func advance(_ file: Current) throws(FileFailure) -> TransferWork {
        guard let report = reports.first, report.index == file.index else {
            current = nil
            return .again
        }
        if report.isQuestion { return try claim(file) }
        if file.position < file.sendingEnd { return try send(file, atMost: file.sendingEnd - file.position) }
        if report.compared < report.pieces.count { return try compare(report, file) }
        guard report.isComplete else { return .wait }
        // The bytes of a pipe can be read only once, so they cannot be verified.
        if let hash = report.wholeHash, file.file.isSeekable { return try verify(hash, file) }
        return try send(file, atMost: FileRecord.mostData)
    }

    /// Hashes the whole file, and sends the hash to the receiver, which has asked for it.
    private func claim(_ file: Current) throws(FileFailure) -> TransferWork {
        let bytes = try read(file, atMost: FileRecord.longestPiece)
        guard bytes.isEmpty else {
            file.hash.update(bytes)
            current?.position += bytes.count
            return .again
        }
        return try finish(file, .claim(index: file.index, size: file.position, hash: file.hash.value))
    }

    /// Reads a piece that the receiver has reported, and has it sent if it differs here.
    private func compare(_ report: Report, _ file: Current) throws(FileFailure) -> TransferWork {
        let piece = report.pieces[report.compared]
        let bytes = try read(file, atMost: piece.count)
        report.compared += 1
        guard bytes.count == piece.count, SHA256.hash(bytes) == piece.hash else {
            current?.sendingEnd = file.position + bytes.count
            return .again
        }
        skip(bytes, file)
        return .again
    }

    /// Reads the next bytes of a file.
    private func read(_ file: Current, atMost limit: Int) throws(FileFailure) -> UnsafeRawBufferPointer {
        let room = UnsafeMutableRawBufferPointer(rebasing: output.piece.prefix(limit))
        return UnsafeRawBufferPointer(rebasing: room[..<(try file.file.read(into: room, at: file.position))])
    }

    /// Passes over bytes that the receiver has.
    private func skip(_ bytes: UnsafeRawBufferPointer, _ file: Current) {
        file.hash.update(bytes)
        current?.position += bytes.count
        current?.sendingEnd = file.position + bytes.count
        current?.announced = nil
        progress.resumed += bytes.count
        setStored(file.position + bytes.count, of: file.index)
    }

    /// Checks that the file is the one that the receiver kept earlier. If it is not, all of it is sent.
    private func verify(_ hash: [UInt8], _ file: Current) throws(FileFailure) -> TransferWork {
        let bytes = try read(file, atMost: FileRecord.longestPiece)
        guard bytes.isEmpty else {
            skip(bytes, file)
            return .again
        }
        guard file.hash.value == hash else {
            progress.resumed -= file.position
            setStored(0, of: file.index)
            reports[0].wholeHash = nil
            current = Current(index: file.index, file: file.file)
            return .again
        }
        return try finish(file, .same(index: file.index))
    }

    /// Sends the next bytes of a file, or says that it has ended.
    private func send(_ file: Current, atMost limit: Int) throws(FileFailure) -> TransferWork {
        guard file.announced == file.position else {
            current?.announced = file.position
            output.write(.begin(index: file.index, offset: file.position))
            return .again
        }
        if let input = file.file.awaited { return .waitForInput(input) }
        let bytes = try read(file, atMost: min(limit, FileRecord.mostData))
        guard !bytes.isEmpty else {
            guard file.position >= file.sendingEnd else {
                current?.sendingEnd = file.position
                return .again
            }
            return try finish(
                file, .end(index: file.index, size: file.position, hash: file.hash.value))
        }
        file.hash.update(bytes)
        let end = file.position + bytes.count
        current?.position = end
        current?.announced = end
        progress.transferred += bytes.count
        return output.data(bytes.count)
    }

    private func finish(_ file: Current, _ record: FileRecord) throws(FileFailure) -> TransferWork {
        try file.file.checkUnchanged(file.position)
        sent[file.index] = (file.position, file.hash.value)
        output.write(record)
        current = nil
        reports.removeFirst()
        return .again
    }
}
