extension LinkMachine {
    /// Creates a plaintext link without a session, for tests and tools.
    package convenience init(side: LinkSide, hello: Hello, timings: LinkTimings, now: Moment) {
        self.init(side: side, settings: Settings(hello: hello, timings: timings, offer: .plaintext), now: now)
    }
}
