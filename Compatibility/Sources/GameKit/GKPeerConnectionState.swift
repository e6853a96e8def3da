/// The state of a peer in a session.
public enum GKPeerConnectionState: Int32, Sendable {
    /// Not connected, and a connection can be asked for.
    case stateAvailable = 0
    /// No longer there, or no longer available.
    case stateUnavailable = 1
    /// Connected: data can be sent. It stays so while Nigh replaces a link that broke.
    case stateConnected = 2
    /// The connection has ended.
    case stateDisconnected = 3
    /// One of the two has asked for a connection.
    case stateConnecting = 4
    /// Never used by this module.
    case stateConnectedRelay = 5
}
