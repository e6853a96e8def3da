// How calls reach the session, from any thread.

/// Begins a call on the loop. The second argument takes its outcome.
typealias DriverCall<Value> =
    @Sendable (SessionDriver, @escaping @Sendable (Result<Value, NighError>) -> Void) -> Void

extension SessionReference {
    /// The driver, from the start of the session to its end. Loop only.
    var driver: SessionDriver? {
        unsafeDowncast(driverReference, to: SessionDriver.DriverReference.self).driver
    }

    /// Runs `work` on the loop, at once if the caller is there. Drops it if the session has not started or is closed.
    func onLoop(_ work: @escaping @Sendable (SessionDriver) -> Void) {
        if isOnLoop {
            if let driver { work(driver) }
        } else {
            loop.execute { [self] in if let driver { work(driver) } }
        }
    }

    /// Reports an event of a layer, or of code that reads messages for the program.
    package func report(_ event: SessionEvent) { onLoop { $0.report(event) } }

    /// Whether the session is closed or closing.
    package var isClosing: Bool { directory.isClosed }

    /// Runs `work` on the loop, and returns its result. Returns an error if the session has closed.
    package nonisolated(nonsending) func onLoop<Value: Sendable>(
        _ stage: NighError.Stage, _ work: @escaping @Sendable () throws(NighError) -> Value
    ) async -> Result<Value, NighError> {
        await PendingAnswer.wait(otherwise: .failure(NighError(stage, .closed))) { answer in
            loop.execute { answer.give(Result { () throws(NighError) in try work() }) }
        }
    }

    /// The peers that are connected now, in any order.
    package var connectedPeers: [Peer] { reports.connectedPeers }

    /// The bytes of the longest message to a connected peer.
    package func messageLimit(for peer: PeerID) throws(NighError) -> Int {
        try directory.port(of: peer).messageLimit
    }

    /// Opens a stream for a purpose. Loop only.
    package func openStream(
        named name: String, to peer: PeerID, for purpose: StreamPurpose
    ) throws(NighError) -> ByteStream {
        var result: Result<ByteStream, NighError> = .failure(NighError(.sending, .closed))
        driver?.openStream(named: name, to: peer, for: purpose) { result = $0 }
        return try result.get()
    }

    /// Waits for the outcome of the call that `begin` makes on the loop.
    ///
    /// - Parameters:
    ///   - stage: the stage of the error if the session is closed.
    ///   - cancel: has the call end. It runs on the loop when the task is cancelled, perhaps before `begin`.
    nonisolated(nonsending) func outcome<Value: Sendable>(
        _ stage: NighError.Stage, cancelledBy cancel: @escaping @Sendable (SessionDriver) -> Void,
        _ begin: @escaping DriverCall<Value>
    ) async throws(NighError) -> Value {
        let result = await withTaskCancellationHandler {
            await PendingAnswer<Result<Value, NighError>>.wait(
                otherwise: .failure(NighError(stage, .closed))
            ) { answer in
                onLoop { begin($0) { answer.give($0) } }
                if Task.isCancelled { onLoop(cancel) }
            }
        } onCancel: {
            onLoop(cancel)
        }
        return try result.get()
    }

    /// Waits for the outcome of a call of a layer. `begin` and `cancel` run on the loop, as above.
    package nonisolated(nonsending) func outcome<Value: Sendable>(
        _ stage: NighError.Stage, cancelledBy cancel: @escaping @Sendable () -> Void,
        _ begin: @escaping @Sendable (@escaping @Sendable (Result<Value, NighError>) -> Void) -> Void
    ) async throws(NighError) -> Value {
        try await outcome(stage, cancelledBy: { _ in cancel() }) { _, completion in begin(completion) }
    }

    // MARK: Sending

    /// Sends a payload to the layer for its kind at the other side, and waits for room.
    package nonisolated(nonsending) func send(
        _ payload: ByteSlice, of kind: MessageKind, to peer: PeerID
    ) async throws(NighError) {
        try await send(payload, of: kind, through: directory.port(of: peer))
    }

    /// Sends a payload of a kind, or of none, through the port of a conversation, and waits for room.
    nonisolated(nonsending) func send(
        _ payload: ByteSlice, of kind: MessageKind? = nil, through port: PeerPort, on lane: Lane = .main
    ) async throws(NighError) {
        var isNext = false
        while true {
            do throws(NighError) {
                defer { if isNext { port.admitNextWaiter(on: lane) } }
                guard !Task.isCancelled else { throw NighError(.sending, .cancelled, peer: port.label) }
                try stage(payload, of: kind, through: port, on: lane, isNext: isNext)
                return
            } catch {
                guard case .bufferFull = error.cause else { throw error }
            }
            if let reason = await room(at: port, on: lane) { throw reason }
            isNext = true
        }
    }

    private func stage(
        _ payload: ByteSlice, of kind: MessageKind?, through port: PeerPort, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        if isOnLoop, let driver {
            if try driver.machine.send(payload, of: kind, to: port.peer, on: lane, isNext: isNext) {
                driver.flushSoon()
            }
        } else {
            try port.stage(payload, of: kind, on: lane, isNext: isNext)
            notifyLoop(of: port)
        }
    }

    /// Sends an unreliable message through the port of a conversation.
    func sendUnreliable(
        _ bytes: UnsafeRawBufferPointer, _ reliability: Reliability, through port: PeerPort
    ) throws(NighError) {
        let peer = port.peer
        let order = try DatagramOrder(checking: reliability, peer: peer)
        if isOnLoop, let driver { return try driver.send(unreliable: bytes, order, to: peer) }
        guard bytes.count <= unreliableLimit else {
            throw NighError(
                .sending, .messageTooLarge(size: bytes.count, limit: unreliableLimit), peer: port.label,
                advice: "send it reliably, or send a shorter message")
        }
        let copy = ByteSlice(copying: bytes)
        onLoop { driver in
            // A peer that has left meanwhile gets nothing, as with any unreliable message that comes too late.
            try? copy.withUnsafeBytes { bytes throws(NighError) in
                try driver.send(unreliable: bytes, order, to: peer)
            }
        }
    }

    /// Waits for room on the lane. Returns nil once there is room, or the reason why there never will be.
    private nonisolated(nonsending) func room(at port: PeerPort, on lane: Lane) async -> NighError? {
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

    /// Sends contiguous bytes without waiting, if there is room. Returns whether it did.
    @_specialize(where Bytes == [UInt8])
    func sendIfThereIsRoom<Bytes: Collection<UInt8>>(
        _ bytes: Bytes, through port: PeerPort, on lane: Lane = .main
    ) throws(NighError) -> Bool {
        guard !Task.isCancelled else { return false }
        let result = bytes.withContiguousStorageIfAvailable { bytes in
            Result { () throws(NighError) in
                let bytes = UnsafeRawBufferPointer(bytes)
                if isOnLoop, let driver {
                    if try driver.machine.send(bytes, to: port.peer, on: lane, isNext: false) {
                        driver.flushSoon()
                    }
                } else {
                    try port.stage(bytes, on: lane, isNext: false)
                    notifyLoop(of: port)
                }
            }
        }
        switch result {
        case .success: return true
        case .failure(let error):
            guard case .bufferFull = error.cause else { throw error }
            return false
        case nil: return false
        }
    }
}
