import NighCore
import NighTestKit

// Byte streams of users, and the rules that these must keep.

extension World {
    /// Lets the user of a run open streams now and then, in worlds with streams.
    func scheduleStreams(_ run: SessionRun) {
        guard hasStreams else { return }
        schedule(after: streamGenerator.milliseconds(200...4_000)) { [self] in
            guard !isQuiet, run.session != nil else { return }
            openStream(run)
            scheduleStreams(run)
        }
    }

    private func openStream(_ run: SessionRun) {
        guard let other = streamGenerator.pick(run.streams.keys.sorted()),
            let conversation = run.streams[other]?.conversation, let session = run.session, !run.isClosing
        else { return }
        let stream = WorldStream(
            number: worldStreams.count, opener: run, other: other, conversation: conversation)
        stream.senders[0] = run.streams[other]?.number
        worldStreams.append(stream)
        session.openStream(named: stream.name, to: id(other)) { [self] result in
            switch result {
            case .success(let end):
                run.note(.event, other, 20, "opens \(stream.name) to \(other)")
                counts.streams += 1
                stream.ends[0] = end
                scheduleUse(of: stream, at: 0)
            case .failure(let error): check(refusal: error, of: stream)
            }
        }
    }

    /// Checks why a stream could not be opened.
    private func check(refusal error: NighError, of stream: WorldStream) {
        let limits = [stream.opener.owner.member.limits, peers[stream.other].member.limits]
        switch error.cause {
        case .unsupported where limits.contains { $0.streams == 0 }: break
        case .limit(_, let limit) where limit == limits[1].streams: break
        case .left, .closed: break
        default: stream.opener.report(.calls, "\(stream.name) to \(stream.other) is refused: \(error)")
        }
    }

    /// Takes a stream that a peer has opened.
    func streamOpened(_ run: SessionRun, _ end: ByteStream) {
        guard let number = Int(end.name.split(separator: " ").last ?? ""),
            worldStreams.indices.contains(number),
            case let stream = worldStreams[number], end.name == stream.name,
            index(of: end.peer) == stream.opener.index,
            stream.other == run.index
        else { return run.report(.calls, "gets a stream that nobody opened: \(end.name)") }
        guard stream.users[1] == nil else { return run.report(.exactlyOnce, "gets \(stream.name) twice") }
        run.note(.event, stream.opener.index, 21, "gets \(stream.name) from \(stream.opener.index)")
        stream.users[1] = run
        stream.senders[1] = run.streams[stream.opener.index]?.number
        stream.ends[1] = end
        scheduleUse(of: stream, at: 1)
    }

    private func scheduleUse(of stream: WorldStream, at end: Int) {
        let pause: Duration = isQuiet ? .milliseconds(50) : streamGenerator.milliseconds(5...700)
        schedule(after: pause) { [self] in
            guard stream.ends[end] != nil, stream.users[end]?.session != nil else {
                stream.ends[end] = nil
                return
            }
            use(stream, at: end)
            if stream.ends[end] != nil { scheduleUse(of: stream, at: end) }
        }
    }

    /// Reads and writes at one end, and sometimes gives up. Once the world is quiet, brings everything to its end.
    private func use(_ stream: WorldStream, at end: Int) {
        read(stream, at: end, atMost: isQuiet ? .max : streamGenerator.number(0...6))
        if isQuiet {
            finish(stream, at: end)
        } else {
            switch streamGenerator.number(0...99) {
            case 0..<60: write(stream, at: end, count: streamGenerator.number(1...60_000))
            case 60..<80: write(stream, at: end, count: streamGenerator.number(1...300))
            case 80..<84: finish(stream, at: end)
            case 84: cancelWriting(stream, at: end)
            case 85: stopReading(stream, at: end)
            case 86:
                drop(stream, at: end)
            default: break
            }
        }
        // A user that leaves drops its end while the other may still be connected.
        if stream.isOver(at: end) || !stream.lasts(at: end) { drop(stream, at: end) }
    }

    /// Lets go of an end, which gives up what has not ended.
    private func drop(_ stream: WorldStream, at end: Int) {
        if !stream.directions[end].isFinished { stream.directions[end].isCancelled = true }
        if !stream.directions[1 - end].hasEnded { stream.directions[1 - end].isStopped = true }
        stream.ends[end] = nil
    }

    private func write(_ stream: WorldStream, at end: Int, count: Int) {
        guard let handle = stream.ends[end], !stream.directions[end].isFinished else { return }
        let bytes = stream.bytes(end, from: stream.directions[end].written, count: count)
        do throws(NighError) {
            stream.directions[end].written += try handle.tryWrite(ByteSlice(bytes))
        } catch {
            expect(
                error, of: stream, at: end,
                stream.directions[end].isCancelled || stream.directions[end].isStopped)
        }
    }

    private func finish(_ stream: WorldStream, at end: Int) {
        guard !stream.directions[end].isCancelled else { return }
        stream.directions[end].isFinished = true
        stream.ends[end]?.finish()
    }

    private func cancelWriting(_ stream: WorldStream, at end: Int) {
        guard !stream.directions[end].isFinished else { return }
        stream.directions[end].isCancelled = true
        stream.ends[end]?.cancelWriting(because: stream.name)
    }

    private func stopReading(_ stream: WorldStream, at end: Int) {
        stream.directions[1 - end].isStopped = true
        stream.ends[end]?.cancelReading(because: stream.name)
    }

    private func read(_ stream: WorldStream, at end: Int, atMost count: Int) {
        let direction = 1 - end
        guard let handle = stream.ends[end], let user = stream.users[end] else { return }
        for _ in 0..<count {
            guard !stream.directions[direction].hasEnded else { return }
            switch handle.poll() {
            case .nothing: return
            case .bytes(let bytes):
                counts.streamBytes += bytes.count
                if let fault = stream.recordArrival(of: bytes, in: direction) { user.report(.order, fault) }
            case .end:
                stream.directions[direction].hasEnded = true
                let known = stream.directions[direction]
                if !known.isFinished || known.read != known.written {
                    user.report(
                        .delivery, "\(stream.name) ends after \(known.read) of \(known.written) bytes")
                }
            case .failed(let error):
                stream.directions[direction].hasEnded = true
                expect(
                    error, of: stream, at: end,
                    stream.directions[direction].isCancelled || stream.directions[direction].isStopped)
            }
        }
    }

    /// Checks that a stream fails only because somebody gave it up, or because the conversation has ended.
    private func expect(_ error: NighError, of stream: WorldStream, at end: Int, _ wasGivenUp: Bool) {
        if case .streamCancelled = error.cause, wasGivenUp { return }
        if !stream.lasts(at: end) { return }
        // A user that is leaving may not write any more.
        let other = end == 0 ? stream.other : stream.opener.index
        let isOwn = error.cause == .left || error.cause == .closed
        if isOwn, stream.users[end]?.withdrawnFrom.contains(other) ?? false { return }
        stream.users[end]?.report(.delivery, "\(stream.name) fails: \(error)")
    }

    /// Checks, at rest, that everything that was written has been read, in conversations that still last.
    func checkStreamsAtRest() {
        for stream in worldStreams where stream.lasts(at: 0) {
            guard stream.users[1] == nil || stream.lasts(at: 1) else { continue }
            for (index, direction) in stream.directions.enumerated() {
                guard direction.isFinished, !direction.isStopped, !direction.isCancelled else { continue }
                if !direction.hasEnded || direction.read != direction.written {
                    stream.opener.report(
                        .delivery,
                        "\(direction.written) bytes of \(stream.name) were written in direction \(index), "
                            + "\(direction.read) read, and its end was \(direction.hasEnded ? "" : "not ")seen"
                    )
                }
            }
        }
    }
}
