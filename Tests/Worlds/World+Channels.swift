import NighChannels
import NighCore
import NighTestKit

// Channels of users, and the rules that these must keep.

extension World {
    private static let channelNames = ["red", "blue"]

    /// Whether a user's session has channels. The others are as peers of an earlier version.
    func hasChannels(_ index: Int) -> Bool { hasStreams && (seed &+ UInt64(index)) % 6 != 1 }

    /// Whether the sessions of both users have streams.
    func haveStreams(_ index: Int, _ other: Int) -> Bool {
        [index, other].allSatisfy { peers[$0].member.limits.streams > 0 }
    }

    /// Whether a user keeps this many streams open to another one. If that one allows few, one is left to files.
    func keepsStreams(_ count: Int, from index: Int, to other: Int) -> Bool {
        let limit = peers[other].member.limits.streams
        return (limit == 0 || limit > count) && hasRoom(index) && hasRoom(other)
    }

    /// Whether both users allow so much of a stream to be under way that long messages take no time.
    func hasWideStreams(_ index: Int, _ other: Int) -> Bool {
        [index, other].allSatisfy { peers[$0].member.limits.streamWindow >= 64 << 10 }
    }

    /// Lets the user of a run open and close channels, send through them, and read what others send.
    func scheduleChannels(_ run: SessionRun) {
        guard run.channels != nil else { return }
        let pause: Duration = isQuiet ? .milliseconds(100) : channelGenerator.milliseconds(30...600)
        schedule(after: pause) { [self] in
            guard let channels = run.channels, run.session != nil, !run.isClosing else { return }
            read(channels, of: run)
            if isQuiet { Self.channelNames.forEach(channels.open) } else { act(channels, of: run) }
            scheduleChannels(run)
        }
    }

    private func act(_ channels: WorldChannels, of run: SessionRun) {
        guard let name = channelGenerator.pick(Self.channelNames) else { return }
        guard channels.isOpen(name) else { return channelGenerator.chance(60) ? channels.open(name) : () }
        switch channelGenerator.number(0...99) {
        case 0..<6:
            run.note(.event, 0, 24, "closes the channel \(name)")
            channels.close(name)
            if channelGenerator.chance(30) { channels.open(name) }
        case 6..<12:
            let flows = channels.flows.values.filter { $0.task != nil }.sorted { $0.number < $1.number }
            if let flow = channelGenerator.pick(flows) {
                run.note(.event, flow.other, 25, "cancels what it sends in flow \(flow.number)")
                flow.isCancelled = true
                flow.task?.cancel()
            }
        case 12..<75:
            if let other = channelGenerator.pick(run.streams.keys.sorted()) {
                // It seldom tries what the other one does not support.
                let isSupported = hasChannels(other) && haveStreams(run.index, other)
                guard isSupported || channelGenerator.chance(10) else { return }
                send(channelGenerator.number(1...12), through: name, of: run, to: other)
            }
        default: break
        }
    }

    // MARK: Sending

    /// Starts a task that sends messages through an open channel, unless another one is sending there to that peer.
    private func send(_ count: Int, through name: String, of run: SessionRun, to other: Int) {
        guard let channels = run.channels, let port = channels.open[name], let stream = run.streams[other],
            // One is for questions.
            keepsStreams(name == Self.channelNames[0] ? 2 : 3, from: run.index, to: other)
        else { return }
        let flow = flow(through: name, of: run, to: other, stream)
        guard flow.task == nil else { return }
        let isWide = hasWideStreams(run.index, other)
        let lengths = (0..<count).map { _ in
            max(length(isWide: isWide), flow.mayBeShort ? 0 : ChannelFlow.headerLength)
        }
        flow.isCancelled = false
        let task = Task(executorPreference: loop) { [self, peer = run.session?.peer(id(other))] in
            if let peer { await send(lengths, in: flow, through: port, to: peer) }
            flow.task = nil
        }
        flow.task = task
        run.tasks.append(task)
    }

    private func length(isWide: Bool) -> Int {
        switch channelGenerator.number(0...99) {
        case 0..<25: channelGenerator.number(0...16)
        case 25..<70: channelGenerator.number(17...1_000)
        case 70..<95 where isWide: channelGenerator.number(1_001...30_000)
        case 95... where isWide: channelGenerator.number(30_001...150_000)
        default: channelGenerator.number(1_001...4_000)
        }
    }

    private func flow(
        through name: String, of run: SessionRun, to other: Int, _ stream: SessionRun.OutgoingStream
    ) -> ChannelFlow {
        let destination = WorldChannels.Destination(other: other, name: name)
        if let flow = run.channels?.flows[destination], flow.conversation == stream.number { return flow }
        let isOnly = !channelFlows.contains { flow in
            flow.sender.index == run.index && flow.receiver === stream.receiver && flow.name == name
        }
        let flow = ChannelFlow(
            number: channelFlows.count, name: name, from: run, to: other, stream,
            mayBeShort: isOnly && stream.receiver != nil)
        channelFlows.append(flow)
        run.channels?.flows[destination] = flow
        return flow
    }

    private func send(
        _ lengths: [Int], in flow: ChannelFlow, through port: ChannelPort, to peer: Peer
    ) async {
        for length in lengths {
            guard lasts(flow) else { return }
            // The message may arrive before this task runs again.
            flow.lengths.append(length)
            do throws(NighError) {
                try await port.send(ByteSlice(flow.message(flow.lengths.count - 1, length: length)), to: peer)
            } catch {
                flow.lengths.removeLast()
                return failed(flow, through: port, error)
            }
        }
    }

    /// Whether the conversation of a flow lasts, as its sender was last told.
    private func lasts(_ flow: ChannelFlow) -> Bool {
        lasts(for: flow.sender, with: flow.other, since: flow.conversation)
    }

    /// Whether a conversation still lasts for a run, as it was last told. `stream` is the number in the ledger of what
    /// it sends.
    func lasts(for run: SessionRun, with other: Int, since stream: Int) -> Bool {
        run.session != nil && !run.isClosing && run.streams[other]?.number == stream
    }

    /// Whether a conversation has ended for a run, or is about to, because one of the two has left.
    func mayHaveEnded(
        for run: SessionRun, with other: Int, _ receiver: SessionRun?, since stream: Int
    ) -> Bool {
        !isFaultFree
            && (!lasts(for: run, with: other, since: stream) || run.withdrawnFrom.contains(other)
                || receiver?.withdrawnFrom.contains(run.index) ?? true)
    }

    /// Checks why a message was refused. After that, the user begins another flow.
    private func failed(_ flow: ChannelFlow, through port: ChannelPort, _ error: NighError) {
        let run = flow.sender
        let destination = WorldChannels.Destination(other: flow.other, name: flow.name)
        if case .cancelled = error.cause, flow.isCancelled || run.wasKilled { return }
        if run.channels?.flows[destination] === flow { run.channels?.flows[destination] = nil }
        switch error.cause {
        case .streamCancelled where flow.isReceiverClosed: break
        case .unsupported where !hasChannels(flow.other) || !haveStreams(run.index, flow.other): break
        case .limit(_, let limit) where limit == peers[flow.other].member.limits.streams: break
        case _ where run.channels?.open[flow.name] !== port: break
        case _ where mayHaveEnded(for: run, with: flow.other, flow.receiver, since: flow.conversation): break
        default: run.report(.delivery, "cannot send to \(flow.other) in \(flow.name): \(error)")
        }
    }

    // MARK: Reading

    /// Reads what has come, or some of it while the world is not quiet.
    private func read(_ channels: WorldChannels, of run: SessionRun) {
        for name in Self.channelNames {
            guard let port = channels.open[name] else { continue }
            var left = isQuiet ? Int.max : channelGenerator.number(0...12)
            while left > 0, let message = port.poll() {
                left -= 1
                for message in messagesRead(message) { arrived(message, in: port, of: run) }
            }
        }
    }

    private func arrived(_ message: Message, in port: ChannelPort, of run: SessionRun) {
        let bytes = message.bytes
        let sender = index(of: message.sender) ?? -1
        run.note(.received, sender, bytes.count, "reads \(bytes.count) bytes from \(sender) in \(port.name)")
        counts.channelMessages += 1
        let known: ChannelFlow?
        if let number = ChannelFlow.header(of: bytes)?.flow {
            known = channelFlows.indices.contains(number) ? channelFlows[number] : nil
        } else {
            known = channelFlows.first { flow in
                flow.mayBeShort && flow.sender.index == sender && flow.receiver === run
                    && flow.name == port.name
            }
        }
        guard let flow = known, flow.name == port.name, flow.sender.index == sender, flow.other == run.index,
            flow.receiver == nil || flow.receiver === run
        else {
            return run.report(.order, "reads \(bytes.count) bytes in \(port.name) that nobody sent there")
        }
        if let violation = flow.recordArrival(of: bytes, in: port) {
            run.report(violation.rule, "from \(sender) in \(port.name): \(violation.message)")
        }
    }

    // MARK: At rest

    /// Sends a message through a channel of every conversation in which both sides have channels.
    func proveChannels() {
        for run in activeRuns {
            for other in run.streams.keys.sorted() where hasChannels(other) && haveStreams(run.index, other) {
                send(1, through: Self.channelNames[0], of: run, to: other)
            }
        }
    }

    /// Checks, at rest, that no user still waits for room, and that everything has arrived that was sent in
    /// conversations and channels that last.
    func checkChannelsAtRest() {
        for flow in channelFlows {
            if flow.task != nil, !flow.sender.wasKilled {
                flow.sender.report(.calls, "still waits to send to \(flow.other) in \(flow.name)")
            }
            guard lasts(flow), let receiver = flow.receiver, receiver.session != nil, !receiver.isClosing,
                !flow.isReceiverClosed, flow.arrived < flow.lengths.count
            else { continue }
            flow.sender.report(
                .delivery,
                "\(flow.arrived) of \(flow.lengths.count) messages have arrived at \(flow.other) in \(flow.name), "
                    + "flow \(flow.number)")
        }
    }
}
