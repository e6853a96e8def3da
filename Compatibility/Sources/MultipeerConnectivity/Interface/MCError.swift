/// The domain of this module's errors.
public let MCErrorDomain = "MCErrorDomain"

/// An error of this module.
///
/// It can be caught as `MCError`, as one of its codes (`catch MCError.notConnected`), and as `NSError`.
public struct MCError: CustomNSError, Hashable, Error {
    /// The error as an `NSError`.
    public let _nsError: NSError

    /// Creates an error from an `NSError` of this module's domain.
    public init(_nsError error: NSError) {
        precondition(error.domain == MCErrorDomain)
        _nsError = error
    }

    /// Creates an error with a code.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        _nsError = NSError(domain: MCErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// The cause of an error.
    public enum Code: Int, Sendable {
        /// Something else.
        case unknown = 0
        /// A peer is not connected.
        case notConnected = 1
        /// An argument is not valid.
        case invalidParameter = 2
        /// The operation is not supported.
        case unsupported = 3
        /// There was no answer in time.
        case timedOut = 4
        /// The program, or the one at the other side, has cancelled it.
        case cancelled = 5
        /// There is no room for it now.
        case unavailable = 6

        /// Whether an error has this code.
        public static func ~= (code: Code, error: any Error) -> Bool { (error as? MCError)?.code == code }
    }

    /// The domain of this module's errors.
    public static var errorDomain: String { MCErrorDomain }
    /// The code.
    public var code: Code { Code(rawValue: _nsError.code) ?? .unknown }
    /// The number of the code.
    public var errorCode: Int { _nsError.code }
    /// More about the error.
    public var errorUserInfo: [String: Any] { _nsError.userInfo }
    /// More about the error.
    public var userInfo: [String: Any] { _nsError.userInfo }
    /// The error for people.
    public var localizedDescription: String { _nsError.localizedDescription }

    /// Something else.
    public static var unknown: Code { .unknown }
    /// A peer is not connected.
    public static var notConnected: Code { .notConnected }
    /// An argument is not valid.
    public static var invalidParameter: Code { .invalidParameter }
    /// The operation is not supported.
    public static var unsupported: Code { .unsupported }
    /// There was no answer in time.
    public static var timedOut: Code { .timedOut }
    /// The program, or the one at the other side, has cancelled it.
    public static var cancelled: Code { .cancelled }
    /// There is no room for it now.
    public static var unavailable: Code { .unavailable }
}

// So that `as NSError` and `as? MCError` find the same error in both forms.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation, NoLeadingUnderscores
extension MCError: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout MCError?) {
        _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
    }

    public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout MCError?) -> Bool {
        result = source.domain == MCErrorDomain ? MCError(_nsError: source) : nil
        return result != nil
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> MCError {
        MCError(_nsError: source ?? NSError(domain: MCErrorDomain, code: 0))
    }
}

extension MCError {
    /// Creates an error with a sentence for people.
    init(_ code: Code, _ reason: String) { self.init(code, userInfo: [NSLocalizedDescriptionKey: reason]) }
}
