/// What a picker tells its program, on the main queue. Each method has a default implementation.
public protocol GKPeerPickerControllerDelegate: NSObjectProtocol {
    /// The person has chosen a kind of connection. After ``GKPeerPickerConnectionType/online`` the program dismisses
    /// the picker and makes the connection itself.
    func peerPickerController(
        _ picker: GKPeerPickerController, didSelect type: GKPeerPickerConnectionType)

    /// Returns the session that the picker uses. By default it is a new one of the program's own session ID, as a peer.
    func peerPickerController(
        _ picker: GKPeerPickerController, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession

    /// The session is connected to a peer. The program keeps the session and dismisses the picker.
    func peerPickerController(
        _ picker: GKPeerPickerController, didConnectPeer peerID: String, to session: GKSession)

    /// The person has closed the picker.
    func peerPickerControllerDidCancel(_ picker: GKPeerPickerController)
}

extension GKPeerPickerControllerDelegate {
    /// Does nothing.
    public func peerPickerController(
        _ picker: GKPeerPickerController, didSelect type: GKPeerPickerConnectionType
    ) {}

    /// Returns a new session of the program's own session ID, as a peer.
    public func peerPickerController(
        _ picker: GKPeerPickerController, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession {
        GKSession(sessionID: nil, displayName: nil, sessionMode: .peer)
    }

    /// Does nothing.
    public func peerPickerController(
        _ picker: GKPeerPickerController, didConnectPeer peerID: String, to session: GKSession
    ) {}

    /// Does nothing.
    public func peerPickerControllerDidCancel(_ picker: GKPeerPickerController) {}
}
