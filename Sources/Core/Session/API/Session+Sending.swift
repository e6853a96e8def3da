// The calls behind `LowLevelSession`, which documents them, for it and for layers.

extension Session {
    // MARK: Without waiting

    @inline(__always)
    package func trySend(
        _ bytes: UnsafeRawBufferPointer, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        switch reliability {
        case .reliable(let lane):
            guard isOnLoop else { return try stage(bytes, to: peer, on: lane) }
            if try driver.machine.send(bytes, to: peer, on: lane, isNext: false) { driver.flushSoon() }
        case .unreliable, .unordered, .newest: try sendUnreliable(bytes, to: peer, reliability)
        }
    }

    package func trySend(
        _ bytes: [UInt8], to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(NighError) in try trySend(raw, to: peer, reliability) }
        }
        try result.get()
    }

    package func trySend(
        _ payload: ByteSlice, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        switch reliability {
        case .reliable(let lane): try trySend(payload, of: nil, to: peer, on: lane)
        case .unreliable, .unordered, .newest:
            try payload.withUnsafeBytes { bytes throws(NighError) in
                try sendUnreliable(bytes, to: peer, reliability)
            }
        }
    }

    /// Sends a payload to the layer for its kind at the other side, or to the program if it has no kind.
    package func trySend(
        _ payload: ByteSlice, of kind: MessageKind?, to peer: PeerID, on lane: Lane = .main
    ) throws(NighError) {
        if isOnLoop {
            if try driver.machine.send(payload, of: kind, to: peer, on: lane, isNext: false) {
                driver.flushSoon()
            }
        } else {
            let port = try directory.port(of: peer)
            try port.stage(payload, of: kind, on: lane, isNext: false)
            reference.notifyLoop(of: port)
        }
    }

    package func trySend(
        _ payload: ByteSlice, to peers: [PeerID], _ reliability: Reliability = .reliable
    ) throws(PartialSendError) {
        try checkOpen(for: peers)
        var failures: [PeerID: NighError] = [:]
        if case .reliable(let lane) = reliability, peers.count > 1, isOnLoop {
            if driver.machine.send(payload, to: peers, on: lane, failures: &failures) { driver.flushSoon() }
            if !failures.isEmpty { throw PartialSendError(failures: failures) }
            return
        }
        for peer in peers {
            do throws(NighError) {
                try trySend(payload, to: peer, reliability)
            } catch {
                failures[peer] = error
            }
        }
        if !failures.isEmpty { throw PartialSendError(failures: failures) }
    }

    // MARK: Waiting for room

    package nonisolated(nonsending) func send(
        _ payload: ByteSlice, to peer: PeerID, on lane: Lane = .main
    ) async throws(NighError) {
        try await send(payload, of: nil, to: peer, on: lane)
    }

    /// Sends a payload to the layer for its kind at the other side, or to the program if it has no kind. Waits like the
    /// first `send`.
    package nonisolated(nonsending) func send(
        _ payload: ByteSlice, of kind: MessageKind?, to peer: PeerID, on lane: Lane = .main
    ) async throws(NighError) {
        try await reference.send(payload, of: kind, through: directory.port(of: peer), on: lane)
    }

    package nonisolated(nonsending) func send(
        _ bytes: some Collection<UInt8>, to peer: PeerID, on lane: Lane = .main
    ) async throws(NighError) {
        let port = try directory.port(of: peer)
        if try reference.sendIfThereIsRoom(bytes, through: port, on: lane) { return }
        try await reference.send(ByteSlice(bytes), through: port, on: lane)
    }

    private func checkOpen(for peers: [PeerID]) throws(PartialSendError) {
        do throws(NighError) {
            try directory.checkOpen()
        } catch {
            throw PartialSendError(error, peers: peers)
        }
    }

    // MARK: Messages of layers

    /// Sends a message of a kind to a peer, if there is room for it now.
    package func sendIfPossible(
        _ payload: ByteSlice, of kind: MessageKind, to peer: PeerID
    ) -> KindMessageSending {
        do throws(NighError) {
            try trySend(payload, of: kind, to: peer)
            return .sent
        } catch {
            if case .bufferFull = error.cause { return .full }
            return .unsupported
        }
    }

    /// Creates another sequence besides `messages`, for messages of kinds that a layer keeps there.
    package func makeMessages() -> MessageSequence { MessageSequence(inbox: driver.makeInbox()) }

    // MARK: From other threads

    /// Stages `bytes` for the loop. Not inlined, so that sending from the loop needs fewer registers.
    @inline(never)
    private func stage(_ bytes: UnsafeRawBufferPointer, to peer: PeerID, on lane: Lane) throws(NighError) {
        let port = try directory.port(of: peer)
        try port.stage(bytes, on: lane, isNext: false)
        reference.notifyLoop(of: port)
    }

    private func sendUnreliable(
        _ bytes: UnsafeRawBufferPointer, to peer: PeerID, _ reliability: Reliability
    ) throws(NighError) {
        guard isOnLoop else {
            return try reference.sendUnreliable(bytes, reliability, through: directory.port(of: peer))
        }
        try driver.send(unreliable: bytes, DatagramOrder(checking: reliability, peer: peer), to: peer)
    }
}

extension DatagramOrder {
    /// The order of unreliable messages to a peer. Fails if the key cannot be sent.
    init(checking reliability: Reliability, peer: PeerID) throws(NighError) {
        switch reliability {
        case .unordered: self = .unordered
        case .newest(let key) where key > Self.highestKey:
            throw NighError(
                .sending, .invalid("key of a message"), peer: peer.short, advice: "use a key from 0 to 253")
        case .newest(let key): self = .newest(key: key)
        case .unreliable, .reliable: self = .sequenced
        }
    }
}
