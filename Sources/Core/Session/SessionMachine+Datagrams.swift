// Unreliable messages beside a link. A path begins with the first such message of either side: the transport opens a port, and each
// side tells the other over the link where it takes packets. Until the path has been tried, messages travel within the link.

extension SessionMachine {
    /// Sends a message on the path of a link, or says that the link has to carry it. The first message has a path opened.
    func send(
        _ bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, besides link: Link, now: Moment
    ) -> DatagramPath.Sending {
        guard let path = link.datagrams else {
            askForDatagrams(on: link)
            return .notOpen
        }
        let sending = path.send(bytes, order, now: now)
        processPath(of: link)
        return sending
    }

    private func askForDatagrams(on link: Link) {
        guard !link.hasAskedForDatagrams, link.purpose == .carrying else { return }
        link.hasAskedForDatagrams = true
        output(.openDatagrams(link))
    }

    /// The transport has opened a port beside the pipe of a link: tells the other side.
    func datagramPortOpened(on link: Link, place: [UInt8], longestPacket: Int, now: Moment) {
        guard link.purpose != .finished, link.datagrams == nil else { return }
        let offer = DatagramOffer(
            connection: generator.next(), longestPacket: min(longestPacket, Int(UInt16.max)), place: place)
        let path = DatagramPath(
            offer: offer, longestMessage: limits.unreliableMessage, generator: generator.fork(), now: now)
        path.tap = link.machine.tap?.packetTap()
        link.datagrams = path
        link.machine.send(offer)
        markDirty(link)
        if let theirs = link.datagramOffer { output(.findDatagramPlace(link, theirs)) }
    }

    /// The other side takes packets beside a link, too.
    func datagramsOffered(_ offer: DatagramOffer, on link: Link) throws(WireError) {
        guard link.datagramOffer == nil else { throw .malformed("a second offer of packets") }
        link.datagramOffer = offer
        guard link.datagrams == nil else { return output(.findDatagramPlace(link, offer)) }
        askForDatagrams(on: link)
    }

    /// The port knows the place that the other side has offered: tries the path.
    func datagramPlaceFound(_ offer: DatagramOffer, _ source: DatagramSource, on link: Link, now: Moment) {
        guard let path = link.datagrams, !path.isAccepted,
            let ciphers = link.machine.datagramCiphers(ours: path.offer, theirs: offer)
        else { return }
        path.accept(offer, at: source, sealing: ciphers.sealing, opening: ciphers.opening, now: now)
        processPath(of: link)
    }

    /// Takes a packet. Returns the message that it completes, if it does.
    func receive(
        _ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource, on link: Link, now: Moment
    ) -> Delivery? {
        guard let path = link.datagrams else { return nil }
        let message = path.receive(packet, from: source, now: now)
        processPath(of: link)
        guard let message, let conversation = link.conversation, conversation.isActive else { return nil }
        conversation.statistics.unreliableReceived &+= 1
        return Delivery(message, in: conversation)
    }

    /// Does what follows from an input to the path of a link.
    private func processPath(of link: Link) {
        guard let path = link.datagrams else { return }
        noteChange(of: path, on: link)
        if !path.output.isEmpty { markDirty(link) }
        watch(link)
    }

    /// Reports that messages travel on the path from now on, or no longer.
    func noteChange(of path: DatagramPath, on link: Link) {
        guard path.takeChange() != nil, let peer = link.peer, peer.link === link else { return }
        output(.report(.peerChanged(snapshot(of: peer))))
    }
}
