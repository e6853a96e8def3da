// The ports for datagrams of the pipes of links.

extension SessionDriver {
    func openDatagrams(of link: Link) {
        guard let connection = connections[link.number], connection.endWhileHeld == nil,
            let port = connection.pipe.openDatagrams()
        else { return machine.datagramPortMissing(on: link) }
        let offer = machine.datagramPortOpened(
            on: link, place: port.place, longestPacket: port.longestPacket, now: loop.now)
        guard let offer else { return port.close() }
        connection.start(port, prefix: offer.connection)
    }

    func findPlace(of offer: DatagramOffer, for link: Link) {
        guard let source = connections[link.number]?.datagramPort?.source(of: offer.place) else { return }
        machine.datagramPlaceFound(offer, source, on: link, now: loop.now)
    }

    /// Sends the packets that wait, at the end of the input that made them: each is a call of its own anyway, so
    /// nothing is won by gathering them. One that cannot leave at once is dropped.
    @inline(__always)
    func sendPackets() {
        while let link = machine.nextLinkWithPackets() {
            guard let output = link.datagrams?.output, let connection = connections[link.number] else {
                continue
            }
            if link.machine.tap != nil { observe(link) }
            output.drain { packet, source in
                let outcome = connection.datagramPort?.send(packet, to: source) ?? .dropped
                link.datagrams?.noteUnsent(outcome)
            }
        }
    }

    /// Takes a packet, and delivers the message that it completes.
    func receive(
        _ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource, on link: Link, now: Moment
    ) {
        let delivery = machine.receive(packet, from: source, on: link, now: now)
        if link.machine.tap != nil { observe(link) }
        guard let delivery else { return }
        if machine.hasDirectives {
            carryOutDirectives()
            guard delivery.conversation.isActive else { return }
        }
        deliver(delivery, from: link, to: messageHandlerBox)
    }
}
