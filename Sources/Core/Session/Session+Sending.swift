extension Session {
    // MARK: Never waiting

    /// Sends `bytes` to a connected peer, copying them once. Never waits: where `limits.sendBuffer` is used up it fails with
    /// `bufferFull`. Messages of one caller go in the order of the calls; on the loop they leave with everything else
    /// of this turn in one write.
    @inline(__always)
    public func trySend(
        _ bytes: UnsafeRawBufferPointer, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        switch reliability {
        case .reliable(let lane):
            if loop.isCurrent {
                if try machine.send(bytes, to: peer, on: lane, isNext: false) { driver.flushSoon() }
            } else {
                let port = try directory.port(of: peer)
                try port.stage(bytes, on: lane, isNext: false)
                attend(port)
            }
        case .unreliable: try sendUnreliable(bytes, to: peer)
        }
    }

    /// Sends `bytes` to a connected peer, copying them once; see the other `trySend`.
    public func trySend(
        _ bytes: [UInt8], to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(NighError) in try trySend(raw, to: peer, reliability) }
        }
        try result.get()
    }

    /// Sends a payload to a connected peer; one of 12 KiB and more is not copied but kept by reference until it has
    /// arrived, unless it is but a small part of what it would keep.
    public func trySend(
        _ payload: ByteSlice, to peer: PeerID, _ reliability: Reliability = .reliable
    ) throws(NighError) {
        switch reliability {
        case .reliable(let lane):
            if loop.isCurrent {
                if try machine.send(payload, to: peer, on: lane, isNext: false) { driver.flushSoon() }
            } else {
                let port = try directory.port(of: peer)
                try port.stage(payload, on: lane, isNext: false)
                attend(port)
            }
        case .unreliable:
            try payload.withUnsafeBytes { bytes throws(NighError) in try sendUnreliable(bytes, to: peer) }
        }
    }

    /// Sends a payload to all that are connected; see the next `trySend`.
    public func trySendToAll(
        _ payload: ByteSlice, _ reliability: Reliability = .reliable
    ) throws(PartialSendError) {
        try trySend(payload, to: connectedPeers, reliability)
    }

    /// Sends a payload to several peers. It goes to each or not at all; the error names those it did not go to.
    public func trySend(
        _ payload: ByteSlice, to peers: [PeerID], _ reliability: Reliability = .reliable
    ) throws(PartialSendError) {
        var failures: [PeerID: NighError] = [:]
        if case .reliable(let lane) = reliability, peers.count > 1, loop.isCurrent {
            if machine.send(payload, to: peers, on: lane, failures: &failures) { driver.flushSoon() }
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

    /// Sends a payload reliably to a connected peer, waiting while the lane's `limits.sendBuffer` is used up. Returns when the message
    /// is accepted, not when it has arrived. Tasks that wait are served in the order in which they came. A cancelled
    /// task has not sent.
    public func send(_ payload: ByteSlice, to peer: PeerID, on lane: Lane = .main) async throws(NighError) {
        let port = try directory.port(of: peer)
        var isNext = false
        while true {
            defer { if isNext { port.admitNextWaiter(on: lane) } }
            do throws(NighError) {
                guard !Task.isCancelled else { throw NighError(.sending, .cancelled, peer: peer.short) }
                try stage(payload, to: port, on: lane, isNext: isNext)
                return
            } catch {
                guard case .bufferFull = error.cause else { throw error }
            }
            if let reason = await room(at: port, on: lane) { throw reason }
            isNext = true
        }
    }

    /// Sends `bytes` reliably to a connected peer, waiting for room; see the other `send`.
    public func send(_ bytes: [UInt8], to peer: PeerID, on lane: Lane = .main) async throws(NighError) {
        try await send(ByteSlice(bytes), to: peer, on: lane)
    }

    /// Sends a payload reliably to all that are connected, waiting for room at each in turn.
    public func sendToAll(_ payload: ByteSlice, on lane: Lane = .main) async throws(PartialSendError) {
        try await send(payload, to: connectedPeers, on: lane)
    }

    /// Sends a payload reliably to several peers, waiting for room at each in turn. The error names those it did not go to.
    public func send(_ payload: ByteSlice, to peers: [PeerID], on lane: Lane = .main)
        async throws(PartialSendError)
    {
        var failures: [PeerID: NighError] = [:]
        for peer in peers {
            do throws(NighError) {
                try await send(payload, to: peer, on: lane)
            } catch {
                failures[peer] = error
            }
        }
        if !failures.isEmpty { throw PartialSendError(failures: failures) }
    }

    private func stage(_ payload: ByteSlice, to port: PeerPort, on lane: Lane, isNext: Bool) throws(NighError)
    {
        if loop.isCurrent {
            if try machine.send(payload, to: port.peer, on: lane, isNext: isNext) {
                driver.flushSoon()
            }
        } else {
            try port.stage(payload, on: lane, isNext: isNext)
            attend(port)
        }
    }

    /// Nil once there is room, or why there never will be.
    private func room(at port: PeerPort, on lane: Lane) async -> NighError? {
        let number = port.newWaiterNumber()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                port.waitForRoom(number: number, on: lane) { continuation.resume(returning: $0) }
                if Task.isCancelled { port.cancelWait(number: number) }
            }
        } onCancel: {
            port.cancelWait(number: number)
        }
    }

    // MARK: From other threads

    @inline(__always)
    private func attend(_ port: PeerPort) {
        if port.list() { attention.wants(port) }
    }

    private func sendUnreliable(_ bytes: UnsafeRawBufferPointer, to peer: PeerID) throws(NighError) {
        if loop.isCurrent { return try driver.send(unreliable: bytes, to: peer) }
        _ = try directory.port(of: peer)
        guard bytes.count <= configuration.limits.unreliableMessage else {
            throw NighError(
                .sending, .messageTooLarge(size: bytes.count, limit: configuration.limits.unreliableMessage),
                peer: peer.short, advice: "send it reliably, or less of it")
        }
        let copy = ByteSlice(copying: bytes)
        loop.execute { [driver] in
            // Whoever left meanwhile gets nothing, as with any unreliable message that comes too late.
            try? copy.withUnsafeBytes { bytes throws(NighError) in
                try driver.send(unreliable: bytes, to: peer)
            }
        }
    }
}
