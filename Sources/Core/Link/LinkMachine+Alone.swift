extension LinkMachine {
    /// A plaintext link that belongs to no session, for whoever tries links by themselves.
    package convenience init(
        side: LinkSide, configuration: SessionConfiguration, identity: Identity, incarnation: UInt64,
        now: Moment
    ) {
        let limits = configuration.limits
        let hello = Hello(
            peer: identity.peerID, incarnation: incarnation, service: configuration.service,
            name: configuration.name, maximumFrame: limits.frame, maximumMessage: limits.message)
        self.init(
            side: side,
            settings: Settings(
                hello: hello, limits: limits, timings: configuration.timings, offer: .plaintext), now: now)
    }
}
