extension GKSessionError {
    /// A parameter has a value that it must not have.
    public static var invalidParameterError: Code { .invalidParameterError }
    /// No peer with this ID is known, or it has asked for nothing.
    public static var peerNotFoundError: Code { .peerNotFoundError }
    /// The peer denied the connection.
    public static var declinedError: Code { .declinedError }
    /// There was no answer in time.
    public static var timedOutError: Code { .timedOutError }
    /// The request was withdrawn.
    public static var cancelledError: Code { .cancelledError }
    /// The connection could not be made.
    public static var connectionFailedError: Code { .connectionFailedError }
    /// The connection has ended.
    public static var connectionClosedError: Code { .connectionClosedError }
    /// The data are too large for one message.
    public static var dataTooBigError: Code { .dataTooBigError }
    /// A peer is not connected.
    public static var notConnectedError: Code { .notConnectedError }
    /// The session cannot become available.
    public static var cannotEnableError: Code { .cannotEnableError }
    /// The peer has asked for a connection already.
    public static var inProgressError: Code { .inProgressError }
    /// A failure of the connection itself.
    public static var connectivityError: Code { .connectivityError }
    /// A failure of a transport; also if too many bytes wait to be sent.
    public static var transportError: Code { .transportError }
    /// A failure inside the session.
    public static var internalError: Code { .internalError }
    /// Any other failure.
    public static var unknownError: Code { .unknownError }
    /// A failure of the operating system.
    public static var systemError: Code { .systemError }
}
