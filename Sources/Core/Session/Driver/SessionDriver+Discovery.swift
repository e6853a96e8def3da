// Advertising, including whether the session accepts no more peers; and browsing.

extension SessionDriver {
    func startAdvertising() {
        guard hasStarted, !isClosed else { return }
        for transport in transports { transport.advertise(advertisement) }
    }

    func stopAdvertising() {
        guard hasStarted, !isClosed else { return }
        for transport in transports { transport.stopAdvertising() }
    }

    func startBrowsing() {
        guard hasStarted, !isClosed else { return }
        inTurn {
            for transport in transports { transport.browse(advertisement.service) }
        }
    }

    func stopBrowsing() {
        guard hasStarted, !isClosed else { return }
        inTurn {
            for (index, transport) in transports.enumerated() {
                transport.stopBrowsing()
                machine.addressesForgotten(transport: index)
                machine.routesLost(transport: index)
            }
        }
    }

    func update(_ advertisement: Advertisement) {
        self.advertisement = advertisement
        guard hasStarted, !isClosed else { return }
        for transport in transports { transport.updateAdvertisement(advertisement) }
    }

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
