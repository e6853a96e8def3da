import NighCompatibility

/// Receives the events of a session. All calls come on the main queue. Each method has a default implementation, so a
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

    // MARK: The form of older programs. Where a program itself calls a method, it means the first form.

    /// A peer has changed its state, in the form of older programs.
    @_disfavoredOverload
    func session(_ session: GKSession!, peer peerID: String!, didChange state: GKPeerConnectionState)

    /// A peer asks for a connection, in the form of older programs.
    @_disfavoredOverload
    func session(_ session: GKSession!, didReceiveConnectionRequestFromPeer peerID: String!)

    /// There is no connection, in the form of older programs.
    @_disfavoredOverload
    func session(
        _ session: GKSession!, connectionWithPeerFailed peerID: String!, withError error: (any Error)!)

    /// The session does not work, in the form of older programs.
    @_disfavoredOverload
    func session(_ session: GKSession!, didFailWithError error: (any Error)!)
}

// A delegate that has a method in one form only is called by it: the default of the first form calls the older one.
extension GKSessionDelegate {
    /// Calls the method in the form of older programs.
    public func session(_ session: GKSession, peer peerID: String, didChange state: GKPeerConnectionState) {
        self.session(session as GKSession?, peer: peerID as String?, didChange: state)
    }

    /// Calls the method in the form of older programs.
    public func session(_ session: GKSession, didReceiveConnectionRequestFromPeer peerID: String) {
        self.session(session as GKSession?, didReceiveConnectionRequestFromPeer: peerID as String?)
    }

    /// Calls the method in the form of older programs.
    public func session(
        _ session: GKSession, connectionWithPeerFailed peerID: String, withError error: any Error
    ) {
        self.session(
            session as GKSession?, connectionWithPeerFailed: peerID as String?,
            withError: error as (any Error)?)
    }

    /// Calls the method in the form of older programs.
    public func session(_ session: GKSession, didFailWithError error: any Error) {
        self.session(session as GKSession?, didFailWithError: error as (any Error)?)
    }
}

// Without the method. A line on standard error says so once: the delegate may have it in a form that Swift does not
// take for it.
extension GKSessionDelegate {
    /// Does nothing.
    @_disfavoredOverload
    public func session(_ session: GKSession!, peer peerID: String!, didChange state: GKPeerConnectionState) {
        missing("session(_:peer:didChange:)", "it does not hear of peers")
    }

    /// Denies the request, so that its sender need not wait for the timeout.
    @_disfavoredOverload
    public func session(_ session: GKSession!, didReceiveConnectionRequestFromPeer peerID: String!) {
        missing("session(_:didReceiveConnectionRequestFromPeer:)", "all requests are denied")
        session?.denyConnection(fromPeer: peerID)
    }

    /// Does nothing.
    @_disfavoredOverload
    public func session(
        _ session: GKSession!, connectionWithPeerFailed peerID: String!, withError error: (any Error)!
    ) {
        missing(
            "session(_:connectionWithPeerFailed:withError:)", "it does not hear this: \(Self.words(error))")
    }

    /// Does nothing.
    @_disfavoredOverload
    public func session(_ session: GKSession!, didFailWithError error: (any Error)!) {
        missing("session(_:didFailWithError:)", "it does not hear this: \(Self.words(error))")
    }

    private func missing(_ method: String, _ consequence: String) {
        Notice.missing(method, of: self, consequence, by: NighGameKit.module)
    }

    private static func words(_ error: (any Error)?) -> String { error?.localizedDescription ?? "an error" }
}
