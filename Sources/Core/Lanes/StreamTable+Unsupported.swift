extension StreamTable {
    /// Returns the error of a stream that a peer does not accept, because it has no streams or none for this purpose.
    static func unsupported(_ purpose: StreamPurpose, by peer: String) -> NighError {
        switch purpose {
        case .program:
            NighError(
                .sending, .unsupported("streams"), peer: peer,
                advice: "update the peer's program, and check that neither side has limits.streams = 0")
        case .files, .comparedFiles:
            NighError(
                .sending, .unsupported("files"), peer: peer, advice: "run a program there that accepts files")
        case .relay:
            NighError(
                .sending, .unsupported("relays"), peer: peer,
                advice: "update the peer's program, and allow it to carry pipes for others")
        case .channel:
            NighError(
                .sending, .unsupported("channels"), peer: peer,
                advice: "update the peer's program, and make its session by its service")
        case .channelStream:
            NighError(
                .sending, .unsupported("streams of channels"), peer: peer,
                advice: "update the peer's program, and make its session by its service")
        case .calls:
            NighError(
                .asking, .unsupported("questions"), peer: peer,
                advice: "update the peer's program, and make its session by its service")
        case .actors:
            NighError(
                .calling, .unsupported("actors"), peer: peer,
                advice: "update the peer's program, and make its session by its service")
        case .forward:
            NighError(
                .connecting, .unsupported("forwarded connections"), peer: peer,
                advice: "run `nigh expose` there, which lets this device connect to some of its ports")
        }
    }
}
