import Glibc
import NighCore

/// The error of a call to a socket, and its explanation for a person.
public struct SocketFault: Error, Hashable, Sendable {
    /// The `errno`.
    public let number: Int32

    /// Creates the fault for an `errno`.
    public init(_ number: Int32) { self.number = number }

    /// The cause, for a `NighError`.
    public var cause: NighError.Cause {
        switch number {
        case ECONNREFUSED: .refused
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ENETRESET, EADDRNOTAVAIL, ENODEV: .unreachable
        case ETIMEDOUT: .timedOut
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .reset
        default: UVError(code: -number).cause
        }
    }

    /// Advice that suits any kind of socket; nil if it depends on the kind.
    public var advice: String? {
        switch number {
        case ECONNREFUSED, ENOENT: "is the program running there?"
        case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: "is the program at the other end still running?"
        case ETIMEDOUT: "does the other side still answer?"
        case EACCES, EPERM: "this user does not have permission to do that"
        case EADDRINUSE: "another program listens there: end it, or choose another address"
        default: shortageAdvice
        }
    }

    /// Whether the fault says that no descriptor is left.
    package var isShortage: Bool { number == EMFILE || number == ENFILE }

    /// Advice if the fault says that descriptors have run out; nil for other faults.
    package var shortageAdvice: String? {
        isShortage ? "too many descriptors are open: raise `ulimit -n`" : nil
    }

    /// Returns the fault as an error of `stage`, about `peer`, on the transport `scheme`. A caller that knows better
    /// advice passes `advice`.
    public func error(
        _ stage: NighError.Stage, transport scheme: String, peer: String? = nil, advice: String? = nil
    ) -> NighError {
        NighError(stage, cause, peer: peer, transport: scheme, advice: advice ?? self.advice)
    }
}

extension SocketFault {
    /// Takes the pending error from a socket; nil if there is none.
    package static func taken(from descriptor: Int32) -> SocketFault? {
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size) != 0 { number = errno }
        return number == 0 ? nil : SocketFault(number)
    }

    /// Creates the fault from the error of a loop that cannot wait for a descriptor.
    init(_ error: NighError) {
        if case .system(let number, _) = error.cause { self.init(number) } else { self.init(EINVAL) }
    }
}
