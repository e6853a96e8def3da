extension LinkMachine {
    /// Creates a plaintext link without a session, for tests and tools. An accepted link with an `expected` peer is one
    /// of a guest.
    package convenience init(
        side: LinkSide, hello: Hello, timings: LinkTimings, expected: PeerID? = nil, now: Moment
    ) {
        self.init(
            side: side, settings: Settings(hello: hello, timings: timings, offer: .plaintext),
            expected: expected, now: now)
    }
}
