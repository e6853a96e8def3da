import NighCore

/// The receiver's side of a transfer: reports which bytes of each file it has, writes new ones, and gives a file its
/// name once it is whole, verified and on the disk.
///
/// It prepares files ahead of those that are coming, so that many small files need no round trip each.
/// This file is long because the state of the files is private to it.
package final class IncomingFiles: TransferSide {
    /// A step that a file needs before more of it comes, or once it is whole.
    private enum Task {
        /// Report the bytes that are there.
        case report(IncomingPart)
        /// Read all again and hash it.
        case verify(IncomingPart)
        /// Compare the files under the name of this one with the hash of the sender's.
        case compare(IncomingPart, hash: [UInt8])
    }

    private enum State {
        /// The offer comes; this number of items is missing.
        case listing(missing: Int)
        /// The program decides.
        case deciding
        case receiving(any FileStore)
        case finished(any FileStore)
        case over(TransferEnding)
    }

    private var list = ItemList()
    package var items: [FileItem] { list.items }
    /// About how many bytes of memory the items take, as far as `mayHold` has allowed them.
    private(set) var heldBytes = 0
    package private(set) var metadata: [UInt8] = []
    private var state = State.listing(missing: -1)
    private var version = FileVersion.first
    private var cutter = RecordCutter()
    package private(set) var outcomes: [ItemOutcome] = []
    package private(set) var progress = TransferCount()
    private var unfinished = 0
    /// The files whose outcome is not known.
    private var unfinishedFiles = 0

    /// The next item to look at: first for a file to prepare, and once all files have ended, for a folder to make.
    private var nextItem = 0
    private var nextFolder = 0
    private var parts: [Int: IncomingPart] = [:]
    /// The files that the store had whole already, until the sender says whether its own are the same.
    private var keptEarlier: [Int: (path: String, hash: [UInt8])] = [:]
    private var tasks: [Task] = []
    /// The part that bytes come for, and where they belong; nil if it has failed.
    private var receiving: (part: IncomingPart?, offset: Int)?
    /// Bytes that did not fit on the disk, in the order in which they came.
    private var unwritten: [(part: IncomingPart, offset: Int, bytes: [UInt8])] = []
    /// The most bytes of a file of unknown size.
    private var mostBytes = Int.max
    private let output = RecordOutput()

    /// The most items that are prepared ahead. Each holds up to three descriptors.
    private static let preparedAhead = 16
    /// How often a file that arrived damaged is compared and sent again.
    private static let mostMismatches = 3
    /// The bytes that are written between two reports to the sender.
    private static let reportInterval = 128 << 10
    /// The share of a file that is written between two reports, if that is more.
    private static let reportShare = 256

    /// Asked before an item is listed that takes about this many bytes of memory. If the answer is no, the transfer
    /// ends.
    var mayHold: ((Int) -> Bool)?
    /// Gets the result for an item, as soon as it is known.
    var onConclusion: ((FileItem, ItemOutcome) -> Void)?

    package init() {}

    // MARK: The program

    /// Whether the offer has not come whole.
    package var isListing: Bool { if case .listing = state { true } else { false } }

    /// Whether the offer has come whole and waits for an answer.
    package var isDeciding: Bool { if case .deciding = state { true } else { false } }

    /// Takes the offer. If there is too little room for it, stops the transfer for that reason.
    ///
    /// - Parameter mostBytes: the most bytes of a file of unknown size.
    package func accept(into store: any FileStore, atMost mostBytes: Int = .max) {
        guard case .deciding = state else { return }
        // A file that cannot be looked at now counts as missing.
        let needed = progress.total - ((try? store.present) ?? 0)
        if let room = store.room, needed > room {
            return stop(FileFault(.noSpace, "\(needed) bytes are needed, and \(room) are free"))
        }
        self.mostBytes = mostBytes
        state = .receiving(store)
        output.write(.accept)
    }

    /// Pauses the transfer from this side, or resumes it.
    package func setPaused(_ isOn: Bool, because reason: String) {
        // After everything was said, only the sender's end is missing.
        if case .finished = state { return }
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
        case .receiving, .finished: true
        case .listing, .deciding, .over: false
        }
    }

    package var hasEnded: Bool { if case .over = state { true } else { false } }

    package func leave() { if case .finished = state { end(.complete) } }

    private func end(_ ending: TransferEnding) {
        guard !hasEnded else { return }
        for part in parts.values where items[part.index].size == nil { part.file.discard() }
        state = .over(ending)
        parts.removeAll()
        tasks.removeAll()
        receiving = nil
        unwritten = []
        progress.current = nil
    }

    /// Lets other programs continue that wait to open a file which is being received.
    func admitOtherPrograms() { for part in parts.values { _ = part.file.isUntouched } }

    // MARK: Receiving

    package var takesBytes: Bool { unwritten.isEmpty && !output.isPaused && output.count < Self.mostOutput }

    /// The bytes that may wait to be sent before more are taken.
    private static let mostOutput = 64 << 10

    package func receive(_ bytes: UnsafeRawBufferPointer) {
        guard !hasEnded else { return }
        do throws(WireError) {
            try cutter.cut(bytes) { part throws(WireError) in
                guard !hasEnded else { return }
                switch part {
                case .record(let record): try handle(record)
                case .data(let bytes): try handle(bytes)
                }
            }
        } catch {
            stop(FileFault(.violation, error.message))
        }
    }

    package func receiveEnd(_ error: NighError?) {
        switch state {
        case .over: break
        case .receiving(let store) where error == nil && unfinished == 0,
            .finished(let store) where error == nil:
            store.finish()
            end(.complete)
        default: end(.lost(error ?? NighError(.receiving, .streamCancelled("the sender left"))))
        }
    }

    private func handle(_ record: FileRecord) throws(WireError) {
        switch (record, state) {
        case (.stop(let fault), _): return end(.stopped(fault))
        case (.paused(let reason), _): return output.notePause(because: reason, in: &progress)
        case (.resumed, _): return output.notePause(because: nil, in: &progress)
        case (.offer(let count, let metadata, let version), .listing(missing: -1)):
            self.metadata = metadata
            self.version = version
            state = .listing(missing: count)
            return
        case (.item(let item), .listing(let missing)) where missing > 0: return try add(item, missing - 1)
        case (.begin(let index, let offset), .receiving): return try begin(index, offset)
        case (.end(let index, let size, let hash), .receiving): return try endFile(index, size, hash)
        case (.same(let index), .receiving):
            guard let kept = keptEarlier.removeValue(forKey: index) else { break }
            progress.done += items[index].size ?? 0
            progress.resumed += items[index].size ?? 0
            output.write(.kept(index: index))
            return conclude(index, .kept(path: kept.path, hash: kept.hash))
        case (.claim(let index, let size, let hash), .receiving):
            guard items.indices.contains(index) else { break }
            // It has failed meanwhile.
            guard let part = parts[index] else { return }
            guard part.isCompared else { break }
            part.isCompared = false
            tasks.append(size == items[index].size ? .compare(part, hash: hash) : .report(part))
            return
        case (.missing(let index, let fault), .receiving):
            guard items.indices.contains(index) else { break }
            return conclude(index, .failed(fault, words: fault.explanation))
        default: break
        }
        throw .malformed("a record of files comes out of turn")
    }

    private func add(_ item: FileItem, _ missing: Int) throws(WireError) {
        try list.add(item)
        guard mayHold?(item.heldBytes) ?? true else {
            return stop(FileFault(.declined, "too many files and folders are offered there at once"))
        }
        heldBytes += item.heldBytes
        outcomes.append(.pending)
        unfinished += 1
        if item.kind == .file { unfinishedFiles += 1 }
        progress.add(item)
        if missing == 0 { try list.checkOrder() }
        state = missing > 0 ? .listing(missing: missing) : .deciding
    }

    private func begin(_ index: Int, _ offset: Int) throws(WireError) {
        guard items.indices.contains(index) else { throw .malformed("bytes of an item that does not exist") }
        progress.current = index
        if keptEarlier.removeValue(forKey: index) != nil {
            guard offset == 0 else { throw .malformed("bytes of a file that is whole") }
            openAnew(index)
        }
        guard let part = parts[index] else {
            guard outcomes[index] != .pending else {
                throw .malformed("bytes of a file that nobody asked for")
            }
            receiving = (nil, 0)
            return
        }
        guard offset <= part.count, part.expected == nil, !part.isCompared else {
            throw .malformed("bytes that leave a gap in a file")
        }
        receiving = (part, offset)
    }

    private func handle(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        guard let (part, offset) = receiving else { throw .malformed("bytes of no file") }
        progress.transferred += bytes.count
        guard let part else { return }
        receiving?.offset += bytes.count
        let size = items[part.index].size
        guard offset + bytes.count <= size ?? mostBytes else {
            guard size == nil else { throw .malformed("more bytes of a file than it has") }
            return fail(
                part.index,
                FileFailure(
                    "\(items[part.index].path) has more than \(mostBytes) bytes", .tooLarge,
                    other: "the file is larger than is accepted there"))
        }
        guard unwritten.isEmpty else { return unwritten.append((part, offset, Array(bytes))) }
        write(bytes, of: part, at: offset)
    }

    /// Writes bytes of a file. If there is no room for them, they wait.
    private func write(_ bytes: UnsafeRawBufferPointer, of part: IncomingPart, at offset: Int) {
        do throws(FileFailure) {
            progress.done += try part.write(bytes, at: offset)
        } catch {
            guard error.fault.reason == .noSpace else { return fail(part.index, error) }
            unwritten.append((part, offset, Array(bytes)))
            setPausedForRoom(error)
            return
        }
        let end = offset + bytes.count
        if end - part.reported >= max(Self.reportInterval, end / Self.reportShare) {
            part.reported = end
            output.write(.stored(index: part.index, count: end))
        }
    }

    private func setPausedForRoom(_ failure: FileFailure) {
        guard progress.pause?.isHere != true else { return }
        progress.pause = .init(isHere: true, reason: failure.description)
        output.write(.paused(failure.fault.explanation))
    }

    /// Writes the bytes that did not fit before.
    private func writeAgain() -> TransferWork {
        let waiting = unwritten
        unwritten = []
        for piece in waiting {
            guard unwritten.isEmpty else {
                unwritten.append(piece)
                continue
            }
            guard parts[piece.part.index] === piece.part else { continue }
            piece.bytes.withUnsafeBytes { write($0, of: piece.part, at: piece.offset) }
        }
        guard unwritten.isEmpty else { return .waitForRoom }
        endPauseForRoom()
        return .again
    }

    /// Goes on after a pause that this side has made because there was no room. A transfer that the program has paused
    /// does not get here.
    private func endPauseForRoom() { if progress.pause?.isHere == true { output.resume(&progress) } }

    private func endFile(_ index: Int, _ size: Int, _ hash: [UInt8]) throws(WireError) {
        guard items.indices.contains(index) else {
            throw .malformed("the end of an item that does not exist")
        }
        receiving = nil
        guard let part = parts[index] else {
            guard outcomes[index] != .pending else {
                throw .malformed("the end of a file that nobody asked for")
            }
            return
        }
        guard part.expected == nil, !part.isCompared, items[index].size ?? size == size else {
            throw .malformed("a file of another size than was offered")
        }
        part.expected = (size, hash)
        tasks.append(.verify(part))
    }

    // MARK: Working

    package func work() -> TransferWork {
        if let next = output.takeNext() { return next }
        switch state {
        case .listing, .deciding: return .wait
        case .receiving(let store):
            if output.isPaused { return .wait }
            if !unwritten.isEmpty { return writeAgain() }
            if let task = tasks.first { return perform(task) }
            if unfinished == 0 {
                state = .finished(store)
                return .finish
            }
            return nextItem < items.count ? prepareNext(store) : makeNextFolder(store)
        case .finished: return .wait
        case .over(let ending): return .over(ending)
        }
    }

    /// Finds out which bytes of the next file are there.
    private func prepareNext(_ store: any FileStore) -> TransferWork {
        guard parts.count + keptEarlier.count < Self.preparedAhead else { return .wait }
        if items[nextItem].kind == .file, let pause = open(nextItem, store) { return pause }
        nextItem += 1
        return .again
    }

    /// Makes the next folder, once all files have ended. The sender learns of each, so all of them stay from then on; a
    /// transfer that is cut earlier has made no folder that stays empty.
    private func makeNextFolder(_ store: any FileStore) -> TransferWork {
        guard unfinishedFiles == 0, nextFolder < items.count else { return .wait }
        if items[nextFolder].kind == .folder, let pause = open(nextFolder, store) { return pause }
        nextFolder += 1
        return .again
    }

    /// Finds or creates the part of an item. Returns a condition to wait for if too many files are open for that now.
    private func open(_ index: Int, _ store: any FileStore) -> TransferWork? {
        guard outcomes[index] == .pending else { return nil }
        do throws(FileFailure) {
            switch try store.open(index) {
            case .folder:
                output.write(.kept(index: index))
                conclude(index, .kept(path: nil, hash: nil))
            case .kept(let path, let hash):
                keptEarlier[index] = (path, hash)
                output.write(.whole(index: index, hash: hash))
            case .part(let file): try prepare(IncomingPart(index, file))
            }
            endPauseForRoom()
        } catch {
            // Each of the files that are being received will close its descriptors.
            if error.lacksDescriptors { return parts.isEmpty ? waitForRoom(error) : .wait }
            fail(index, error)
        }
        return nil
    }

    /// Reports to the sender that there is no room, with the reason, and waits.
    private func waitForRoom(_ failure: FileFailure) -> TransferWork {
        setPausedForRoom(failure)
        return output.count > 0 ? .again : .waitForRoom
    }

    private func prepare(_ part: IncomingPart) throws(FileFailure) {
        if let size = items[part.index].size {
            try part.shorten(to: size)
        } else {
            // The sender cannot read a file of unknown size twice.
            try part.shorten(to: 0)
        }
        parts[part.index] = part
        progress.resumed += part.count
        progress.done += part.count
        // To learn whether it has the file already, this side asks for the sender's hash, and sends none: otherwise a
        // sender could learn the content of files that it only names.
        if version != .first, part.count == 0, items[part.index].size != nil, part.file.mayBeThere() {
            part.isCompared = true
            output.write(.compare(index: part.index))
        } else {
            tasks.append(.report(part))
        }
    }

    /// Compares the next bytes of the files under the name of this one. If all are the sender's, the file is kept as it
    /// is.
    private func compare(_ part: IncomingPart, _ hash: [UInt8]) throws(FileFailure) {
        guard parts[part.index] === part else {
            tasks.removeFirst()
            return
        }
        switch try part.file.compareNext(with: hash) {
        case .undecided: return
        case .other:
            tasks.removeFirst()
            tasks.append(.report(part))
        case .same(let path):
            tasks.removeFirst()
            let size = items[part.index].size ?? 0
            progress.done += size
            progress.resumed += size
            output.write(.kept(index: part.index))
            conclude(part.index, .kept(path: path, hash: hash))
        }
    }

    /// The sender has another file now than the one that was kept: receives it beside that.
    private func openAnew(_ index: Int) {
        guard case .receiving(let store) = state else { return }
        do throws(FileFailure) {
            let part = IncomingPart(index, try store.openAnew(index))
            // All of it comes.
            try part.shorten(to: 0)
            parts[index] = part
        } catch {
            fail(index, error)
        }
    }

    private func perform(_ task: Task) -> TransferWork {
        do throws(FileFailure) {
            switch task {
            case .report(let part): try report(part)
            case .verify(let part): try verify(part)
            case .compare(let part, let hash): try compare(part, hash)
            }
            endPauseForRoom()
        } catch {
            // The task is done again.
            if error.lacksDescriptors { return waitForRoom(error) }
            switch task {
            case .report(let part), .verify(let part), .compare(let part, _): fail(part.index, error)
            }
        }
        return .again
    }

    /// Reports the next piece of the bytes that are there.
    private func report(_ part: IncomingPart) throws(FileFailure) {
        guard parts[part.index] === part else {
            tasks.removeFirst()
            return
        }
        guard part.hashed < part.count else {
            tasks.removeFirst()
            output.write(.ready(index: part.index))
            return
        }
        let bytes = try part.readNext(into: output.piece)
        guard !bytes.isEmpty else { return }
        output.write(.have(index: part.index, count: bytes.count, hash: SHA256.hash(bytes)))
    }

    /// Checks a file that the sender has sent whole, and keeps it.
    private func verify(_ part: IncomingPart) throws(FileFailure) {
        guard parts[part.index] === part, let expected = part.expected else {
            tasks.removeFirst()
            return
        }
        try part.shorten(to: expected.size)
        if part.isHashStale || !part.isReadAgain && !part.file.isUntouched {
            part.isReadAgain = true
            part.rewind()
        }
        if part.hashed < part.count, try !part.readNext(into: output.piece).isEmpty { return }
        guard part.hashed == expected.size, part.hash.value == expected.hash else {
            tasks.removeFirst()
            return try sendAgain(part)
        }
        let path = try part.file.keep(expected.hash)
        tasks.removeFirst()
        parts[part.index] = nil
        list.noteSize(expected.size, of: part.index)
        output.write(.kept(index: part.index))
        conclude(part.index, .kept(path: path, hash: expected.hash))
    }

    /// Has the sender compare a file, because the written bytes are not the sent ones.
    private func sendAgain(_ part: IncomingPart) throws(FileFailure) {
        part.mismatches += 1
        guard part.mismatches < Self.mostMismatches, items[part.index].size != nil else {
            part.file.discard()
            throw FileFailure(
                "what was written of \(items[part.index].path) is not what was sent; send it again", .damaged,
                other: "what was written there is not what was sent")
        }
        part.expected = nil
        part.isReadAgain = false
        part.rewind()
        tasks.append(.report(part))
    }

    /// This side cannot receive the item.
    private func fail(_ index: Int, _ failure: FileFailure) {
        output.write(.failed(index: index, failure.fault))
        conclude(index, .failed(failure.fault, words: failure.description))
    }

    private func conclude(_ index: Int, _ outcome: ItemOutcome) {
        guard outcomes[index] == .pending else { return }
        outcomes[index] = outcome
        onConclusion?(items[index], outcome)
        unfinished -= 1
        if items[index].kind == .file { unfinishedFiles -= 1 }
        progress.conclude(outcome)
        // A file whose size was not known cannot be continued.
        if case .failed = outcome, items[index].size == nil { parts[index]?.file.discard() }
        parts[index] = nil
        keptEarlier[index] = nil
        if receiving?.part?.index == index { receiving?.part = nil }
        if progress.current == index { progress.current = nil }
    }
}
