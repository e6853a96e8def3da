// Whether the session accepts no more peers, as browsers see it before they ask.

extension SessionDriver {
    /// The least time between two changes. A peer that comes and goes at the limit must not make this session fill the
    /// network with announcements.
    private static let fullnessPause = Moment.Span.seconds(1)

    /// Advertises whether the session is full, if that has changed, at once or as soon as the pause after the last
    /// change is over.
    func advertiseFullness() {
        guard !isClosed, !machine.isClosing, fullnessTimer == nil, machine.isFull != advertisement.isFull
        else { return }
        let now = loop.now
        guard nextFullnessChange <= now else {
            fullnessTimer = loop.schedule(at: nextFullnessChange) { [driverReference] in
                guard let driver = driverReference.driver else { return }
                driver.fullnessTimer = nil
                driver.advertiseFullness()
            }
            return
        }
        nextFullnessChange = now + Self.fullnessPause
        var changed = advertisement
        changed.isFull = machine.isFull
        update(changed)
    }
}
