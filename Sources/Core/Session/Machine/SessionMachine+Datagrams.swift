// Unreliable messages as datagrams. A path begins with the first such message of either side: the transport opens a
// port, and each side tells the other over the link where it takes packets. Until the path has been tried, messages
// travel within the link.

extension SessionMachine {
    /// Sends a message on the path of a link, or says that the link has to carry it. The first message opens a path.
    mutating func send(
        _ bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, onPathOf link: Link, now: Moment
    ) -> DatagramPath.Sending {
        guard let sending = link.datagrams?.send(bytes, order, now: now) else {
            askForDatagrams(on: link)
            return .notOpen
        }
        processPath(of: link)
        return sending
    }

    private mutating func askForDatagrams(on link: Link) {
        guard !link.hasAskedForDatagrams, link.purpose != .finished else { return }
        link.hasAskedForDatagrams = true
        output(.openDatagrams(link))
    }

    /// Begins a path with the datagram port that the transport has opened. Returns the offer that goes to the other
    /// side; nil if the link has no use for the port.
    mutating func datagramPortOpened(
        on link: Link, place: [UInt8], longestPacket: Int, now: Moment
    ) -> DatagramOffer? {
        guard link.purpose != .finished, link.datagrams == nil else { return nil }
        let offer = DatagramOffer(
            connection: generator.next(), longestPacket: min(longestPacket, Int(UInt16.max)), place: place)
        var path = DatagramPath(
            offer: offer, longestMessage: limits.unreliableMessage, generator: generator.fork(), now: now)
        path.tap = link.machine.tap?.packetTap()
        for ping in link.takePacketPings() { path.send(ping, now: now) }
        link.datagrams = consume path
        link.machine.send(offer)
        markDirty(link)
        watch(link)
        if let theirs = link.datagramOffer { output(.findDatagramPlace(link, theirs)) }
        return offer
    }

    /// The other side takes datagrams, too.
    mutating func datagramsOffered(_ offer: DatagramOffer, on link: Link) throws(WireError) {
        guard link.datagramOffer == nil else { throw .malformed("a second offer of packets") }
        link.datagramOffer = offer
        guard link.datagrams == nil else { return output(.findDatagramPlace(link, offer)) }
        askForDatagrams(on: link)
    }

    /// The port knows the place that the other side has offered: tries the path.
    mutating func datagramPlaceFound(
        _ offer: DatagramOffer, _ source: DatagramSource, on link: Link, now: Moment
    ) {
        guard let ours = link.datagrams?.offer, link.datagrams?.isAccepted == false,
            let ciphers = link.machine.datagramCiphers(ours: ours, theirs: offer)
        else { return }
        link.datagrams?.accept(
            offer, at: source, sealing: ciphers.sealing, opening: ciphers.opening, now: now)
        processPath(of: link)
    }

    /// Takes a packet. Returns the message that it completes, if it does.
    mutating func receive(
        _ packet: UnsafeMutableRawBufferPointer, from source: DatagramSource, on link: Link, now: Moment
    ) -> Delivery? {
        guard link.datagrams != nil else { return nil }
        let message = link.datagrams?.receive(packet, from: source, now: now)
        processPath(of: link)
        guard let message, let conversation = link.conversation, conversation.isActive else { return nil }
        conversation.statistics.unreliableReceived &+= 1
        return Delivery(message, in: conversation)
    }

    // MARK: Pings

    /// Pings the peer of a link with a datagram. A path that has not begun is begun, and the ping waits for it.
    mutating func send(_ ping: PacketPings.Request, onPathOf link: Link, now: Moment) {
        if let error = reasonAgainstPackets(on: link) { return answer(ping, .failure(error)) }
        guard link.datagrams != nil else {
            link.packetPings.append(ping)
            return askForDatagrams(on: link)
        }
        link.datagrams?.send(ping, now: now)
        processPath(of: link)
    }

    mutating func answer(_ ping: PacketPings.Request, _ outcome: Result<Moment.Span, NighError>) {
        output(.answerPing(CallToken(number: ping.call), outcome))
    }

    /// Returns why a link has no datagrams; nil if it may have them.
    private func reasonAgainstPackets(on link: Link) -> NighError? {
        if link.machine.hasDatagrams, !link.lacksPort { return nil }
        let isOurs = link.lacksPort || !link.machine.offersDatagrams
        let scheme = transports[link.transport].scheme
        return NighError(
            .pinging,
            isOurs
                ? .unavailable("there are no packets beside this link")
                : .unsupported("packets beside a link"),
            peer: link.peer?.label, transport: scheme,
            advice: isOurs
                ? "use a transport that has packets, such as tcp, and switch them on in the session's configuration"
                : nil)
    }

    /// The transport has no datagram port for this link after all.
    mutating func datagramPortMissing(on link: Link) {
        link.lacksPort = true
        guard let error = reasonAgainstPackets(on: link) else { return }
        for ping in link.takePacketPings() { answer(ping, .failure(error)) }
    }

    /// Reports the results of the pings on a path.
    private mutating func reportPings(on link: Link) {
        let isAccepted = link.datagrams?.isAccepted ?? false
        for result in link.datagrams?.takePingResults() ?? [] {
            let outcome = result.outcome.mapError { failure in
                switch failure {
                case .lost: NighError(.pinging, .timedOut, peer: link.peer?.label)
                case .blocked where !isAccepted:
                    NighError(.pinging, .unsupported("packets beside a link"), peer: link.peer?.label)
                case .blocked:
                    NighError(
                        .pinging, .unreachable, peer: link.peer?.label,
                        transport: transports[link.transport].scheme,
                        advice: "packets do not pass beside the link: does a firewall on the way block UDP?")
                }
            }
            output(.answerPing(CallToken(number: result.call), outcome))
        }
    }

    /// Performs the outputs of a link's path, after an input to it.
    mutating func processPath(of link: Link) {
        guard let hasNews = link.datagrams?.hasNews else { return }
        if hasNews {
            noteChangeOfPath(of: link)
            reportPings(on: link)
            carryStranded(on: link)
        }
        notePackets(of: link)
        // Whatever else the link waits for has not changed.
        if let deadline = link.datagrams?.deadline, deadline < link.wakesAt { watch(link) }
    }

    /// Has the link carry messages that waited for room on a path which is no longer open.
    private mutating func carryStranded(on link: Link) {
        guard let conversation = link.conversation, var messages = link.datagrams?.takeStranded() else {
            return
        }
        while let message = messages.popFirst() {
            message.bytes.withUnsafeBytes { bytes in
                _ = outbox.send(unreliable: bytes, message.order, to: conversation, room: { _ in 0 })
            }
        }
        markDirty(link)
    }

    /// Reports that messages travel on the path from now on, or no longer.
    private mutating func noteChangeOfPath(of link: Link) {
        guard link.datagrams?.takeChange() != nil, let peer = link.peer, peer.link === link else { return }
        reportChange(of: peer)
    }
}
