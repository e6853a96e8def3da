import Nigh

extension GKSessionError {
    /// An error with a sentence for people.
    init(_ code: Code, _ sentence: String) {
        self.init(code, userInfo: [NSLocalizedDescriptionKey: sentence])
    }

    /// The code that fits an error of Nigh, and its sentence. The whole error is under `NSUnderlyingErrorKey`.
    init(_ error: NighError) {
        self.init(
            Code(error.cause),
            userInfo: [NSLocalizedDescriptionKey: error.description, NSUnderlyingErrorKey: error])
    }
}

extension GKSessionError.Code {
    fileprivate init(_ cause: NighError.Cause) {
        self =
            switch cause {
            case .declined, .full, .busy: .declinedError
            case .timedOut, .silent: .timedOutError
            case .cancelled: .cancelledError
            case .unknownPeer, .noRoute: .peerNotFoundError
            case .notConnected, .left: .notConnectedError
            case .peerLeft, .linkLost, .reset, .restarted, .closed: .connectionClosedError
            case .messageTooLarge: .dataTooBigError
            case .bufferFull: .transportError
            case .invalid: .invalidParameterError
            case .unavailable: .cannotEnableError
            case .system: .systemError
            default: .connectionFailedError
            }
    }
}
