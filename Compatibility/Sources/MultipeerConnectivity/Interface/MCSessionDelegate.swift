/// What a session reports. All calls come one after the other on a queue of the session's own.
public protocol MCSessionDelegate: NSObjectProtocol {
    /// The session has another state with a peer.
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState)

    /// A message has come in full. Its sender may send more once this has returned.
    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID)

    /// A peer has opened a stream. It is not open at this side yet.
    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID)

    /// A peer has begun to send a resource.
    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        with progress: Progress)

    /// A resource is there, or will not come. The file exists until this has returned: move it or copy it.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL?, withError error: (any Error)?)

    /// The same in the form of older programs.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL, withError error: (any Error)?)

    /// A peer shows its certificates, before it is connected. The program calls the handler, whenever it likes.
    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void)
}

// What Apple calls optional.
extension MCSessionDelegate {
    /// Accepts the peer, whatever it shows.
    public func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) { certificateHandler(true) }

    /// Calls the method in the form of older programs, if there is a file.
    public func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL?, withError error: (any Error)?
    ) {
        // Without a file, older programs got a URL without meaning beside the error.
        let url = localURL ?? URL(fileURLWithPath: "/dev/null")
        self.session(
            session, didFinishReceivingResourceWithName: resourceName, fromPeer: peerID, at: url,
            withError: error)
    }

    /// Does nothing: the program has the method in its newer form.
    public func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL, withError error: (any Error)?
    ) {}
}
