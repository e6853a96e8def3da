/// One pipe between two sessions, from its first byte to its last: prefaces, secure
/// channel, hellos, frames, keep-alive, close.
///
/// A machine without I/O. `receive` takes the bytes from the pipe, `next` returns their meaning step by step, `gather`
/// returns the bytes to write, and `deadline` and `timeArrived` handle time. The session machine owns one for each pipe
/// and uses it on the loop only. It never calls back.
///
/// This file is long because the state of a link is private to it. The parts that need none of it are in other files.
package struct LinkMachine: ~Copyable {
    package let side: LinkSide
    package private(set) var phase = Phase.preface
    package private(set) var peerHello: Hello?
    /// The identity that the other side acts for, as it has proven. Nil until its hello has come, and in plaintext.
    package private(set) var provenIdentity: PeerID?
    /// The version that both sides speak. Nil until the other side's hello has come.
    package private(set) var version: UInt8?
    private(set) var peerStanding = Standing()
    private(set) var end: LinkEnd?
    var statistics = LinkStatistics()

    private let settings: Settings
    private let expected: PeerID?
    private let ticket: ResumptionTicket?
    private let openedAt: Moment
    private var prefaceBytes: [UInt8] = []
    private var channel: (any SecureChannel)?
    /// Whether the channel passes bytes through unchanged, so that messages need not go through it.
    private var isPlain = false
    private var decoder: FrameDecoder
    private var plain = ByteQueue()
    private(set) var keepAlive: KeepAlive
    private var reportedEnd = false
    /// The channel's error behind the bytes that the decoder already has. It ends
    /// the link once those bytes are handled.
    private var channelFailure: NighError.Cause?

    /// Bytes that go to the pipe as they are: the preface and the channel's handshake.
    private var wire = ByteQueue()
    var control: ControlWriter
    /// Answers to pings. They are written behind `control`, so that an acknowledgement that leaves at the same time
    /// comes first. So a side that has received the answer knows what has arrived.
    private var pongs: ControlWriter
    private var unreliable: ControlWriter
    /// The pings that have no answer yet, in the order in which they were sent.
    var pingsSent: [SentPing] = []
    var nextAutomaticPing = LinkMachine.firstAutomaticPing
    package static let firstAutomaticPing: UInt64 = 1 << 63

    /// The events for an observer. Nil if there is no observer, which costs one check per batch of bytes.
    package private(set) var tap: LinkTap?

    /// The time when the other side gets a ticket. A ticket costs an eighth of a handshake,
    /// and no message should wait for that.
    private var ticketDueAt = Moment.never
    private static let ticketDelay = Moment.Span.milliseconds(100)
    /// The maximum number of control bytes that may wait before the link stops reading. So a flood of pings is answered
    /// only as fast as the pipe takes the answers.
    private static let controlBacklog = 64 << 10
    /// The longest frame before the hellos. A hello is far shorter.
    private static let helloLimit = 4_096

    /// - Parameters:
    ///   - expected: the peer for which the pipe was dialled, if known. Of an accepted pipe, the only peer that may be
    ///     at its other end.
    ///   - ticket: a ticket from an earlier link to that peer.
    init(
        side: LinkSide, settings: Settings, expected: PeerID? = nil, ticket: ResumptionTicket? = nil,
        now: Moment
    ) {
        self.side = side
        self.expected = expected
        self.ticket = ticket
        self.settings = settings
        openedAt = now
        decoder = FrameDecoder(maximumPayload: Self.helloLimit)
        keepAlive = KeepAlive(
            pingAfter: settings.timings.pingAfter, loseAfter: settings.timings.loseAfter, now: now)
        control = ControlWriter(settings.controlChunks)
        pongs = ControlWriter(settings.controlChunks)
        unreliable = ControlWriter(settings.unreliableChunks)
        wire.append(settings.preface)
        // A dialling side that accepts only TLS need not wait for the other side's preface before it begins the
        // handshake.
        if side == .dialling, settings.offer.accepted == .tls13 { beginSecuring(.tls13) }
    }

    /// Begins to record events in `tap`. Call this before anything has passed.
    mutating func observe() {
        let tap = LinkTap()
        tap.note(.sent(settings.preface))
        self.tap = tap
    }

    // MARK: Receiving

    /// Handles bytes from the pipe. Call `next` afterwards, until it returns nil.
    package mutating func receive(_ bytes: ByteSlice, now: Moment) {
        guard phase != .closed else { return }
        statistics.bytesReceived &+= bytes.count
        var isWhole = true
        if phase == .open, isPlain {
            tap?.note(.received(bytes))
            decoder.feed(bytes)
        } else if phase != .preface, let channel {
            isWhole = feed(bytes, through: channel)
        } else {
            receivePreface(bytes)
        }
        if keepAlive.noteBytes(isWhole: isWhole, at: now) { isResponsiveAgain = true }
        if isIdle { releaseMemoryIfIdle(after: bytes.count) }
    }

    private var isResponsiveAgain = false
    private var hasUnreportedSecured = false

    private mutating func receivePreface(_ bytes: ByteSlice) {
        let missing = Preface.byteCount - prefaceBytes.count
        prefaceBytes += bytes[0..<min(missing, bytes.count)].bytes
        guard prefaceBytes.count == Preface.byteCount else { return }
        tap?.note(.received(ByteSlice(prefaceBytes)))
        do throws(WireError) {
            let preface = try prefaceBytes.withUnsafeBytes { bytes in
                Result { () throws(WireError) in try Preface(reading: bytes) }
            }.get()
            guard let kind = settings.offer.accepted.strongestCommon(with: preface.security) else {
                return finish(
                    .noCommonSecurity(theyEncrypt: preface.security.contains(.tls13)), code: nil)
            }
            if channel == nil { beginSecuring(kind) }
            guard phase == .preface, let channel else { return }
            phase = .securing
            _ = feed(bytes[min(missing, bytes.count)..<bytes.count], through: channel)
        } catch {
            finish(error.asViolation, code: nil)
        }
    }

    private mutating func beginSecuring(_ kind: Preface.Security) {
        let channel = settings.offer.make(kind, side, expected, ticket)
        self.channel = channel
        isPlain = channel is PlaintextChannel
        do throws(NighError) {
            try channel.begin(wire: &wire)
        } catch {
            finish(error.cause, code: nil)
        }
    }

    /// Returns whether any bytes came out.
    private mutating func feed(_ bytes: ByteSlice, through channel: any SecureChannel) -> Bool {
        do throws(NighError) {
            try channel.receive(bytes, plain: &plain, wire: &wire)
        } catch {
            guard channel.isEstablished else {
                finish(error.cause, code: nil)
                return false
            }
            channelFailure = error.cause
        }
        if phase == .securing, channel.isEstablished {
            phase = .greeting
            var hello = settings.hello
            if channel.provenPeer != nil {
                hello.prefaces = prefaces
                hasUnreportedSecured = true
            } else {
                hello.delegation = nil
            }
            control.write(.hello, hello)
            if let peer = channel.provenPeer {
                tap?.note(.secured(peer: peer, wasResumed: channel.wasResumed))
            }
        }
        guard !plain.isEmpty else { return false }
        tap?.note(plain, as: LinkEvent.received)
        while let slice = plain.popFirst() { decoder.feed(slice) }
        return true
    }

    /// Both prefaces as this side knows them, the dialling side's first.
    private var prefaces: [UInt8] {
        let own = settings.preface.bytes
        return side == .dialling ? own + prefaceBytes : prefaceBytes + own
    }

    /// The peer at the other end, as its key has proven. Nil before the handshake has ended, and always in plaintext.
    package var provenPeer: PeerID? { channel?.provenPeer }

    /// Whether a ticket has shortened the handshake.
    package var wasResumed: Bool { channel?.wasResumed ?? false }

    /// This side's hello.
    var ownHello: Hello { settings.hello }

    /// Whether both sides may send datagrams.
    package var hasDatagrams: Bool { offersDatagrams && peerHello?.hasDatagrams ?? false }

    /// Whether this side may send datagrams.
    var offersDatagrams: Bool { settings.hello.hasDatagrams }

    /// Returns the ciphers of a datagram path, once both sides have made their offers.
    package func datagramCiphers(
        ours: DatagramOffer, theirs: DatagramOffer
    ) -> (sealing: DatagramCipher, opening: DatagramCipher)? {
        channel?.datagramCiphers(of: side, ours: ours, theirs: theirs)
    }

    /// Returns a ticket for the next link to this peer, once.
    func takeTicket() -> ResumptionTicket? { channel?.takeTicket() }

    /// Keying material for pairing, which only the two ends of this link can compute. Nil in plaintext.
    var pairingMaterial: SecretBytes? { keyingMaterial(label: PairingExchange.exporterLabel) }

    /// Returns 32 bytes for the purpose that the label names, which only the two ends of this link can compute. Nil in
    /// plaintext.
    func keyingMaterial(label: String) -> SecretBytes? {
        channel?.keyingMaterial(label: label, context: [], count: PairingExchange.keyingMaterialByteCount)
    }

    /// Returns the next frame if it is a message that has come whole. Otherwise returns nil; call `next` then. The
    /// bytes are valid until the next call.
    @inline(__always)
    mutating func nextWholeMessage() -> FrameDecoder.Frame? {
        guard phase == .open, !isResponsiveAgain else { return nil }
        return decoder.nextWholeMessage()
    }

    /// Returns the next step from the received bytes. Nil if more bytes are needed, or if
    /// nothing needs the session's attention.
    package mutating func next(now: Moment) -> Step? {
        if isResponsiveAgain {
            isResponsiveAgain = false
            return .responsiveAgain
        }
        if hasUnreportedSecured {
            hasUnreportedSecured = false
            if phase == .greeting { return .secured }
        }
        while phase == .greeting || phase == .open {
            do throws(WireError) {
                guard let frame = try decoder.next() else {
                    guard let channelFailure else { return nil }
                    finish(channelFailure, code: nil)
                    continue
                }
                if let step = try interpret(frame, now: now) { return step }
            } catch {
                finish(error.asViolation, code: .protocolViolation)
            }
        }
        guard phase == .closed, !reportedEnd, let end else { return nil }
        reportedEnd = true
        return .closed(end)
    }

    @inline(__always)
    private mutating func interpret(_ frame: FrameDecoder.Frame, now: Moment) throws(WireError) -> Step? {
        guard phase == .open else {
            try receiveHello(frame, now: now)
            return phase == .open ? .opened : nil
        }
        switch frame.type {
        case FrameType.message.rawValue: return .message(.main, frame)
        case FrameType.bulkMessage.rawValue: return .message(.bulk, frame)
        case FrameType.piece.rawValue: return .piece(.main, frame)
        case FrameType.bulkPiece.rawValue: return .piece(.bulk, frame)
        case FrameType.unreliable.rawValue: return .unreliable(frame)
        case FrameType.streamData.rawValue: return .streamData(frame)
        default: return try interpretControl(frame, now: now)
        }
    }

    private mutating func interpretControl(_ frame: FrameDecoder.Frame, now: Moment) throws(WireError)
        -> Step?
    {
        switch try FrameContent(type: frame.type, reading: frame.bytes) {
        case .acknowledge(let standing):
            peerStanding = standing
            return .acknowledged
        case .begin(let lane, let size, let kind):
            if kind != nil { try checkAcceptsKinds() }
            return .begin(lane, size, kind)
        case .message(let lane, _, let kind?):
            try checkAcceptsKinds()
            return .kindMessage(lane, kind, frame)
        case .ping: pongs.write(.pong, bytes: frame.bytes)
        case .pong(let token, _): return pongReceived(token, now: now)
        case .invite(let request):
            peerStanding = request.standing
            return .request(request, isResume: false)
        case .resume(let request):
            peerStanding = request.standing
            return .request(request, isResume: true)
        case .accept(let acceptance):
            peerStanding = acceptance.standing
            return .accepted(acceptance)
        case .decline(let refusal): return .refused(refusal)
        case .pair(let message): return .pairing(message)
        case .crossed(let context): return .crossed(context)
        case .introduction(let token): return .introduced(token)
        case .close(let close): finish(closedByPeer: close)
        case .streamControl(let control): return .streamControl(control, wireBytes: frame.wireBytes)
        case .datagrams(let offer):
            guard hasDatagrams else { throw .malformed("an offer of packets, where there are none") }
            return .datagrams(offer)
        case .hello: throw .malformed("a second hello")
        case .unknown: statistics.framesSkipped &+= 1
        case .message, .piece, .unreliable, .streamData: break
        }
        return nil
    }

    private func checkAcceptsKinds() throws(WireError) {
        guard settings.hello.acceptsKinds else {
            throw .malformed("a message of a kind, where only the program's own are read")
        }
    }

    private mutating func receiveHello(_ frame: FrameDecoder.Frame, now: Moment) throws(WireError) {
        if frame.type == FrameType.close.rawValue {
            return finish(closedByPeer: try LinkClose(reading: frame.bytes))
        }
        guard frame.type == FrameType.hello.rawValue else { throw .malformed("a frame before the hello") }
        let own = settings.hello
        // Read before the rest, because a version that is not spoken here may define the rest differently.
        let offered = try Hello.versions(of: frame.bytes)
        guard let version = own.commonVersion(with: offered) else {
            return finish(.noCommonVersion(ours: own.versions, theirs: offered), code: .noCommonVersion)
        }
        let hello = try Hello(reading: frame.bytes)
        peerHello = hello
        if let proven = provenPeer {
            guard hello.peer == proven else {
                return finish(.insecure(.claimsAnotherPeer(hello.peer)), code: .claimsAnotherPeer)
            }
            guard hello.prefaces == prefaces else {
                return finish(.insecure(.prefaceChanged), code: .prefaceChanged)
            }
            guard let identity = hello.provenIdentity else {
                return finish(.insecure(.claimsAnotherIdentity), code: .claimsAnotherPeer)
            }
            provenIdentity = identity
        } else if side == .accepting, let expected, hello.peer != expected {
            return finish(.insecure(.claimsAnotherPeer(hello.peer)), code: .claimsAnotherPeer)
        }
        guard hello.peer != own.peer else {
            let isSelf = hello.incarnation == own.incarnation
            return finish(isSelf ? .selfDial : .sameIdentity, code: isSelf ? .selfDial : .sameIdentity)
        }
        guard hello.service == own.service else {
            return finish(.wrongService(hello.service.description), code: .wrongService)
        }
        self.version = version
        decoder.maximumPayload = settings.hello.maximumFrame
        phase = .open
        tap?.note(greetingBy: hello)
        if side == .accepting, provenPeer != nil { ticketDueAt = now + Self.ticketDelay }
        sendAutomaticPing(now: now)
    }

    /// Returns a slice of a step's bytes, or of those of several whole messages, that stays valid after the next call.
    mutating func retain(_ bytes: UnsafeRawBufferPointer) -> ByteSlice { decoder.retain(bytes) }

    /// Whether the pipe should be read. False while too many answers wait to be written.
    package var wantsToRead: Bool { control.byteCount &+ pongs.byteCount <= Self.controlBacklog }

    // MARK: Sending

    /// The number of bytes that the link holds: received and not parsed, or to be written. The consistency checks use
    /// it to bound a peer's use of memory.
    package var heldByteCount: Int {
        decoder.unparsedByteCount + plain.byteCount + wire.byteCount + control.byteCount
            + pongs.byteCount + unreliable.byteCount + (channel?.heldByteCount ?? 0)
    }

    /// Queues an unreliable message for the write of this turn. The caller has checked that the pipe is not backed up.
    mutating func sendUnreliable(_ bytes: UnsafeRawBufferPointer) {
        guard phase == .open else { return }
        unreliable.write(.unreliable, bytes: bytes)
    }

    /// Queues messages with keys for the write of this turn. Together with the frames that are queued already, they
    /// have at most `room` bytes. If there is any room and no unreliable message is queued yet, the first may be larger
    /// than the room.
    @inline(__always)
    mutating func send(_ newest: inout NewestMessages, within room: Int) {
        guard !newest.isEmpty else { return }
        // The frames that leave before them take room, too.
        let room = room &- control.byteCount &- pongs.byteCount
        guard room > 0 else { return }
        while let count = newest.firstByteCount,
            unreliable.byteCount == 0 || unreliable.byteCount &+ count < room,
            let message = newest.popFirst()
        {
            message.bytes.withUnsafeBytes { sendUnreliable($0) }
        }
    }

    /// Whether the link itself has something to write, or has ended and may still have to say so.
    var hasOwnOutput: Bool {
        !wire.isEmpty || control.byteCount > 0 || pongs.byteCount > 0 || unreliable.byteCount > 0
            || phase == .closed
    }

    /// The number of bytes of unreliable messages that wait for the write of this turn.
    var unreliableByteCount: Int { unreliable.byteCount }

    /// Drops queued unreliable messages. Called when the pipe is backed up, because they do not wait for it.
    mutating func dropUnreliable() {
        guard unreliable.byteCount > 0 else { return }
        statistics.unreliableDropped &+= unreliable.frameCount
        unreliable.removeAll()
    }

    /// Moves the bytes to write to `queue`, at most about `budget` bytes.
    ///
    /// First come the bytes that keep the link alive, then unreliable messages, then the frames of `source`. Unreliable
    /// messages that find no room are dropped.
    package mutating func gather<Source: FrameSource>(
        into queue: inout ByteQueue, budget: Int, from source: Source?
    ) {
        let before = queue.byteCount
        defer { statistics.bytesSent &+= queue.byteCount &- before }
        queue.append(contentsOf: &wire)
        if isPlain, tap == nil {
            return gatherPlain(into: &queue, budget: budget, from: source)
        }
        guard let channel, channel.isEstablished, channelFailure == nil else { return }
        // The queue is moved out and back, so that the frames are gathered in it without a copy.
        var frames = ByteQueue()
        swap(&frames, &plain)
        gatherPlain(into: &frames, budget: budget, from: source)
        swap(&frames, &plain)
        if !plain.isEmpty {
            tap?.note(plain, as: LinkEvent.sent)
            do throws(NighError) {
                try channel.seal(&plain, into: &queue)
            } catch {
                finish(error.cause, code: nil)
            }
        }
        if phase == .closed { channel.end(wire: &queue) }
        if isIdle { releaseMemoryIfIdle(after: queue.byteCount &- before) }
    }

    /// Moves the same bytes in plaintext, before the channel seals them.
    @inline(__always)
    private mutating func gatherPlain<Source: FrameSource>(
        into queue: inout ByteQueue, budget: Int, from source: Source?
    ) {
        let end = queue.byteCount &+ budget
        control.drain(into: &queue)
        if pongs.byteCount > 0 { pongs.drain(into: &queue) }
        if unreliable.byteCount > 0 {
            if end > queue.byteCount {
                statistics.unreliableSent &+= unreliable.frameCount
                unreliable.drain(into: &queue)
            } else {
                dropUnreliable()
            }
        }
        guard phase == .open, let source else { return }
        source.gather(into: &queue, budget: end &- queue.byteCount, header: &control)
    }

    /// Whether only keep-alive passes on the link. Then the channel releases, after each use,
    /// the memory that only traffic needs.
    private var isIdle = false

    /// More bytes than this at once are not only keep-alive.
    private static let idleTrafficLimit = 256

    @inline(never)
    private mutating func releaseMemoryIfIdle(after byteCount: Int) {
        if byteCount > Self.idleTrafficLimit { isIdle = false } else { channel?.releaseIdleMemory() }
    }

    // MARK: Time and end

    /// The time at which `timeArrived` must be called next.
    package var deadline: Moment {
        switch phase {
        case .preface, .securing, .greeting: openedAt + settings.handshake
        case .open: min(keepAlive.deadline, ticketDueAt)
        case .closed: .never
        }
    }

    /// Handles a deadline that has passed. Returns true if the peer has just become suspected. Call `next` afterwards.
    package mutating func timeArrived(now: Moment) -> Bool {
        guard deadline <= now else { return false }
        guard phase == .open else {
            finish(.timedOut, code: .tooSlow)
            return false
        }
        if ticketDueAt <= now {
            ticketDueAt = .never
            channel?.sendTicket(wire: &wire)
        }
        switch keepAlive.check(at: now) {
        case .sendPing:
            isIdle = true
            sendAutomaticPing(now: now)
        case .suspect: return true
        case .giveUp: finish(.silent, code: .silent)
        case .wait: break
        }
        return false
    }

    /// Ends the link from this side. Nothing more is received, and `gather` returns a last frame with the reason.
    ///
    /// - Parameter cause: the cause that this side reports, if the code alone does not tell it.
    package mutating func close(
        _ code: LinkClose.Code, _ reason: String = "", because cause: NighError.Cause = .left
    ) {
        guard phase != .closed else { return }
        queueClose(LinkClose(code, reason))
        phase = .closed
        end = LinkEnd(cause: cause, code: code, isByPeer: false)
        reportedEnd = true
    }

    /// Notes that the pipe is gone. The link ends at once: steps that were not taken before are lost,
    /// and `next` does not report the end.
    package mutating func pipeClosed() {
        guard phase != .closed else { return }
        phase = .closed
        end = LinkEnd(cause: .linkLost, code: nil, isByPeer: false)
        reportedEnd = true
    }

    private mutating func finish(_ cause: NighError.Cause, code: LinkClose.Code?) {
        guard phase != .closed else { return }
        if let code {
            if case .protocolViolation(let reason) = cause {
                queueClose(LinkClose(code, reason))
            } else {
                queueClose(LinkClose(code))
            }
        }
        phase = .closed
        end = LinkEnd(cause: cause, code: code, isByPeer: false)
    }

    private mutating func finish(closedByPeer close: LinkClose) {
        phase = .closed
        end = LinkEnd(cause: close.cause, code: close.code, isByPeer: true, number: close.number)
    }

    /// Queues a close frame, if frames can be sent already. The other side can read it then, even if it has not noticed
    /// yet that the channel is established.
    private mutating func queueClose(_ close: LinkClose) {
        guard phase == .greeting || phase == .open else { return }
        pongs.drain(into: &control)
        control.write(.close, close)
    }
}
