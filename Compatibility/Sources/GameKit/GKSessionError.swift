/// The domain of a session's errors.
public let GKSessionErrorDomain: String = "com.apple.gamekit.GKSessionErrorDomain"

/// An error of a session. It can be caught as itself, by its code (`catch GKSessionError.declinedError`), and as
/// `NSError`.
public struct GKSessionError: _BridgedStoredNSError, _ObjectiveCBridgeable {
    /// The error as an `NSError`.
    public let _nsError: NSError

    /// Creates an error from an `NSError` of the domain ``GKSessionErrorDomain``.
    public init(_nsError error: NSError) { _nsError = error }

    /// The domain, ``GKSessionErrorDomain``.
    public static var errorDomain: String { GKSessionErrorDomain }
    /// The domain, ``GKSessionErrorDomain``, for the conversion to `NSError`.
    public static var _nsErrorDomain: String { GKSessionErrorDomain }

    /// Why it failed.
    public enum Code: Int32, _ErrorCodeProtocol, Sendable {
        /// The error with this code.
        public typealias _ErrorType = GKSessionError

        /// A parameter has a value that it must not have.
        case invalidParameterError = 30500
        /// No peer with this ID is known, or it has asked for nothing.
        case peerNotFoundError = 30501
        /// The peer denied the connection.
        case declinedError = 30502
        /// There was no answer in time.
        case timedOutError = 30503
        /// The request was withdrawn.
        case cancelledError = 30504
        /// The connection could not be made.
        case connectionFailedError = 30505
        /// The connection has ended.
        case connectionClosedError = 30506
        /// The data are too large for one message.
        case dataTooBigError = 30507
        /// A peer is not connected.
        case notConnectedError = 30508
        /// The session cannot become available.
        case cannotEnableError = 30509
        /// The peer has asked for a connection already.
        case inProgressError = 30510
        /// A failure of the connection itself.
        case connectivityError = 30201
        /// A failure of a transport; also if too many bytes wait to be sent.
        case transportError = 30202
        /// A failure inside the session.
        case internalError = 30203
        /// Any other failure.
        case unknownError = 30204
        /// A failure of the operating system.
        case systemError = 30205
    }

    // MARK: The conversion to and from `NSError`

    /// Returns the error as an `NSError`.
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    /// Converts an `NSError` whatever its domain.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout GKSessionError?) {
        result = GKSessionError(_nsError: source)
    }

    /// Converts an `NSError` of this domain.
    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSError, result: inout GKSessionError?
    ) -> Bool {
        guard source.domain == GKSessionErrorDomain else { return false }
        result = GKSessionError(_nsError: source)
        return true
    }

    /// Converts an `NSError` whatever its domain.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> GKSessionError {
        GKSessionError(_nsError: source ?? NSError(domain: GKSessionErrorDomain, code: 30204))
    }
}
