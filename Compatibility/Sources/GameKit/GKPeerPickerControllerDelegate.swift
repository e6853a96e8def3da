/// Receives the events of a picker, on the main queue. Each method has a default implementation.
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

    // MARK: The form of older programs. Where a program itself calls a method, it means the first form.

    /// The person has chosen a kind of connection, in the form of older programs.
    @_disfavoredOverload
    func peerPickerController(
        _ picker: GKPeerPickerController!, didSelect type: GKPeerPickerConnectionType)

    /// Returns the session that the picker uses, in the form of older programs.
    @_disfavoredOverload
    func peerPickerController(
        _ picker: GKPeerPickerController!, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession!

    /// The session is connected to a peer, in the form of older programs.
    @_disfavoredOverload
    func peerPickerController(
        _ picker: GKPeerPickerController!, didConnectPeer peerID: String!, to session: GKSession!)

    /// The person has closed the picker, in the form of older programs.
    @_disfavoredOverload
    func peerPickerControllerDidCancel(_ picker: GKPeerPickerController!)
}

// A delegate that has a method in one form only is called by it: the default of the first form calls the older one.
extension GKPeerPickerControllerDelegate {
    /// Calls the method in the form of older programs.
    public func peerPickerController(
        _ picker: GKPeerPickerController, didSelect type: GKPeerPickerConnectionType
    ) { peerPickerController(picker as GKPeerPickerController?, didSelect: type) }

    /// Calls the method in the form of older programs.
    public func peerPickerController(
        _ picker: GKPeerPickerController, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession {
        let session: GKSession? = peerPickerController(picker as GKPeerPickerController?, sessionFor: type)
        return session ?? GKSession(sessionID: nil, displayName: nil, sessionMode: .peer)
    }

    /// Calls the method in the form of older programs.
    public func peerPickerController(
        _ picker: GKPeerPickerController, didConnectPeer peerID: String, to session: GKSession
    ) {
        peerPickerController(
            picker as GKPeerPickerController?, didConnectPeer: peerID as String?, to: session as GKSession?)
    }

    /// Calls the method in the form of older programs.
    public func peerPickerControllerDidCancel(_ picker: GKPeerPickerController) {
        peerPickerControllerDidCancel(picker as GKPeerPickerController?)
    }
}

// Without the method.
extension GKPeerPickerControllerDelegate {
    /// Does nothing.
    @_disfavoredOverload
    public func peerPickerController(
        _ picker: GKPeerPickerController!, didSelect type: GKPeerPickerConnectionType
    ) {}

    /// Returns nothing: the picker makes a session of the program's own session ID, as a peer.
    @_disfavoredOverload
    public func peerPickerController(
        _ picker: GKPeerPickerController!, sessionFor type: GKPeerPickerConnectionType
    ) -> GKSession! { nil }

    /// Does nothing.
    @_disfavoredOverload
    public func peerPickerController(
        _ picker: GKPeerPickerController!, didConnectPeer peerID: String!, to session: GKSession!
    ) {}

    /// Does nothing.
    @_disfavoredOverload
    public func peerPickerControllerDidCancel(_ picker: GKPeerPickerController!) {}
}
