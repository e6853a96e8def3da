import NighCore
import NighTestKit
import NighFiles

// Files that users offer and receive, and the rules that these must keep.

extension World {
    /// The smallest window of streams with which files are sent. With less, a file takes thousands of round trips.
    private static let leastWindow = 2_000

    /// Whether a user accepts files.
    func acceptsFiles(_ index: Int) -> Bool {
        hasStreams && peers[index].member.limits.streams > 0 && hasRoom(index)
            && (seed &+ UInt64(index)) % 5 != 0
    }

    /// The purpose of the streams on which a user is offered files. Some compare nothing, as peers of an earlier
    /// version.
    func filePurpose(of index: Int) -> StreamPurpose {
        (seed &+ UInt64(index)) % 3 == 0 ? .files : .comparedFiles
    }

    /// Whether a user allows so much of a stream to be under way that more than a few bytes get through it.
    func hasRoom(_ index: Int) -> Bool {
        peers[index].member.limits.streamWindow >= Self.leastWindow
    }

    /// Lets the user of a run send files now and then.
    func scheduleDeliveries(_ run: SessionRun) {
        guard hasStreams, hasRoom(run.index) else { return }
        let pause: Duration = isQuiet ? .milliseconds(300) : fileGenerator.milliseconds(300...5_000)
        schedule(after: pause) { [self] in
            guard run.session != nil, !run.isClosing else { return }
            deliver(run)
            scheduleDeliveries(run)
        }
    }

    /// Offers new files to a connected peer, or offers again what has not arrived.
    private func deliver(_ run: SessionRun) {
        let others = run.streams.keys.sorted().filter { other in
            !run.transfers.contains { $0.peer == other && !$0.isOver && $0.side is OutgoingFiles }
        }
        for other in others {
            let unfinished = deliveries.first {
                $0.sender == run.index && $0.receiver == other && !$0.isDelivered
            }
            if let unfinished {
                if isQuiet || fileGenerator.number(0...1) == 0 { offer(unfinished, run) }
            } else if !isQuiet, fileGenerator.number(0...3) == 0 {
                let windows = [run.index, other].map { peers[$0].member.limits.streamWindow }
                let delivery = WorldDelivery(
                    number: deliveries.count, from: run.index, to: other,
                    hasLargeFiles: windows.allSatisfy { $0 >= 64 << 10 }, &fileGenerator)
                deliveries.append(delivery)
                offer(delivery, run)
            }
        }
    }

    private func offer(_ delivery: WorldDelivery, _ run: SessionRun) {
        guard let session = run.session else { return }
        let other = delivery.receiver
        let purpose = filePurpose(of: other)
        if delivery.offers == 0, delivery.isThere(before: purpose) {
            peers[other].disk.files.merge(delivery.copies) { there, _ in there }
        }
        session.openStream(named: "files", to: id(other), for: purpose) { [self] result in
            switch result {
            case .success(let stream):
                run.note(.event, other, 22, "offers files \(delivery.number) to \(other)")
                counts.offers += 1
                delivery.offers += 1
                let side = OutgoingFiles(
                    delivery.files, version: purpose == .comparedFiles ? .comparing : .first)
                side.onDecided = { outcomes in
                    let areAllKept = outcomes.allSatisfy { if case .kept = $0 { true } else { false } }
                    if areAllKept { delivery.isDelivered = true }
                }
                let transfer = WorldTransfer(with: other, side, on: stream, delivery)
                begin(transfer, run)
            case .failure(let error): check(refusal: error, of: delivery, run)
            }
        }
    }

    /// Checks why files could not be offered.
    private func check(refusal error: NighError, of delivery: WorldDelivery, _ run: SessionRun) {
        switch error.cause {
        case .unsupported:
            // Nothing more will be tried with a peer that has no files.
            let hasStreams = [delivery.sender, delivery.receiver].allSatisfy {
                peers[$0].member.limits.streams > 0
            }
            if hasStreams, acceptsFiles(delivery.receiver) {
                run.report(.calls, "files \(delivery.number) are refused: \(error)")
            }
            delivery.isDelivered = true
        case .limit, .left, .closed, .notConnected: break
        default: run.report(.calls, "files \(delivery.number) are refused: \(error)")
        }
    }

    /// Takes a stream with which a peer offers files.
    func filesOffered(_ run: SessionRun, _ stream: ByteStream) {
        guard let other = index(of: stream.peer) else { return }
        // The transfers of an earlier conversation end before more of the same files come.
        for earlier in run.transfers where earlier.peer == other { step(earlier, run) }
        begin(WorldTransfer(with: other, IncomingFiles(), on: stream, nil), run)
    }

    private func begin(_ transfer: WorldTransfer, _ run: SessionRun) {
        run.transfers.removeAll(where: \.isOver)
        run.transfers.append(transfer)
        scheduleSteps(transfer, run)
    }

    private func scheduleSteps(_ transfer: WorldTransfer, _ run: SessionRun) {
        let pause: Duration = isQuiet ? .milliseconds(20) : fileGenerator.milliseconds(1...200)
        schedule(after: pause) { [self] in
            guard run.session != nil else {
                run.transfers.removeAll { $0 === transfer }
                return
            }
            step(transfer, run)
            if !transfer.isOver { scheduleSteps(transfer, run) }
        }
    }

    /// Moves one end of a transfer as far as it goes without waiting, or not quite as far.
    private func step(_ transfer: WorldTransfer, _ run: SessionRun) {
        guard !transfer.isOver else { return }
        let before = transfer.side.progress.transferred
        var left = isQuiet ? Int.max : fileGenerator.number(1...60)
        while left > 0 {
            left -= 1
            if let incoming = transfer.side as? IncomingFiles, incoming.isDeciding {
                accept(transfer, incoming, run)
            }
            switch transfer.steps.step(at: loop.now) {
            case .none: continue
            case .activity, .input, .time: left = 0
            case .over(let ending):
                transfer.isOver = true
                left = 0
                ended(transfer, ending, run)
            }
        }
        if transfer.side is OutgoingFiles {
            let count = transfer.side.progress.transferred - before
            transfer.delivery?.transferred += count
            counts.fileBytes += count
        }
    }

    /// Accepts what is offered, or declines it now and then.
    private func accept(_ transfer: WorldTransfer, _ incoming: IncomingFiles, _ run: SessionRun) {
        guard let number = incoming.items.first.flatMap({ Int($0.path) }),
            deliveries.indices.contains(number),
            case let delivery = deliveries[number], delivery.files.items == incoming.items,
            delivery.sender == transfer.peer, delivery.receiver == run.index
        else { return run.report(.order, "is offered files that nobody offers") }
        transfer.delivery = delivery
        if !isQuiet, fileGenerator.number(0...9) == 0 {
            return incoming.stop(FileFault(.declined, "not now"))
        }
        incoming.accept(into: run.owner.disk.store(for: incoming.items))
    }

    private func ended(_ transfer: WorldTransfer, _ ending: TransferEnding, _ run: SessionRun) {
        guard let delivery = transfer.delivery else { return }
        let name = "files \(delivery.number)"
        switch ending {
        case .complete:
            for outcome in transfer.side.outcomes {
                if case .failed(_, let words) = outcome { run.report(.delivery, "\(name) fail: \(words)") }
            }
            if transfer.side is OutgoingFiles {
                run.note(.event, transfer.peer, 23, "\(name) have arrived")
                delivery.isDelivered = true
                counts.deliveries += 1
                checkArrival(of: delivery, run)
            }
        case .stopped(let fault), .stoppedHere(let fault):
            if fault.reason != .declined {
                run.report(.delivery, "\(name) are stopped: \(fault.explanation)")
            }
        case .lost: break
        }
    }

    /// Checks that everything of a delivery is at the receiver, and that little was sent twice.
    private func checkArrival(of delivery: WorldDelivery, _ run: SessionRun) {
        let disk = peers[delivery.receiver].disk
        for (item, content) in zip(delivery.files.items, delivery.files.contents) {
            if item.kind == .folder {
                if !disk.folders.contains(item.path) {
                    run.report(.delivery, "the folder \(item.path) is missing")
                }
            } else if disk.files[item.path] != content {
                run.report(.order, "the file \(item.path) is not what was sent")
            }
        }
        let most =
            delivery.size + (delivery.offers - 1)
            * (StreamPurpose.files.windowGrowth * peers[delivery.receiver].member.limits.streamWindow
                + peers[delivery.sender].member.limits.streamWindow
                + 2 * FileRecord.mostData)
        if delivery.isThere(before: filePurpose(of: delivery.receiver)), delivery.transferred > 0 {
            run.report(.exactlyOnce, "files \(delivery.number) were sent although the receiver had them")
        }
        if delivery.transferred > most {
            run.report(
                .exactlyOnce,
                "\(delivery.transferred) bytes were sent for the \(delivery.size) of files \(delivery.number)"
            )
        }
    }

    /// Checks, at rest, that no file has arrived twice or in part, and that everything has arrived where it can.
    func checkDeliveriesAtRest() {
        for receiver in peers {
            for (name, content) in receiver.disk.files {
                let sent = deliveries.first { delivery in
                    delivery.receiver == receiver.index
                        && zip(delivery.files.items, delivery.files.contents).contains {
                            $0.path == name && $1 == content
                        }
                }
                if sent == nil {
                    receiver.runs.last?.report(.exactlyOnce, "has the file \(name), which nobody sent")
                }
            }
        }
        for delivery in deliveries where !delivery.isDelivered {
            guard let run = peers[delivery.sender].activeRun, run.streams[delivery.receiver] != nil,
                let other = peers[delivery.receiver].activeRun, other.streams[delivery.sender] != nil
            else { continue }
            run.report(.delivery, "files \(delivery.number) have not arrived after \(delivery.offers) offers")
        }
    }
}
