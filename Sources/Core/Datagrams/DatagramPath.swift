/// Carries unreliable messages as datagrams: packets that are never queued behind anything and never sent again.
///
/// Both sides offer a place over the link. Then each asks the other for an answer over the path, and sends messages
/// there only once an answer has come. When answers fail to come, messages travel on the link again, and the path is
/// tried from time to time.
///
/// A machine without I/O, which a link owns. Packets to send are in `output`. Loop only.
///
/// This file is long because the state of a path is private to it. The parts that have state of their own are in other
/// files.
package struct DatagramPath: ~Copyable {
    /// Whether messages may be sent on the path.
    private enum Phase: Equatable {
        /// The other side has not said where it is.
        case waitingForOffer
        /// Nothing has been answered. `since` is when the path was first tried, or tried again after a silence.
        case checking(since: Moment)
        case open
        /// Nothing was answered in time. It is tried again at long intervals.
        case blocked
    }

    /// The outcome of sending a message.
    package enum Sending: Equatable {
        case queued
        /// The path is not open: the link has to carry the message.
        case notOpen
        /// It was dropped, because more was sent than the path carries.
        case tooFast
    }

    /// A change that the session reports.
    enum Change: Equatable {
        case opened
        case blocked
    }

    /// A message that has come. Its bytes are valid until the next call.
    package struct Received {
        package let bytes: UnsafeRawBufferPointer
        /// The message as a slice, if it was put together from parts.
        let whole: ByteSlice?
    }

    package let offer: DatagramOffer
    package let output = PacketQueue(byteCount: 96 << 10)
    /// Nil if there is no observer, which costs one check per packet.
    package var tap: PacketTap?

    package private(set) var statistics = DatagramStatistics()
    private var phase = Phase.waitingForOffer
    /// The change that the session has not taken yet.
    private var change: Change?
    /// The newest change, taken or not.
    private var lastChange: Change?
    private var generator: SeededGenerator

    // From the other side's offer.
    private var theirConnection: UInt64 = 0
    private var sealing: DatagramCipher?
    private var opening: DatagramCipher?
    private var destination = PacketDestination()

    // Sending.
    private var sent = SentPackets()
    private var sizes = PacketSizes()
    private var pace: DatagramPace
    private var pings = PacketPings()
    private var lastSentAt: Moment
    private var nextMessage: UInt32 = 0
    /// The newest messages of keys that wait for room.
    private var newest = NewestMessages()

    // Checking.
    private var token: UInt64 = 0
    private var probesSent = 0
    private var nextProbeAt = Moment.never
    /// Since when packets that call for a report or an answer have got neither.
    private var unansweredSince = Moment.never
    /// When the program last wanted to send on a path that was blocked.
    private var lastWantedAt = Moment(nanoseconds: .min)

    // Receiving.
    private var replay = ReplayWindow()
    private var receipts: PacketReceipts
    private var lastHeardAt: Moment
    private var lastSequenced = [UInt64](repeating: 0, count: 256)
    private var assembly: FragmentAssembly

    private static let firstProbePause = Moment.Span.milliseconds(100)
    /// The time without an answer after which messages travel on the link.
    private static let patience = Moment.Span.milliseconds(900)
    private static let retryPause = Moment.Span.seconds(2)
    /// After a silence of this length the path is checked before it is used: a router may have forgotten it.
    private static let staleAfter = Moment.Span.seconds(15)
    /// How long after the last message a blocked path is still tried.
    private static let retryTime = Moment.Span.seconds(30)
    /// The time without an answer after which an open path is asked whether it still works.
    private static let firstAlarm = Moment.Span.milliseconds(200)

    /// - Parameters:
    ///   - offer: the offer that this side has made.
    ///   - longestMessage: the longest message that is put together from parts.
    package init(offer: DatagramOffer, longestMessage: Int, generator: SeededGenerator, now: Moment) {
        self.offer = offer
        self.generator = generator
        pace = DatagramPace(now: now)
        lastHeardAt = now
        lastSentAt = now
        receipts = PacketReceipts(now: now)
        assembly = FragmentAssembly(longestMessage: longestMessage)
    }

    // MARK: The other side's offer

    /// Takes the other side's offer, and begins to check the path.
    ///
    /// - Parameters:
    ///   - source: the place of the offer.
    ///   - sealing, opening: the ciphers for packets of this side, and of the other side.
    package mutating func accept(
        _ theirs: DatagramOffer, at source: DatagramSource, sealing: DatagramCipher,
        opening: DatagramCipher, now: Moment
    ) {
        guard phase == .waitingForOffer else { return }
        destination.begin(at: source)
        theirConnection = theirs.connection
        sizes.limit(to: min(theirs.longestPacket, offer.longestPacket))
        self.sealing = sealing
        self.opening = opening
        check(now: now)
    }

    /// Whether the other side's offer has come.
    package var isAccepted: Bool { phase != .waitingForOffer }

    /// The length of the longest packet that was answered.
    var longestPacket: Int { sizes.longest }

    /// The bytes of received messages that are incomplete, and those of messages that wait for room.
    package var heldByteCounts: (incomplete: Int, waiting: Int) {
        (assembly.byteCount, newest.byteCount)
    }

    /// Whether messages travel on the path.
    package var isOpen: Bool { phase == .open }

    /// Whether `takeChange`, `takePingResults` or `takeStranded` have something to return.
    var hasNews: Bool { change != nil || pings.hasResults || hasStranded }

    /// Whether messages wait that the link has to carry, because the path is no longer open.
    private var hasStranded: Bool { phase != .open && !newest.isEmpty }

    /// Takes the messages that the link has to carry.
    mutating func takeStranded() -> NewestMessages { hasStranded ? newest.takeAll() : NewestMessages() }

    /// Takes the messages that wait for room, before the path is given up.
    mutating func takeWaiting() -> NewestMessages { newest.takeAll() }

    /// The number of messages that wait for room.
    var waitingCount: Int { newest.count }

    /// Returns the change of the path since the last call; nil if there is none.
    mutating func takeChange() -> Change? { change.take() }

    // MARK: Sending

    /// Sends a message, or says why not. A message that is longer than a packet travels in parts. The newest message of
    /// a key is sent as soon as the path has room, unless a newer one has come until then.
    package mutating func send(_ message: UnsafeRawBufferPointer, _ order: DatagramOrder, now: Moment)
        -> Sending
    {
        let hasReplaced = order.mayWait && newest.remove(order)
        let sending = sendNow(message, order, now: now)
        let waits = sending == .tooFast && order.mayWait && newest.add(message, order)
        if hasReplaced || sending == .tooFast && !waits { statistics.droppedByPace &+= 1 }
        return waits ? .queued : sending
    }

    private mutating func sendNow(_ message: UnsafeRawBufferPointer, _ order: DatagramOrder, now: Moment)
        -> Sending
    {
        guard phase == .open else {
            if phase == .blocked { resumeChecking(now: now) }
            return .notOpen
        }
        if now - lastSentAt >= Self.staleAfter, now - lastHeardAt >= Self.staleAfter {
            check(now: now)
            return .notOpen
        }
        let room = sizes.longest - overhead
        let parts = message.count + DatagramContent.messageOverhead <= room ? 1 : parts(of: message.count)
        guard pace.admits(cost(of: message.count, parts), packets: parts, now: now) else { return .tooFast }
        guard parts > 1 else {
            emit(.message(order, message), now: now)
            return .queued
        }
        sendInParts(message, order, parts, now: now)
        return .queued
    }

    /// The bytes that a message takes on the path.
    private func cost(of count: Int, _ parts: Int) -> Int {
        count + parts * (overhead + DatagramContent.fragmentOverhead)
    }

    /// The bytes of a packet that are not content.
    private var overhead: Int { DatagramPacket.headerByteCount + (sealing?.tagByteCount ?? 0) }

    private var partRoom: Int { sizes.longest - overhead - DatagramContent.fragmentOverhead }

    private func parts(of count: Int) -> Int { (count + partRoom - 1) / partRoom }

    private mutating func sendInParts(
        _ message: UnsafeRawBufferPointer, _ order: DatagramOrder, _ count: Int, now: Moment
    ) {
        precondition(count <= Int(UInt8.max), "a message of \(message.count) bytes is too long for a path")
        if !sizes.hasBegun, let probe = sizes.begin(token: generator.next(), now: now) {
            send(probe, now: now)
        }
        // Parts of one length, so that none is a packet with hardly anything in it.
        let length = (message.count + count - 1) / count
        for index in 0..<count {
            let start = index * length
            let part = UnsafeRawBufferPointer(
                rebasing: message[start..<min(start + length, message.count)])
            let fragment = DatagramContent.Fragment(
                message: nextMessage, index: UInt8(index), count: UInt8(count))
            emit(.fragment(order, fragment, part), now: now)
        }
        nextMessage &+= 1
    }

    /// Adds a packet to the output.
    private mutating func emit(
        _ content: DatagramContent, length: Int = 0, to source: DatagramSource? = nil, now: Moment
    ) {
        guard let sealing, let place = source ?? destination.place else { return }
        let longest = max(sizes.longest, length)
        let number = sent.nextNumber
        let isQueued = output.add(atMost: longest, to: place) { packet in
            DatagramPacket.writeHeader(
                connection: theirConnection, number: number, to: packet)
            let body = UnsafeMutableRawBufferPointer(rebasing: packet[DatagramPacket.headerByteCount...])
            var end = DatagramPacket.headerByteCount + content.write(to: body)
            let padded = length - sealing.tagByteCount
            if padded > end {
                UnsafeMutableRawBufferPointer(rebasing: packet[end..<padded]).initializeMemory(
                    as: UInt8.self, repeating: 0)
                end = padded
            }
            if let tap { tap.sent(UnsafeRawBufferPointer(rebasing: packet[..<end])) }
            return sealing.seal(
                packet, headerCount: DatagramPacket.headerByteCount, count: end, number: number)
        }
        guard isQueued else {
            statistics.droppedByRoom &+= 1
            return
        }
        sent.note(now: now)
        lastSentAt = now
        statistics.packetsSent &+= 1
        switch content {
        case .answer, .report: break
        case .probe, .message, .fragment: if unansweredSince == .never { unansweredSince = now }
        }
        if case .message = content { statistics.messagesSent &+= 1 }
        if case .fragment(_, let fragment, _) = content, fragment.index == 0 {
            statistics.messagesSent &+= 1
        }
    }

    /// Counts a packet of the output that did not leave.
    package mutating func noteUnsent(_ outcome: DatagramOutcome) {
        switch outcome {
        case .sent: break
        case .dropped: statistics.droppedByRoom &+= 1
        case .tooLong: statistics.droppedBySize &+= 1
        }
    }

    // MARK: Pings

    /// Sends a ping, as soon as the path is open. `takePingResults` returns its result.
    ///
    /// - Parameter waitsIfBlocked: whether it waits for a path that is blocked to open after all.
    package mutating func send(_ ping: PacketPings.Request, waitsIfBlocked: Bool = false, now: Moment) {
        pings.add(ping, token: generator.next(), now: now)
        switch phase {
        case .open: sendPings(now: now)
        case .waitingForOffer, .checking: break
        case .blocked:
            if !waitsIfBlocked { pings.block() }
            resumeChecking(now: now)
        }
    }

    private mutating func sendPings(now: Moment) {
        for ping in pings.depart(now: now) {
            let length = min(shortPacket + ping.padding, sizes.longest)
            emit(.probe(token: ping.token), length: length, now: now)
        }
    }

    /// Returns the results of pings since the last call.
    package mutating func takePingResults() -> [PacketPings.Result] { pings.takeResults() }

    /// Forgets all pings, and returns their requests.
    mutating func abandonPings() -> [PacketPings.Request] { pings.abandon() }

    /// The number of pings whose result was not taken yet.
    var pingCount: Int { pings.count }

    // MARK: Receiving

    /// Takes a packet. Returns the message that it completes, if it does. Packets that are forged, damaged or repeated
    /// change nothing.
    package mutating func receive(
        _ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource, now: Moment
    ) -> Received? {
        let raw = UnsafeRawBufferPointer(packet)
        // A packet that comes before the other side's offer cannot be opened yet.
        guard let opening else { return nil }
        guard DatagramPacket.connection(of: raw) == offer.connection else {
            statistics.rejected &+= 1
            return nil
        }
        let number = DatagramPacket.number(of: raw)
        guard replay.admits(number) else {
            if replay.isDuplicate(number) { statistics.duplicates &+= 1 } else { statistics.late &+= 1 }
            return nil
        }
        guard
            let plain = opening.open(packet, headerCount: DatagramPacket.headerByteCount, number: number)
        else {
            statistics.rejected &+= 1
            return nil
        }
        if let tap {
            let end = DatagramPacket.headerByteCount + plain.count
            tap.received(UnsafeRawBufferPointer(rebasing: raw[..<end]))
        }
        let isHighest = number >= replay.end
        replay.note(number)
        lastHeardAt = now
        receipts.note(isHighest: isHighest, now: now)
        statistics.packetsReceived &+= 1
        if isHighest { destination.note(source, byteCount: raw.count, generator: &generator) }
        defer { if destination.hasCandidate { probeCandidate(now: now) } }
        do throws(WireError) {
            guard let content = try DatagramContent(reading: plain) else { return nil }
            return handle(content, number: number, from: source, now: now)
        } catch {
            statistics.rejected &+= 1
            return nil
        }
    }

    private mutating func handle(
        _ content: DatagramContent, number: UInt64, from source: DatagramSource, now: Moment
    ) -> Received? {
        switch content {
        case .probe(let token):
            emit(.answer(token: token), to: destination.answerPlace(source, byteCount: shortPacket), now: now)
        case .answer(let token): answered(token, now: now)
        case .report(let report): self.report(report, now: now)
        case .message(let order, let bytes):
            if receipts.noteReportable(byteCount: bytes.count, now: now) { sendReport(now: now) }
            return deliver(bytes, nil, order, number: number)
        case .fragment(let order, let fragment, let part):
            if receipts.noteReportable(byteCount: part.count, now: now) { sendReport(now: now) }
            guard let whole = assembly.add(part, fragment) else { return nil }
            let first = number - min(number, UInt64(fragment.index))
            let slice = ByteSlice(whole)
            return deliver(slice.pointer, slice, order, number: first)
        }
        return nil
    }

    private mutating func deliver(
        _ bytes: UnsafeRawBufferPointer, _ whole: ByteSlice?, _ order: DatagramOrder, number: UInt64
    ) -> Received? {
        if order != .unordered {
            let key = Int(order.rawValue)
            guard number >= lastSequenced[key] else {
                statistics.late &+= 1
                return nil
            }
            lastSequenced[key] = number + 1
        }
        statistics.messagesReceived &+= 1
        return Received(bytes: bytes, whole: whole)
    }

    // MARK: The place of the other side

    /// The length of a packet that asks for an answer, or is one.
    private var shortPacket: Int { overhead + DatagramContent.tokenByteCount }

    /// Asks for an answer from the place where the other side's packets come from. Its packets were answered first: if
    /// both sides have moved and both only asked, they would go on asking, and neither would get an answer.
    private mutating func probeCandidate(now: Moment) {
        guard let probe = destination.takeProbe(byteCount: shortPacket) else { return }
        emit(.probe(token: probe.token), to: probe.place, now: now)
    }

    /// Sends to the place that has answered from now on, first a packet long enough for the other side to answer and to
    /// ask in turn.
    private mutating func noteMove(now: Moment) {
        statistics.moves &+= 1
        emit(.probe(token: token), length: sizes.longest, now: now)
    }

    // MARK: Checking

    private mutating func check(now: Moment) {
        phase = .checking(since: now)
        token = generator.next()
        probesSent = 0
        unansweredSince = .never
        probe(now: now)
    }

    private mutating func resumeChecking(now: Moment) {
        if nextProbeAt == .never { nextProbeAt = now }
        lastWantedAt = now
    }

    /// Asks whether packets pass, with a packet of the length that every path must carry. On an open path that has
    /// fallen silent, the first packet has the greatest length in use: if it gets no answer and a shorter one does,
    /// longer ones no longer pass.
    private mutating func probe(now: Moment) {
        if phase != .open || probesSent > 0 { sizes.shrink() }
        emit(.probe(token: token), length: sizes.longest, now: now)
        let pause = Self.firstProbePause.nanoseconds << min(probesSent, 2)
        probesSent += 1
        nextProbeAt = now + (phase == .blocked ? Self.retryPause : .init(nanoseconds: pause))
    }

    private mutating func answered(_ answer: UInt64, now: Moment) {
        heard()
        if pings.answered(answer, now: now) { return }
        if destination.noteAnswer(answer) { return noteMove(now: now) }
        if sizes.isProbe(answer) {
            if let probe = sizes.answered(token: generator.next(), now: now) { send(probe, now: now) }
            return
        }
        guard answer == token, phase != .open else { return }
        phase = .open
        nextProbeAt = .never
        note(.opened)
        sendPings(now: now)
    }

    /// The other side has answered, so packets on an open path arrive.
    private mutating func heard() {
        unansweredSince = .never
        if phase == .open { nextProbeAt = .never }
    }

    private mutating func note(_ change: Change) {
        self.change = change == lastChange ? nil : change
        lastChange = change
    }

    private mutating func send(_ probe: PacketSizes.Probe, now: Moment) {
        emit(.probe(token: probe.token), length: probe.length, now: now)
    }

    // MARK: Reports

    private mutating func sendReport(now: Moment) {
        emit(.report(receipts.takeReport(highest: replay.end - 1, now: now)), now: now)
    }

    private mutating func report(_ report: DatagramContent.Report, now: Moment) {
        guard let account = sent.take(report, now: now) else { return }
        heard()
        statistics.packetsLost = account.allLost
        guard let roundTrip = account.roundTrip else { return }
        statistics.roundTrip = roundTrip.duration
        pace.report(account, roundTrip: roundTrip, now: now)
    }

    // MARK: Time

    /// When `timeArrived` must be called next.
    package var deadline: Moment {
        var deadline = min(nextProbeAt, receipts.deadline, pings.deadline, sizes.deadline)
        if case .checking(let since) = phase { deadline = min(deadline, since + Self.patience) }
        if phase == .open, unansweredSince != .never {
            let isAlarmed = nextProbeAt != .never
            deadline = min(deadline, unansweredSince + (isAlarmed ? Self.patience : Self.firstAlarm))
        }
        if phase == .open, let count = newest.firstByteCount { deadline = min(deadline, opensAt(count)) }
        return deadline
    }

    /// When there is room for a message.
    private func opensAt(_ count: Int) -> Moment { pace.opensAt(cost(of: count, parts(of: max(count, 1)))) }

    /// Handles a deadline that has passed.
    package mutating func timeArrived(now: Moment) {
        if pings.deadline <= now { pings.timeArrived(now: now) }
        if receipts.deadline <= now { sendReport(now: now) }
        if sizes.deadline <= now, let probe = sizes.timeArrived(now: now) { send(probe, now: now) }
        switch phase {
        case .waitingForOffer: break
        case .checking(let since):
            guard now - since < Self.patience else { return block(now: now) }
            if nextProbeAt <= now { probe(now: now) }
        case .open:
            if let count = newest.firstByteCount, opensAt(count) <= now, let first = newest.popFirst() {
                first.bytes.withUnsafeBytes { bytes in
                    // If the path is not open any more, the link has to carry the message.
                    if send(bytes, first.order, now: now) == .notOpen { _ = newest.add(bytes, first.order) }
                }
            }
            guard unansweredSince != .never, now - unansweredSince >= Self.firstAlarm else { return }
            if now - unansweredSince >= Self.patience { return block(now: now) }
            if nextProbeAt == .never {
                token = generator.next()
                probesSent = 0
                probe(now: now)
            } else if nextProbeAt <= now {
                probe(now: now)
            }
        case .blocked:
            guard nextProbeAt <= now else { return }
            guard now - lastWantedAt < Self.retryTime else {
                nextProbeAt = .never
                return
            }
            probe(now: now)
        }
    }

    private mutating func block(now: Moment) {
        phase = .blocked
        note(.blocked)
        pings.block()
        token = generator.next()
        sizes.cancel()
        unansweredSince = .never
        lastWantedAt = now
        nextProbeAt = now + Self.retryPause
    }
}
