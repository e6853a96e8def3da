extension Peer {
    /// Invites the peer and waits until it is connected. Returns at once if it already is. If the task is cancelled,
    /// the invitation is withdrawn.
    ///
    /// - Parameters:
    ///   - context: bytes that the peer gets with the invitation; at most `limits.invitationContext`.
    ///   - timeout: the time for the whole call, which includes the person's answer.
    public nonisolated(nonsending) func invite(
        context: [UInt8] = [], timeout: Duration = .seconds(30)
    ) async throws(NighError) {
        let (id, token) = (id, handle.session.newToken())
        _ = try await outcome(.inviting, cancelledBy: { $0.cancel(token) }) { driver, completion in
            driver.begin(.inviting, token, completion) { machine, now in
                machine.invite(id, context: context, timeout: timeout, token: token, now: now)
            }
        }
    }

    /// Ends the conversation after everything that was sent has arrived. Throws if something may not have arrived. If
    /// the task is cancelled, the call fails at once, and the conversation still ends in good order.
    public nonisolated(nonsending) func disconnect() async throws(NighError) {
        let (id, token) = (id, handle.session.newToken())
        _ = try await outcome(.conversing, cancelledBy: { $0.abandonCall(token, .conversing, id) }) {
            driver, completion in
            driver.begin(.conversing, token, completion) { machine, now in
                machine.leave(id, token: token, now: now)
            }
        }
    }

    /// Measures the round trip to a connected peer. The peer's session answers, not its program. If the task is
    /// cancelled, the call fails at once.
    public nonisolated(nonsending) func ping() async throws(NighError) -> Duration {
        let (id, token) = (id, handle.session.newToken())
        return try await outcome(.pinging, cancelledBy: { $0.abandonPing(token, id) }) { driver, completion in
            driver.ping(id, over: .link, payload: [], token: token, completion)
        }
    }

    /// Pairs with the peer: both people compare six digits, which arrive as an event. Returns when both have confirmed
    /// them with `confirmPairing`. If the task is cancelled, the pairing is withdrawn, also when its digits are shown.
    public nonisolated(nonsending) func pair() async throws(NighError) {
        let (id, token) = (id, handle.session.newToken())
        _ = try await outcome(.pairing, cancelledBy: { $0.cancel(token) }) { driver, completion in
            driver.begin(.pairing, token, completion) { machine, now in
                machine.pair(id, token: token, now: now)
            }
        }
    }

    /// Reports whether the other screen shows the same six digits, after the person has compared them.
    ///
    /// False means that it shows other digits: somebody may be in between, and nobody is paired. False also withdraws a
    /// pairing that shows no digits yet. Does nothing if there is no pairing with the peer any more.
    public func confirmPairing(digitsAgree: Bool) {
        let id = id
        handle.session.onLoop { driver in
            driver.inTurn {
                driver.machine.confirmPairing(with: id, digitsAgree: digitsAgree, now: driver.loop.now)
            }
        }
    }

    /// Removes the pairing with the peer's identity from the trust store. The peer stays known, but is not trusted more
    /// than any other. A session with `security: .paired` ends its conversations with all peers of that identity.
    public func unpair() {
        let id = id
        handle.session.onLoop { driver in
            driver.inTurn { driver.machine.unpair(id, now: driver.loop.now) }
        }
    }

    // MARK: Sending

    /// Sends bytes as they are. Waits while the peer's send buffer is full. Returns when the session has accepted the
    /// message, which is before it arrives. If the task is cancelled, the call fails and nothing was sent.
    ///
    /// - Parameter lane: `.bulk` for large messages, which those of the main lane overtake.
    public nonisolated(nonsending) func send(
        bytes: some Collection<UInt8>, on lane: Lane = .main
    ) async throws(NighError) {
        do throws(NighError) {
            let port = try handle.port()
            if try handle.session.sendIfThereIsRoom(bytes, through: port, on: lane) { return }
            try await handle.session.send(ByteSlice(bytes), through: port, on: lane)
        } catch {
            throw named(error)
        }
    }

    /// Waits until the peer's session has all messages that this one has accepted so far. Fails if the conversation
    /// ends before. If the task is cancelled, the call fails at once, and the messages still travel.
    ///
    /// The peer's program may not have read them; for that, let it answer a question.
    public nonisolated(nonsending) func flush() async throws(NighError) {
        let (id, token) = (id, handle.session.newToken())
        _ = try await outcome(.sending, cancelledBy: { $0.abandonCall(token, .sending, id) }) {
            driver, completion in
            driver.begin(.sending, token, completion) { machine, now in
                machine.flush(id, token: token, now: now)
            }
        }
    }

    /// Sends a payload, which is copied nowhere, as `send(bytes:)` does.
    nonisolated(nonsending) func send(_ payload: ByteSlice) async throws(NighError) {
        do throws(NighError) {
            try await handle.session.send(payload, through: handle.port())
        } catch {
            throw named(error)
        }
    }

    /// Sends bytes as they are, to arrive soon or not at all: they never wait behind other messages and are never
    /// repeated. For values that only count until there is a newer one, such as positions.
    ///
    /// - Parameter key: a number from 0 to 253, if the program sends several such values, for instance one for each
    ///   player. A message then replaces an earlier one with its key that has not left yet, and no message with another
    ///   key.
    public func sendUnreliably(bytes: some Collection<UInt8>, replacing key: UInt8? = nil) throws(NighError) {
        try sendUnreliably(ByteSlice(bytes), replacing: key)
    }

    func sendUnreliably(_ payload: ByteSlice, replacing key: UInt8?) throws(NighError) {
        do throws(NighError) {
            let port = try handle.port()
            try payload.withUnsafeBytes { bytes throws(NighError) in
                try handle.session.sendUnreliable(
                    bytes, key.map { .newest(key: $0) } ?? .unreliable, through: port)
            }
        } catch {
            throw named(error)
        }
    }

    /// Opens a stream of bytes to the peer, whose program gets it from its session. Fails if the peer is not connected,
    /// accepts no more streams from this session, or has none because it is of an earlier version. The call waits for
    /// nobody, so cancelling its task changes nothing.
    ///
    /// - Parameter name: the name that the peer's program sees: at most 255 bytes without control characters. Several
    ///   streams may have the same name.
    public nonisolated(nonsending) func openStream(named name: String) async throws(NighError) -> ByteStream {
        try await openStream(named: name, for: .program)
    }

    /// Opens a stream for a purpose. Fails also if the peer accepts no streams for it.
    package nonisolated(nonsending) func openStream(
        named name: String, for purpose: StreamPurpose
    ) async throws(NighError) -> ByteStream {
        let id = id
        return try await outcome(.sending, cancelledBy: { _ in }) { driver, completion in
            driver.openStream(named: name, to: id, for: purpose, completion)
        }
    }

    /// Returns 32 bytes that only the two ends of the present link can compute: the TLS exporter (RFC 8446, 7.5) with
    /// this label and no context. Nil without a link, and in plaintext. The call waits for nobody, so cancelling its
    /// task changes nothing.
    package nonisolated(nonsending) func keyingMaterial(label: String) async throws(NighError) -> SecretBytes?
    {
        let id = id
        return try await outcome(.conversing, cancelledBy: { _ in }) { driver, completion in
            completion(.success(driver.machine.peers[id]?.link?.machine.keyingMaterial(label: label)))
        }
    }

    /// How the session that knows the peer is reached.
    package var session: SessionReference { handle.session }

    /// Whether the session that knows the peer is closed or closing.
    package var isOfClosedSession: Bool { handle.session.directory.isClosed }

    // MARK: Errors

    /// Waits for the outcome of a call. Its error names the peer.
    nonisolated(nonsending) func outcome<Value: Sendable>(
        _ stage: NighError.Stage, cancelledBy cancel: @escaping @Sendable (SessionDriver) -> Void,
        _ begin: @escaping DriverCall<Value>
    ) async throws(NighError) -> Value {
        do throws(NighError) {
            return try await handle.session.outcome(stage, cancelledBy: cancel, begin)
        } catch {
            throw named(error)
        }
    }

    /// The error with the peer's name, also where the session knows only the peer's ID.
    package func named(_ error: NighError) -> NighError {
        guard error.peer == nil || error.peer == id.short else { return error }
        var error = error
        error.peer = label
        return error
    }
}
