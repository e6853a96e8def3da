import NighLoop
import Synchronization

/// This program's place among the devices nearby: it finds the sessions of the same session ID, connects to them, and
/// exchanges data with them. The devices are Linux machines; sessions on Apple's systems speak another protocol.
///
/// The methods can be called from any thread. The delegate and the data handler are called on the main queue, which is
/// also where the main actor runs. Something has to serve it: `RunLoop.main.run()`, `dispatchMain()`, or an
/// asynchronous `main`.
///
/// A session leaves in good order when nobody holds it any more. Messages that were sent before are still delivered, as
/// long as the process lives.
open class GKSession: NSObject {
    /// The name of the service: sessions with the same ID find each other.
    open var sessionID: String! { id }
    /// The name that other devices show.
    open var displayName: String! { name }
    /// Whether the session advertises, browses, or both.
    open var sessionMode: GKSessionMode { mode }
    /// The ID under which other sessions know this one. Each session has a new one.
    open var peerID: String! { identity.peerID.description }

    /// A peer's request for a connection.
    private struct Request {
        let invitation: Invitation
        var isAccepted = false
    }

    private let id: String
    private let name: String
    private let mode: GKSessionMode
    private let identity = Identity.ephemeral()

    /// The low-level session with its limits, for sending. A class, so that one reference is counted for each message.
    private final class Outlet: Sendable {
        let low: LowLevelSession
        let messageLimit: Int
        let unreliableLimit: Int

        init(_ low: LowLevelSession) {
            self.low = low
            let limits = low.configuration.limits
            messageLimit = limits.message
            unreliableLimit = limits.unreliableMessage
        }
    }

    /// The outlet, and the peer sent to last, so that its ID is not read anew for each message.
    private let outlet = Mutex<(outlet: Outlet?, text: String, id: PeerID?)>((nil, "", nil))
    /// Changes with the data handler.
    private let receiverVersion = Atomic<UInt>(0)

    /// Guards everything below.
    private let lock = NSLock()
    private var engine: SessionEngine?
    private var isAvailableNow = false
    private var timeout: TimeInterval = 20
    private weak var currentDelegate: (any GKSessionDelegate)?
    private weak var receiver: (any GKSessionDataReceiver)?
    private var context: UnsafeMutableRawPointer?
    private var knownPeers = PeerTable()
    /// The requests of peers, until they are denied, have ended, or have led to a connection.
    private var requests: [String: Request] = [:]
    private weak var currentObserver: GKPeerPickerController?
    private var failedTransports: Set<String> = []

    /// Creates a session, which does nothing until ``isAvailable`` is true.
    ///
    /// - Parameters:
    ///   - sessionID: the same in all programs that are to find each other; nil stands for the bundle's identifier.
    ///   - displayName: the name that others see, at most 63 bytes; nil stands for the user's name for this device.
    ///   - sessionMode: whether the session advertises, browses, or both.
    public init!(sessionID: String!, displayName: String!, sessionMode: GKSessionMode) {
        id = sessionID ?? Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let given = displayName.map { DisplayName(fitting: $0) }
        name = (given ?? (try? DisplayName.ofThisUser()) ?? DisplayName(fitting: "")).description
        mode = sessionMode
        super.init()
    }

    deinit { engine?.close() }

    // MARK: Delegate and data handler

    /// The object that the session notifies of peers and requests. The session does not retain it.
    open var delegate: (any GKSessionDelegate)! {
        get { lock.withLock { currentDelegate } }
        set { lock.withLock { currentDelegate = newValue } }
    }

    /// Sets the object that gets the data of all peers, a ``GKSessionDataReceiver``. The session does not retain it.
    /// While there is none, data wait, and the peers that send them are slowed down.
    ///
    /// - Parameter context: passed to the object with all data.
    open func setDataReceiveHandler(_ handler: Any!, withContext context: UnsafeMutableRawPointer!) {
        let receiver = handler as? any GKSessionDataReceiver
        if let handler, receiver == nil {
            preconditionFailure(
                "setDataReceiveHandler: \(type(of: handler)) does not conform to GKSessionDataReceiver. There are no "
                    + "informal messages on Linux: add the conformance to the class that has receiveData")
        }
        let engine = lock.withLock {
            self.receiver = receiver
            self.context = context
            receiverVersion.add(1, ordering: .releasing)
            return self.engine
        }
        engine?.wakeMainQueue()
    }

    /// The picker that uses the session. While it is shown, it answers requests.
    var observer: GKPeerPickerController? {
        get { lock.withLock { currentObserver } }
        set { lock.withLock { currentObserver = newValue } }
    }

    /// The peers as the delegate knows them.
    var table: PeerTable { lock.withLock { knownPeers } }

    // MARK: Being available

    /// Whether the session advertises or browses, depending on its mode. False at first. A game turns it off once it
    /// begins: peers stay connected, no other peer finds the session, and requests are denied.
    open var isAvailable: Bool {
        get { lock.withLock { isAvailableNow } }
        set {
            do throws(NighError) {
                try setAvailable(newValue)
            } catch {
                let failure = GKSessionError(.cannotEnableError, "\(error)")
                onMainQueue { $0.delegate?.session($0, didFailWithError: failure) }
            }
        }
    }

    private func setAvailable(_ isOn: Bool) throws(NighError) {
        lock.lock()
        defer { lock.unlock() }
        guard isOn != isAvailableNow else { return }
        if engine == nil, isOn {
            // Starts as the mode says.
            let made = try SessionEngine(
                configuration, identity: identity, transports: NighGameKit.settings.transports, for: self)
            engine = made
            outlet.withLock { $0.outlet = Outlet(made.low) }
        } else if let session = engine?.low.session {
            if mode != .client { isOn ? session.startAdvertising() : session.stopAdvertising() }
            if mode != .server { isOn ? session.startBrowsing() : session.stopBrowsing() }
        }
        isAvailableNow = isOn
    }

    /// The longest time that a call can ask for. Programs ask for infinity.
    private static let longestTime: TimeInterval = 86_400

    /// The silence after which a peer is disconnected; 20 s by default. Until then the session looks for another link
    /// to the peer, which stays connected. Set it before the session becomes available for the first time. Later
    /// changes have no effect.
    open var disconnectTimeout: TimeInterval {
        get { lock.withLock { timeout } }
        set { lock.withLock { timeout = newValue } }
    }

    private var configuration: SessionConfiguration {
        let role: SessionRole =
            switch mode {
            case .server: .server
            case .client: .client
            case .peer: .peer
            }
        var configuration = SessionConfiguration(
            service: ServiceName(sessionID: id), name: DisplayName(fitting: name), role: role)
        // First a silent peer loses its link, then there is some time to make another.
        let silence = Duration.seconds(timeout > 0.1 ? min(timeout, Self.longestTime) : 0.1) * 3 / 5
        configuration.timings.pingAfter = silence / 3
        configuration.timings.loseAfter = silence
        configuration.timings.grace = silence * 2 / 3
        configuration.limits.sendBuffer = 64 << 20
        // Nobody would read them.
        configuration.limits.streams = 0
        return configuration
    }

    // MARK: Peers

    /// The IDs of the peers in a state. It agrees with the last notification of the delegate.
    open func peers(with state: GKPeerConnectionState) -> [Any]! { table.peers(in: state) }

    /// The name of a peer, if it is or was known; also this session's own.
    open func displayName(forPeer peerID: String!) -> String! {
        guard let peerID else { return nil }
        return peerID == self.peerID ? name : table.name(of: peerID)
    }

    private var low: LowLevelSession? { lock.withLock { engine?.low } }

    // MARK: Connecting

    /// Asks a peer for a connection. The delegate is notified when it is connected, or of the reason why it is not.
    ///
    /// - Parameter timeout: the time to wait for the answer; 30 s if it is not more than zero.
    open func connect(toPeer peerID: String!, withTimeout timeout: TimeInterval) {
        guard let peer = peerID.flatMap({ PeerID($0) }), let engine = lock.withLock({ engine }) else {
            let id = peerID ?? ""
            onMainQueue {
                $0.report(GKSessionError(.peerNotFoundError, "no peer is known as \"\(id)\""), of: id)
            }
            return
        }
        engine.call(peer, timeout: .seconds(timeout > 0 ? min(timeout, Self.longestTime) : 30))
    }

    /// Withdraws a request of this session. Both delegates get the error `cancelledError`.
    open func cancelConnect(toPeer peerID: String!) {
        guard let peer = peerID.flatMap({ PeerID($0) }) else { return }
        low?.cancelInvitation(of: peer)
    }

    /// Accepts the request of a peer. The delegate is notified when it is connected, or of the reason why it is not.
    /// Fails if there is no such request, or if it has ended.
    open func acceptConnection(fromPeer peerID: String!) throws {
        let id = peerID ?? ""
        let request = lock.withLock { () -> Request? in
            defer { requests[id]?.isAccepted = true }
            return requests[id]
        }
        guard let request, !request.isAccepted else {
            throw GKSessionError(.peerNotFoundError, "there is no request of \"\(id)\"")
        }
        request.invitation.accept()
    }

    /// Denies the request of a peer.
    open func denyConnection(fromPeer peerID: String!) {
        let request = lock.withLock { requests.removeValue(forKey: peerID ?? "") }
        if let request, !request.isAccepted { request.invitation.decline() }
    }

    /// Ends the connection to a peer, or with this session's own ID all connections. Messages that were sent before
    /// still arrive. The peer's connections to others are its own.
    open func disconnectPeer(fromAllPeers peerID: String!) {
        if peerID == self.peerID { return disconnectFromAllPeers() }
        guard let peer = peerID.flatMap({ PeerID($0) }) else { return }
        low?.disconnect(peer)
    }

    /// Ends all connections. Messages that were sent before still arrive. The session can be used again.
    open func disconnectFromAllPeers() { low?.disconnectAll() }

    // MARK: Sending

    /// Sends data to peers. Returns before the data arrive. If one of the peers is not connected, or the data are too
    /// large, they are sent to no peer.
    ///
    /// Fails with `transportError` if a peer reads too slowly and 64 MiB already wait for it. The other peers still get
    /// the data.
    open func send(_ data: Data!, toPeers peers: [Any]!, with mode: GKSendDataMode) throws {
        guard let data, let peers, !peers.isEmpty else { throw Self.nothingToSend }
        if peers.count == 1 {
            guard let text = peers[0] as? String else { throw Self.nothingToSend }
            // Whether it is connected, sending finds out.
            guard let (outlet, peer) = recipient(text) else { throw Self.notConnected }
            return try send(data, to: CollectionOfOne(peer), mode, outlet)
        }
        guard let texts = peers as? [String] else { throw Self.nothingToSend }
        let outlet = outlet.withLock { $0.outlet }
        let receivers = lock.withLock { texts.compactMap(knownPeers.id) }
        guard let outlet, receivers.count == texts.count,
            Set(outlet.low.connectedPeerIDs).isSuperset(of: receivers)
        else { throw Self.notConnected }
        try send(data, to: receivers, mode, outlet)
    }

    private static let nothingToSend = GKSessionError(
        .invalidParameterError, "there are no data or no IDs of peers to send to")
    private static let notConnected = GKSessionError(
        .notConnectedError, "one of the peers is not connected")

    /// Returns the outlet and the peer's ID; nil if the text is no ID, or if the session was never available.
    private func recipient(_ text: String) -> (Outlet, PeerID)? {
        outlet.withLock { last in
            guard let outlet = last.outlet else { return nil }
            if let id = last.id, last.text == text { return (outlet, id) }
            guard let id = PeerID(text) else { return nil }
            (last.text, last.id) = (text, id)
            return (outlet, id)
        }
    }

    /// Sends data to all connected peers. It is no error if there is none.
    open func sendData(toAllPeers data: Data!, with mode: GKSendDataMode) throws {
        guard let data else { throw GKSessionError(.invalidParameterError, "there are no data to send") }
        guard let outlet = outlet.withLock({ $0.outlet }) else { return }
        try send(data, to: outlet.low.connectedPeerIDs, mode, outlet) { cause in
            // It has just left, or is about to.
            switch cause {
            case .left, .notConnected, .peerLeft: true
            default: false
            }
        }
    }

    private func send(
        _ data: Data, to peers: some Collection<PeerID>, _ mode: GKSendDataMode, _ outlet: Outlet,
        passingOver isNoFailure: (NighError.Cause) -> Bool = { _ in false }
    ) throws {
        guard data.count <= outlet.messageLimit || peers.isEmpty else {
            throw GKSessionError(
                .dataTooBigError, "\(data.count) bytes are more than \(outlet.messageLimit)")
        }
        let isReliable = mode == .reliable || data.count > outlet.unreliableLimit
        var failure: NighError?
        data.withUnsafeBytes { bytes in
            for peer in peers {
                do throws(NighError) {
                    try outlet.low.trySend(bytes, to: peer, isReliable ? .reliable : .unordered)
                } catch {
                    if !isNoFailure(error.cause) { failure = error }
                }
            }
        }
        if let failure { throw GKSessionError(failure) }
    }
}

// MARK: On the main queue

extension GKSession {
    /// Runs `work` soon, if the session still exists.
    private func onMainQueue(_ work: @escaping @Sendable (GKSession) -> Void) {
        // Like every member of the session, it may be used from any thread.
        nonisolated(unsafe) weak let session = self
        DispatchQueue.main.async { if let session { work(session) } }
    }

    /// Whether there is an object for data.
    var hasDataReceiver: Bool { lock.withLock { receiver != nil } }

    /// Gives messages to the data handler. Returns those that are left when there is none.
    func deliver(_ messages: ArraySlice<Message>) -> ArraySlice<Message> {
        var next = messages.startIndex
        while next < messages.endIndex {
            let sender = messages[next].sender
            let version = receiverVersion.load(ordering: .acquiring)
            lock.lock()
            let (receiver, context, peer) = (self.receiver, self.context, knownPeers.text(of: sender))
            lock.unlock()
            guard let receiver else { break }
            // Messages of one peer, as long as the handler stays the same.
            repeat {
                let data = messages[next].payload.withUnsafeBytes { Data($0) }
                next += 1
                receiver.receiveData(data, fromPeer: peer, inSession: self, context: context)
            } while next < messages.endIndex && messages[next].sender == sender
                && receiverVersion.load(ordering: .acquiring) == version
        }
        return messages[next...]
    }

    /// This session's own request has failed.
    func callFailed(_ peer: PeerID, _ error: NighError) {
        report(GKSessionError(error), of: peer.description)
    }

    /// Handles an event of the session.
    func handle(_ event: SessionEvent) {
        if let peer = event.stateChange?.peer { handleState(of: peer, event) }
        switch event {
        case .peerChanged(let peer):
            lock.withLock { knownPeers.note(peer.name, of: peer.id.description) }
        case .invited(let invitation): requested(invitation)
        case .invitationEnded(let invitation, let cause): requestEnded(invitation, cause)
        case .transportUp(let scheme): lock.withLock { _ = failedTransports.remove(scheme) }
        case .transportDown(let scheme, let error): transportFailed(scheme, error)
        case .advertised(let scheme, _): lock.withLock { _ = failedTransports.remove(scheme) }
        case .problem(let error):
            // Nobody finds a server that is not advertised. Other sessions can still do something.
            if mode == .server, error.stage == .advertising, let scheme = error.transport {
                transportFailed(scheme, error)
            }
        default: break
        }
    }

    private func handleState(of peer: Peer, _ event: SessionEvent) {
        let isServer = mode == .server
        let state: GKPeerConnectionState? =
            switch event {
            // A server does not look for peers. It knows those that come to it, and nothing of others.
            case .peerFound, .available: isServer ? nil : .stateAvailable
            case .peerLost: isServer ? nil : .stateUnavailable
            case .connecting: .stateConnecting
            case .connected: .stateConnected
            case .disconnected: .stateDisconnected
            default: nil
            }
        let (id, name) = (peer.id.description, peer.name)
        lock.withLock {
            if let state {
                knownPeers.note(state, of: id, named: name)
            } else {
                knownPeers.note(name, of: id)
            }
            if peer.state == .connected { requests[id] = nil }
        }
        guard let state else { return }
        delegate?.session(self, peer: id, didChange: state)
        observer?.changed(id, state)
    }

    private func requested(_ invitation: Invitation) {
        let id = invitation.peer.id.description
        guard isAvailable else {
            invitation.decline(because: "not available")
            return
        }
        lock.withLock {
            requests[id] = Request(invitation: invitation)
            knownPeers.note(invitation.peer.name, of: id)
        }
        if let observer { return observer.requested(by: id) }
        guard let delegate else { return denyConnection(fromPeer: id) }
        delegate.session(self, didReceiveConnectionRequestFromPeer: id)
    }

    private func requestEnded(_ invitation: Invitation, _ cause: NighError) {
        let id = invitation.peer.id.description
        let wasWaiting = lock.withLock {
            guard requests[id]?.invitation.number == invitation.number else { return false }
            requests[id] = nil
            return true
        }
        if wasWaiting { report(GKSessionError(cause), of: id) }
    }

    private func transportFailed(_ scheme: String, _ error: NighError) {
        let isLast = lock.withLock {
            failedTransports.insert(scheme).inserted
                && failedTransports.count == engine?.transportCount
        }
        if isLast { delegate?.session(self, didFailWithError: GKSessionError(.transportError, "\(error)")) }
    }

    private func report(_ error: GKSessionError, of id: String) {
        delegate?.session(self, connectionWithPeerFailed: id, withError: error)
        observer?.failed(id, error)
    }
}
