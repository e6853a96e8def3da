import NighCore

/// A loop that a transport cannot run on, because it needs to wait for descriptors: what such a transport says then, to each
/// call that would have an answer. A transport that is shut down lets go of it, and nothing more is said.
///
/// Confined to that loop; hence `@unchecked Sendable`.
public final class ForeignLoop: @unchecked Sendable {
    private let loop: any EventLoop
    private let events: any TransportEvents

    /// To be made in `Transport.start`, on the loop it was given. The transport is told to be down, in a later turn.
    public init(_ loop: any EventLoop, _ events: any TransportEvents, for transport: any Transport) {
        self.loop = loop
        self.events = events
        loop.execute { [weak self] in
            self?.events.transportChanged(
                .down(Self.error(.starting, transport.scheme)), by: transport)
        }
    }

    /// Says in a later turn that nobody can be dialled.
    public func refuse(_ dial: DialID, by transport: any Transport) {
        loop.execute { [weak self] in
            self?.events.dialFailed(
                dial, error: Self.error(.connecting, transport.scheme), by: transport)
        }
    }

    /// What `Transport.diagnose` has to say.
    public static func diagnosis(of scheme: String) -> Diagnosis {
        let error = error(.starting, scheme)
        return Diagnosis("event loop", .fail, "\(error.cause)", advice: error.advice)
    }

    private static func error(_ stage: NighError.Stage, _ scheme: String) -> NighError {
        NighError(
            stage, .unavailable("the session runs on a loop that knows no sockets"), transport: scheme,
            advice: "give the session a UVEventLoop")
    }
}
