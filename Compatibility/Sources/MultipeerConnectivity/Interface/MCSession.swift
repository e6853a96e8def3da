import NighCore

/// A session of peers that are connected with each other, and exchange messages, streams and files.
///
/// Every method may be called from any thread.
open class MCSession: NSObject {
    let core: SessionCore

    /// Creates a session of a peer of this program's.
    public convenience init(peer myPeerID: MCPeerID) {
        self.init(peer: myPeerID, securityIdentity: nil, encryptionPreference: .optional)
    }

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - identity: Certificates. Those that are `Data` are shown to peers, whose programs get them in
    ///     `session(_:didReceiveCertificate:fromPeer:certificateHandler:)`. Nothing verifies them.
    ///   - encryptionPreference: Kept and returned. Every connection is encrypted, and both sides prove who they are.
    public init(
        peer myPeerID: MCPeerID, securityIdentity identity: [Any]?,
        encryptionPreference: MCEncryptionPreference
    ) {
        self.myPeerID = myPeerID
        securityIdentity = identity
        self.encryptionPreference = encryptionPreference
        core = SessionCore(myPeerID, certificates: identity?.compactMap { ($0 as? Data).map { Array($0) } })
        super.init()
        core.owner = self
    }

    deinit {
        let core = core
        Control.async { _ = core.disconnect() }
    }

    /// The object that is notified of the session's events. The session does not retain it.
    open var delegate: (any MCSessionDelegate)? {
        get { core.delegate }
        set { core.delegate = newValue }
    }

    /// This side of the session.
    public let myPeerID: MCPeerID
    /// The certificates that the session was created with.
    public let securityIdentity: [Any]?
    /// The preference that the session was created with.
    public let encryptionPreference: MCEncryptionPreference
    /// The peers that are connected now. One whose link is being replaced counts as connected.
    open var connectedPeers: [MCPeerID] { core.connectedPeers }

    // MARK: Sending

    /// Sends a message to connected peers, and returns before it arrives.
    ///
    /// Throws `MCError.invalidParameter` if there is no peer in the list or the message is too long,
    /// `MCError.notConnected` if one of the peers is not connected, and `MCError.unavailable` if too much waits for one
    /// of the peers. In the first two cases nobody gets the message; in the third one the peers with room get it.
    open func send(_ data: Data, toPeers peerIDs: [MCPeerID], with mode: MCSessionSendDataMode) throws {
        try core.send(data, to: peerIDs, mode)
    }

    /// Leaves all peers. Messages that were sent before still arrive, also if the program ends as soon as this returns,
    /// as far as the connections have room for it. The session can be used again.
    open func disconnect() {
        let engines = Control.sync { core.disconnect() }
        for engine in engines { engine.waitUntilWritten() }
    }

    /// Sends a file to a connected peer. Returns the progress of the transfer, which can cancel it; nil if the transfer
    /// cannot begin.
    ///
    /// - Parameter completionHandler: Called on the queue of the delegate: without an error once the peer has the whole
    ///   file.
    @discardableResult
    open func sendResource(
        at resourceURL: URL, withName resourceName: String, toPeer peerID: MCPeerID,
        withCompletionHandler completionHandler: (((any Error)?) -> Void)? = nil
    ) -> Progress? {
        core.sendResource(
            at: resourceURL, named: resourceName, to: peerID.known.id, completion: completionHandler)
    }

    /// Opens a stream to a connected peer, and returns at once. The program sets its delegate, schedules and opens it.
    @discardableResult
    open func startStream(withName streamName: String, toPeer peerID: MCPeerID) throws -> OutputStream {
        guard let member = core.member(peerID.known.id) else {
            throw MCError(.notConnected, "\(peerID.displayName) is not connected")
        }
        return try core.startStream(named: streamName, to: member)
    }

    // MARK: Connecting without a browser

    /// Makes the data with which another peer can connect to this session by `connectPeer`. The program brings it
    /// there.
    open func nearbyConnectionData(
        forPeer peerID: MCPeerID,
        withCompletionHandler completionHandler: @escaping (Data?, (any Error)?) -> Void
    ) {
        let handler = Handover(completionHandler)
        let core = core
        core.connectionData { result in
            core.queue.async {
                switch result {
                case .success(let data): handler.value(data, nil)
                case .failure(let error): handler.value(nil, error)
                }
            }
        }
    }

    /// Returns the data with which another peer can connect to this session by `connectPeer`.
    public func nearbyConnectionData(forPeer peerID: MCPeerID) async throws -> Data {
        let core = core
        return try await withCheckedThrowingContinuation { continuation in
            core.connectionData { continuation.resume(with: $0) }
        }
    }

    /// Connects to a peer with the connection data of its session. The peer has to do the same with that of this
    /// session.
    open func connectPeer(_ peerID: MCPeerID, withNearbyConnectionData data: Data) {
        core.connect(to: peerID, with: data)
    }

    /// Ends an attempt to connect.
    open func cancelConnectPeer(_ peerID: MCPeerID) {
        Control.sync { core.cancelConnecting(to: peerID.known.id) }
    }
}
