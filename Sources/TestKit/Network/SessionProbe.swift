import NighCore
import NighMemory

extension SessionTimings {
    /// Timings for sessions on real threads. No limit expires even if a busy machine does not run the threads for
    /// minutes.
    package static var patient: SessionTimings {
        var timings = SessionTimings()
        timings.pingAfter = .seconds(600)
        timings.loseAfter = .seconds(1_800)
        timings.handshake = .seconds(600)
        timings.dial = .seconds(600)
        timings.grace = .seconds(600)
        timings.goodbye = .seconds(600)
        return timings
    }
}

/// A session with a record of its events and messages. Its handlers only record; a test acts from outside, or sets a
/// reaction.
///
/// A monitor guards the record, so that it can be read while the session runs on another thread.
public final class SessionProbe: @unchecked Sendable {
    /// How the messages are read.
    public enum Reading: Sendable {
        /// The handler reads them at once.
        case handler
        /// Not before a test reads the session's `messages`.
        case inbox
    }

    /// A recorded message.
    public typealias Received = (origin: MessageOrigin, bytes: [UInt8])

    /// The session's number; a test counts its sessions from 1.
    public let number: Int
    /// The session.
    public let session: Session
    /// Controls the faults on its transports, one for each wire.
    public let wires: [FaultControl]
    /// Controls the faults on the first of them.
    public var faults: FaultControl { wires[0] }

    private let monitor: Monitor
    private var recordedEvents: [SessionEvent] = []
    private var recordedMessages: [Received] = []
    private var recordedOutcomes: [Result<PeerID, NighError>] = []
    private var recordedListening: [TransportAddress] = []
    private var checker = PeerStateChecker()
    private var eventReaction: ((SessionEvent, Session) -> Void)?
    private var messageAnswer: (([UInt8], MessageOrigin, Session) -> Void)?
    private var sessionIsClosed = false

    /// Called with each violation by the session or its transport. Set before the start.
    package var onViolation: (String) -> Void = { _ in }
    /// Checks a message in place. Returns false if the message is to be recorded. Set before the start.
    var checkMessage: (UnsafeRawBufferPointer, MessageOrigin) -> Bool = { _, _ in false }

    package init(number: Int, session: Session, wires: [FaultControl], monitor: Monitor = Monitor()) {
        self.number = number
        self.session = session
        self.wires = wires
        self.monitor = monitor
    }

    /// Creates a probe of a session with one transport, which has not been started.
    package convenience init(number: Int, session: Session, faults: FaultControl) {
        self.init(number: number, session: session, wires: [faults])
    }

    /// Starts the session. With `accepting`, it accepts every invitation.
    package func start(reading: Reading, accepting: Bool) {
        if accepting {
            reaction = { event, session in
                if case .invited(let invitation) = event { invitation.accept() }
            }
        }
        let onMessage: MessageHandler = { [weak self] bytes, origin in
            bytes.withUnsafeBytes { self?.received($0, origin) }
        }
        session.start(
            onEvent: { [weak self] in self?.record($0) }, onMessage: reading == .handler ? onMessage : nil)
    }

    /// The session's PeerID.
    public var id: PeerID { session.id }
    /// The session's display name.
    public var name: DisplayName { session.configuration.name }
    /// All events of the session, in order.
    public var events: [SessionEvent] { monitor.read { recordedEvents } }
    /// The received messages that were not checked in place.
    public var messages: [Received] { monitor.read { recordedMessages } }
    /// These messages as text.
    public var texts: [String] { messages.map { String(decoding: $0.bytes, as: UTF8.self) } }
    /// The results of calls; tests add them.
    public var outcomes: [Result<PeerID, NighError>] {
        get { monitor.read { recordedOutcomes } }
        set { monitor.change { recordedOutcomes = newValue } }
    }
    /// The addresses at which the session listens.
    public var listening: [TransportAddress] { monitor.read { recordedListening } }
    /// Whether the session is known to be closed.
    public var isClosed: Bool { monitor.read { sessionIsClosed } }

    /// Called for each event, on the session's loop.
    public var reaction: ((SessionEvent, Session) -> Void)? {
        get { monitor.read { eventReaction } }
        set { monitor.change { eventReaction = newValue } }
    }
    /// Called for each recorded message, on the session's loop.
    public var messageReaction: (([UInt8], MessageOrigin, Session) -> Void)? {
        get { monitor.read { messageAnswer } }
        set { monitor.change { messageAnswer = newValue } }
    }

    /// Returns the state of a peer as last reported.
    public func state(of peer: PeerID) -> PeerState { monitor.read { checker.state(of: peer) } }

    /// Waits in real time until `isTrue` returns true, for at most 20 s as `LoadAdjustedClock` measures it. Returns
    /// whether it became true.
    package func wait(_ isTrue: (SessionProbe) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    /// Returns the states that were reported of a peer, in order.
    public func states(of peer: PeerID) -> [PeerState] {
        events.compactMap {
            if let changed = $0.stateChange?.peer, changed.id == peer { changed.state } else { nil }
        }
    }

    /// Returns the last cause that was reported with a state of the peer.
    public func lastCause(of peer: PeerID) -> NighError? {
        events.reversed().lazy.compactMap(\.stateChange).first { $0.peer.id == peer && $0.cause != nil }?
            .cause
    }

    /// Returns why conversations with the peer ended, in order.
    public func endings(with peer: PeerID) -> [NighError.Cause] {
        events.compactMap {
            if case .disconnected(let left, let error) = $0, left.id == peer { error.cause } else { nil }
        }
    }

    /// Returns the peer as last reported.
    public func peer(_ id: PeerID) -> Peer? {
        for event in events.reversed() {
            if let peer = event.changedPeer, peer.id == id { return peer }
            if case .paired(let peer) = event, peer.id == id { return peer }
        }
        return nil
    }

    /// The received invitations.
    public var invitations: [Invitation] {
        events.compactMap { if case .invited(let invitation) = $0 { invitation } else { nil } }
    }

    /// The invitations that ended unanswered, and why.
    public var endedInvitations: [(invitation: Invitation, cause: NighError.Cause)] {
        events.compactMap {
            if case .invitationEnded(let invitation, let cause) = $0 {
                (invitation, cause.cause)
            } else {
                nil
            }
        }
    }

    /// Reads the messages that wait in the inbox as if a handler had received them. Returns how many there were.
    @discardableResult
    public func readInbox() -> Int {
        var count = 0
        while let message = session.messages.poll() {
            message.payload.withUnsafeBytes { record($0, message.origin) }
            count += 1
        }
        return count
    }

    /// Returns whether there is a conversation with another session.
    public func isConnected(to other: SessionProbe) -> Bool { session.connectedPeerIDs.contains(other.id) }

    /// Returns the scheme of the wire that carries the conversation with another session.
    public func transport(to other: SessionProbe) -> String? { session.inspection(of: other.id)?.transport }

    /// Invites another session that it has found. The outcome goes to ``outcomes``.
    public func invite(_ other: SessionProbe) {
        session.invite(other.id) { [weak self] in self?.outcomes.append($0) }
    }

    /// The error of the last call, if it failed.
    public var failure: NighError? {
        guard case .failure(let error)? = outcomes.last else { return nil }
        return error
    }

    /// The statistics of a session in virtual time.
    public var statistics: SessionStatistics {
        // They are reported at once, on the one thread that there is.
        nonisolated(unsafe) var result = SessionStatistics()
        session.statistics { result = $0 }
        return result
    }

    /// Records that the session is closed. From then on it may report nothing.
    func noteClosed() { monitor.change { sessionIsClosed = true } }

    private func record(_ event: SessionEvent) {
        if isClosed { onViolation("session \(number) reported \(event) after its close") }
        monitor.change {
            recordedEvents.append(event)
            if let violation = checker.record(event) {
                onViolation("session \(number): \(violation.message)")
            }
            switch event {
            case .listening(_, let addresses): recordedListening = addresses
            case .transportDown(_, let error):
                if case .contractBroken = error.cause { onViolation("session \(number): \(error)") }
            default: break
            }
        }
        reaction?(event, session)
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if isClosed { onViolation("session \(number) received a message after its close") }
        record(bytes, origin)
    }

    private func record(_ bytes: UnsafeRawBufferPointer, _ origin: MessageOrigin) {
        if checkMessage(bytes, origin) { return }
        let copy = Array(bytes)
        monitor.change { recordedMessages.append((origin, copy)) }
        messageReaction?(copy, origin, session)
    }
}
