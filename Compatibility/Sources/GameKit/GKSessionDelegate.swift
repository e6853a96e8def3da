/// What a session tells its program. All calls come on the main queue. Each method has a default implementation, so a
/// delegate has only those that it needs.
public protocol GKSessionDelegate: NSObjectProtocol {
    /// A peer has changed its state. ``GKSession/peers(with:)`` has the new state already.
    func session(_ session: GKSession, peer peerID: String, didChange state: GKPeerConnectionState)

    /// A peer asks for a connection. Answer with ``GKSession/acceptConnection(fromPeer:)`` or
    /// ``GKSession/denyConnection(fromPeer:)``, now or later. By default the request is denied.
    func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peerID: String)

    /// There is no connection, although one of the two had asked for it. The error is a ``GKSessionError``.
    func session(_ session: GKSession, connectionWithPeerFailed peerID: String, withError error: any Error)

    /// The session does not work: none of its transports does. It works again by itself where that is possible.
    func session(_ session: GKSession, didFailWithError error: any Error)
}

extension GKSessionDelegate {
    /// Does nothing.
    public func session(_ session: GKSession, peer peerID: String, didChange state: GKPeerConnectionState) {}

    /// Denies the request, so that its sender need not wait for the timeout.
    public func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peerID: String) {
        session.denyConnection(fromPeer: peerID)
    }

    /// Does nothing.
    public func session(
        _ session: GKSession, connectionWithPeerFailed peerID: String, withError error: any Error
    ) {}

    /// Does nothing.
    public func session(_ session: GKSession, didFailWithError error: any Error) {}
}
