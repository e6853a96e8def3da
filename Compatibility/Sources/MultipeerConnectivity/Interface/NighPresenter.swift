/// A user interface for invitations and lists of peers, in place of the windows of Apple's framework: in a terminal, in
/// windows of the program's own, or none in a test.
///
/// `NighMultipeer.presenter` is the one that is used. It is called on any thread.
public protocol NighPresenter: AnyObject, Sendable {
    /// Asks the person whether to accept an invitation, and passes the answer on, now or later.
    func ask(about invitation: NighInvitation, answer: @escaping (Bool) -> Void)

    /// Shows the peers of a browser that begins, with the means to invite them, and to finish or cancel.
    func show(_ browser: MCBrowserViewController)

    /// Something in the list of a browser has changed: a peer came or went, or its state is another.
    func update(_ browser: MCBrowserViewController)
}

/// An invitation that a person is asked about.
public struct NighInvitation {
    /// The peer that invites.
    public let peerID: MCPeerID
    /// The data that came with the invitation.
    public let context: Data?
    /// The session that the peer would be in.
    public let session: MCSession
}
