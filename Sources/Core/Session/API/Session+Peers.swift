extension Session {
    /// All peers that can be reached now, or are connected, by PeerID.
    public var peers: [Peer] { reference.reports.peers }

    /// The peers that are connected now, by PeerID.
    public var connectedPeers: [Peer] { reference.reports.connectedPeers.sorted { $0.id < $1.id } }

    /// All peers now, and again after each change; for user interfaces. A slow reader gets the newest list only.
    public var peerLists: some AsyncSequence<[Peer], Never> & Sendable { reference.reports.peerLists() }

    /// The peer with this ID as the session last saw it.
    public func peer(_ id: PeerID) -> Peer { reference.peer(id) }

    /// The events from now on. Each call gives a sequence of its own, which begins with the present state: problems,
    /// addresses, and the peers that are known already.
    public var events: EventSequence { reference.reports.events() }

    // MARK: Sending to several peers

    /// Sends bytes as they are to these peers. Waits while the send buffer of one is full. The error names the peers
    /// that the bytes were not sent to. If the task is cancelled, these are the peers that were not reached by then.
    public nonisolated(nonsending) func send(
        bytes: some Collection<UInt8>, to peers: [Peer]
    ) async throws(PartialSendError) {
        try await send(ByteSlice(bytes), to: peers)
    }

    private nonisolated(nonsending) func send(
        _ payload: ByteSlice, to peers: [Peer], passingOver isPassedOver: (NighError) -> Bool = { _ in false }
    ) async throws(PartialSendError) {
        guard !isClosing else {
            throw PartialSendError(NighError(.sending, .closed), peers: peers.map(\.id))
        }
        try await PartialSendError.gather(peers, id: \.id, passingOver: isPassedOver) {
            peer throws(NighError) in
            try await peer.send(payload)
        }
    }

    /// Sends bytes as they are to all connected peers, to arrive soon or not at all; see
    /// ``Peer/sendUnreliably(bytes:replacing:)``. A peer that disconnects in the meantime is passed over.
    public func broadcastUnreliably(
        bytes: some Collection<UInt8>, replacing key: UInt8? = nil
    ) throws(NighError) {
        guard !isClosing else { throw NighError(.sending, .closed) }
        let payload = ByteSlice(bytes)
        for peer in reference.reports.connectedPeers {
            do throws(NighError) {
                try peer.sendUnreliably(payload, replacing: key)
            } catch {
                if !error.isDisconnection { throw error }
            }
        }
    }

    /// Sends bytes as they are to all connected peers. Waits while the send buffer of one is full. It is no error if a
    /// peer disconnects in the meantime, or if there is none. If the task is cancelled, the error names the peers that
    /// were not reached by then; the others have the message.
    public nonisolated(nonsending) func broadcast(
        bytes: some Collection<UInt8>
    ) async throws(PartialSendError) {
        try await send(
            ByteSlice(bytes), to: reference.reports.connectedPeers, passingOver: \.isDisconnection)
    }
}
