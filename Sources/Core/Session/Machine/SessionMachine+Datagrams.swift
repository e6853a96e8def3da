// Unreliable messages as datagrams. A path begins with the first such message of either side: the transport opens a
// port, and each side tells the other over the link where it takes packets. Until the path has been tried, messages
// travel within the link.

extension SessionMachine {
    /// Sends a message on the path of a link, or says that the link has to carry it. The first message opens a path.
    func send(
        _ bytes: UnsafeRawBufferPointer, _ order: DatagramOrder, onPathOf link: Link, now: Moment
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
        guard !link.hasAskedForDatagrams, link.purpose != .finished else { return }
        link.hasAskedForDatagrams = true
        output(.openDatagrams(link))
    }

    /// Begins a path with the datagram port that the transport has opened. Returns the offer that goes to the other
    /// side; nil if the link has no use for the port.
    func datagramPortOpened(
        on link: Link, place: [UInt8], longestPacket: Int, now: Moment
    ) -> DatagramOffer? {
        guard link.purpose != .finished, link.datagrams == nil else { return nil }
        let offer = DatagramOffer(
            connection: generator.next(), longestPacket: min(longestPacket, Int(UInt16.max)), place: place)
        let path = DatagramPath(
            offer: offer, longestMessage: limits.unreliableMessage, generator: generator.fork(), now: now)
        path.tap = link.machine.tap?.packetTap()
        link.datagrams = path
        for ping in link.takePacketPings() { path.send(ping, now: now) }
        link.machine.send(offer)
        markDirty(link)
        watch(link)
        if let theirs = link.datagramOffer { output(.findDatagramPlace(link, theirs)) }
        return offer
    }

    /// The other side takes datagrams, too.
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

    // MARK: Pings

    /// Pings the peer of a link with a datagram. A path that has not begun is begun, and the ping waits for it.
    func send(_ ping: PacketPings.Request, onPathOf link: Link, now: Moment) {
        if let error = reasonAgainstPackets(on: link) { return answer(ping, .failure(error)) }
        guard let path = link.datagrams else {
            link.packetPings.append(ping)
            return askForDatagrams(on: link)
        }
        path.send(ping, now: now)
        processPath(of: link)
    }

    func answer(_ ping: PacketPings.Request, _ outcome: Result<Moment.Span, NighError>) {
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
    func datagramPortMissing(on link: Link) {
        link.lacksPort = true
        guard let error = reasonAgainstPackets(on: link) else { return }
        for ping in link.takePacketPings() { answer(ping, .failure(error)) }
    }

    /// Reports the results of the pings on a path.
    private func reportPings(of path: DatagramPath, on link: Link) {
        for result in path.takePingResults() {
            let outcome = result.outcome.mapError { failure in
                switch failure {
                case .lost: NighError(.pinging, .timedOut, peer: link.peer?.label)
                case .blocked where !path.isAccepted:
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
    func processPath(of link: Link) {
        guard let path = link.datagrams else { return }
        if path.hasNews {
            noteChange(of: path, on: link)
            reportPings(of: path, on: link)
            carryStranded(of: path, on: link)
        }
        notePackets(of: link, path)
        // Whatever else the link waits for has not changed.
        if path.deadline < link.wakesAt { watch(link) }
    }

    /// Has the link carry messages that waited for room on a path which is no longer open.
    private func carryStranded(of path: DatagramPath, on link: Link) {
        guard let conversation = link.conversation else { return }
        var messages = path.takeStranded()
        while let message = messages.popFirst() {
            message.bytes.withUnsafeBytes { bytes in
                _ = outbox.send(unreliable: bytes, message.order, to: conversation, room: { _ in 0 })
            }
        }
        markDirty(link)
    }

    /// Reports that messages travel on the path from now on, or no longer.
    private func noteChange(of path: DatagramPath, on link: Link) {
        guard path.takeChange() != nil, let peer = link.peer, peer.link === link else { return }
        reportChange(of: peer)
    }
}
