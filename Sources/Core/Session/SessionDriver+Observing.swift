extension SessionDriver {
    /// Tells the observer what a link has noted for it.
    @inline(never)
    func observe(_ link: Link) {
        guard let observer, let tap = link.machine.tap else { return }
        let now = loop.now
        for event in tap.take() { observer.link(link.number, event, at: now) }
    }

    /// Tells the observer that a link begins.
    func observeBeginning(of connection: PipeConnection, scheme: String) {
        guard let observer else { return }
        connection.link.machine.observe()
        let opening = LinkOpening(
            isDialled: connection.link.machine.side == .dialling, scheme: scheme,
            localAddress: connection.pipe.localAddress, remoteAddress: connection.pipe.remoteAddress)
        observer.link(connection.link.number, .opened(opening), at: loop.now)
        observe(connection.link)
    }

    /// Tells the observer that a link is over, which was forgotten here before; the cause is the link's own where none is given.
    func observeEnd(of link: Link, cause: NighError.Cause? = nil) {
        guard let observer, link.machine.tap != nil else { return }
        observe(link)
        let end = link.machine.end
        var told = cause ?? end?.cause ?? .closed
        // A link that this side ends as it likes always has the same cause; the code says more.
        if cause == nil, told == .left, let code = end?.code, code != .left, code != .sessionClosed {
            told = LinkClose(code).cause
        }
        let ending = LinkEnding(
            words: "\(told)", code: end?.number, isByPeer: end?.saidByPeer ?? false)
        observer.link(link.number, .ended(ending), at: loop.now)
    }
}
