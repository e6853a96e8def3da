extension LinkMachine {
    /// A plaintext link that belongs to no session, for whoever tries links by themselves.
    package convenience init(side: LinkSide, hello: Hello, timings: LinkTimings, now: Moment) {
        self.init(side: side, settings: Settings(hello: hello, timings: timings, offer: .plaintext), now: now)
    }
}
