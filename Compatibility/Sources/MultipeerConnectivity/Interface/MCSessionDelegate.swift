import NighCompatibility

/// Receives the events of a session. All calls come one after the other on a queue of the session's own.
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

    /// A resource is there, or will not come, in the form of older programs.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL, withError error: (any Error)?)

    /// A peer shows its certificates, before it is connected. The program calls the handler, whenever it likes.
    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void)

    /// A peer shows its certificates, in the form of older programs. Where a program itself calls a method, it means
    /// the first form.
    @_disfavoredOverload
    func session(
        _ session: MCSession!, didReceiveCertificate certificate: [Any]!, fromPeer peerID: MCPeerID!,
        certificateHandler: ((Bool) -> Void)!)
}

// Defaults for the methods that are optional in Apple's protocol.
extension MCSessionDelegate {
    /// Calls the method in the form of older programs.
    public func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) {
        // Explicitly optional, so that this is not the method itself.
        let (session, peerID, handler): (MCSession?, MCPeerID?, ((Bool) -> Void)?) = (
            session, peerID, certificateHandler
        )
        self.session(
            session, didReceiveCertificate: certificate, fromPeer: peerID, certificateHandler: handler)
    }

    /// Accepts the peer, regardless of its certificates. Where somebody has certificates, a program that looks at none
    /// may have the method in a form that Swift does not take for it.
    @_disfavoredOverload
    public func session(
        _ session: MCSession!, didReceiveCertificate certificate: [Any]!, fromPeer peerID: MCPeerID!,
        certificateHandler: ((Bool) -> Void)!
    ) {
        if certificate != nil || session?.securityIdentity != nil {
            Notice.missing(
                "session(_:didReceiveCertificate:fromPeer:certificateHandler:)", of: self,
                "\(peerID?.displayName ?? "a peer") is accepted whatever its certificates are",
                by: NighMultipeer.module)
        }
        certificateHandler?(true)
    }

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

    /// Does nothing but say so: a program that has the method in either form never comes here.
    public func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL, withError error: (any Error)?
    ) {
        Notice.missing(
            "session(_:didFinishReceivingResourceWithName:fromPeer:at:withError:)", of: self,
            "resources that come are lost", by: NighMultipeer.module)
    }
}
