extension SessionDriver {
    /// Passes the events that a link has noted to the observers.
    @inline(never)
    func observe(_ link: Link) {
        guard let tap = link.machine.tap else { return }
        for event in tap.take() { notifyObservers(of: link, event) }
    }

    private func notifyObservers(of link: Link, _ event: LinkEvent) {
        let now = loop.now
        for observer in observers { observer.link(link.number, event, at: now) }
    }

    /// Notifies the observers that a link begins.
    func observeBeginning(of connection: PipeConnection, scheme: String) {
        guard !observers.isEmpty else { return }
        connection.link.machine.observe()
        let opening = LinkOpening(
            isDialled: connection.link.machine.side == .dialling, scheme: scheme,
            localAddress: connection.pipe.localAddress, remoteAddress: connection.pipe.remoteAddress)
        notifyObservers(of: connection.link, .opened(opening))
        observe(connection.link)
    }

    /// Notifies the observers that a link is over, after it was forgotten here. Without `cause`, the link's own cause
    /// is used.
    func observeEnd(of link: Link, cause: NighError.Cause? = nil) {
        guard link.machine.tap != nil else { return }
        observe(link)
        let end = link.machine.end
        var reportedCause = cause ?? end?.cause ?? .closed
        // A link that this side ends by its own choice always has the same cause; the code says more.
        if cause == nil, reportedCause == .left, let code = end?.code, code != .left, code != .sessionClosed {
            reportedCause = LinkClose(code).cause
        }
        let ending = LinkEnding(
            reason: "\(reportedCause)", code: end?.number, isByPeer: end?.isByPeer ?? false)
        notifyObservers(of: link, .ended(ending))
    }
}
