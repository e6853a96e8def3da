extension LinkMachine {
    /// Creates a link without a session, for tests and tools: in plaintext, or under TLS with `tls`. An accepted link
    /// with an `expected` peer is one of a guest.
    package init(
        side: LinkSide, hello: Hello, timings: LinkTimings, tls: TLSContext? = nil, expected: PeerID? = nil,
        now: Moment
    ) {
        self.init(
            side: side,
            settings: Settings(hello: hello, timings: timings, offer: tls.map { .tls($0) } ?? .plaintext),
            expected: expected, now: now)
    }
}
