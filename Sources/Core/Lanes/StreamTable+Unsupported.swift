extension StreamTable {
    /// Returns the error of a stream that a peer does not accept, because it has no streams or none for this purpose.
    static func unsupported(_ purpose: StreamPurpose, by peer: String) -> NighError {
        let throughService = "update the peer's program, and make its session by its service"
        let (stage, feature, advice): (NighError.Stage, String, String) =
            switch purpose {
            case .program:
                (
                    .sending, "streams",
                    "update the peer's program, and check that neither side has limits.streams = 0"
                )
            case .files, .comparedFiles: (.sending, "files", "run a program there that accepts files")
            case .relay:
                (.sending, "relays", "update the peer's program, and allow it to carry pipes for others")
            case .channel: (.sending, "channels", throughService)
            case .channelStream: (.sending, "streams of channels", throughService)
            case .calls: (.asking, "questions", throughService)
            case .actors: (.calling, "actors", throughService)
            case .forward:
                (
                    .connecting, "forwarded connections",
                    "run `nigh expose` there, which lets this device connect to some of its ports"
                )
            }
        return NighError(stage, .unsupported(feature), peer: peer, advice: advice)
    }
}
