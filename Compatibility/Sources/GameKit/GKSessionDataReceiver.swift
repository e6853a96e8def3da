/// An object that gets the data of a session. It takes the place of the informal Objective-C message
/// `receiveData:fromPeer:inSession:context:`: the method is the same, and the object says that it has it.
public protocol GKSessionDataReceiver: AnyObject {
    /// Called on the main queue with each message, in the order sent by a peer.
    ///
    /// - Parameter context: The context that was given to ``GKSession/setDataReceiveHandler(_:withContext:)``.
    func receiveData(
        _ data: Data, fromPeer peer: String, inSession session: GKSession, context: UnsafeMutableRawPointer?)
}
