import NighCore

extension UVEventLoop {
    /// Why a transport that waits for descriptors cannot work at that stage: its session was given another loop.
    package static func missing(_ stage: NighError.Stage, for scheme: String) -> NighError {
        NighError(
            stage, .unavailable("the session runs on a loop that knows no sockets"), transport: scheme,
            advice: "give the session a UVEventLoop")
    }
}
