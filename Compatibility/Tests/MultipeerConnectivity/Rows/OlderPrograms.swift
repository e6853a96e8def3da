import MultipeerConnectivity

/// The methods that every delegate of a session has, but the one for resources that have come.
protocol SilentDelegate: MCSessionDelegate {}

extension SilentDelegate {
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {}

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {}

    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID
    ) {}

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, with progress: Progress
    ) {}
}

/// Refuses every peer, in the form that programs of the first years have.
final class OlderProgram: NSObject, SilentDelegate {
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, at localURL: URL, withError error: (any Error)?
    ) {}

    func session(
        _ session: MCSession!, didReceiveCertificate certificate: [Any]!, fromPeer peerID: MCPeerID!,
        certificateHandler: ((Bool) -> Void)!
    ) { certificateHandler(false) }
}

/// Refuses every peer, with a handler that does not say that it escapes.
final class NonEscapingProgram: NSObject, SilentDelegate {
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, at localURL: URL, withError error: (any Error)?
    ) {}

    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: (Bool) -> Void
    ) { certificateHandler(false) }
}
