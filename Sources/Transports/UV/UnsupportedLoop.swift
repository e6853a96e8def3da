import NighCore

/// A loop that a transport cannot run on, because the transport has to wait for descriptors. This reports that for the
/// transport, at each call that expects an answer. A transport that is shut down releases it, and nothing more is
/// reported.
///
/// Used on that loop only.
public final class UnsupportedLoop {
    private let loop: any EventLoop
    private let events: any TransportEvents
    /// The dials whose failure is not reported yet.
    private var refused: Set<DialID> = []

    /// Reports in a later turn that the transport is down. Create it in `Transport.start`, on the loop that was passed
    /// there.
    public init(_ loop: any EventLoop, _ events: any TransportEvents, for transport: any Transport) {
        self.loop = loop
        self.events = events
        loop.later { [weak self] in
            self?.events.transportChanged(
                .down(Self.error(.starting, transport.scheme)), by: transport)
        }
    }

    /// Reports in a later turn that the dial has failed.
    public func refuse(_ dial: DialID, by transport: any Transport) {
        refused.insert(dial)
        loop.later { [weak self] in
            guard let self, refused.remove(dial) != nil else { return }
            events.dialFailed(dial, error: Self.error(.connecting, transport.scheme), by: transport)
        }
    }

    /// Reports nothing about a refused dial, if nothing was reported yet. Call it in `Transport.cancelDial`.
    public func cancel(_ dial: DialID) { refused.remove(dial) }

    /// Returns the line for `Transport.diagnose`.
    public static func diagnosis(of scheme: String) -> Diagnosis {
        let error = error(.starting, scheme)
        return Diagnosis("event loop", .fail, "\(error.cause)", advice: error.advice)
    }

    private static func error(_ stage: NighError.Stage, _ scheme: String) -> NighError {
        NighError(
            stage, .unavailable("the session runs on a loop that cannot wait for sockets"), transport: scheme,
            advice: "give the session a UVEventLoop")
    }
}
