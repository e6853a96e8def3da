// Guests: people with a browser. This session invites them by an address to open.

extension Session {
    /// Invites a guest: makes an address to open in a browser, which works once. Show it as a QR code, and make another
    /// one when a guest has used it. Waits until the session listens for guests, for some seconds at most. Fails if no
    /// transport of the session has guests, or if that one does not listen.
    ///
    /// A guest then invites this session as any peer does; its `Peer.trust` is ``PeerTrust/guest``.
    public nonisolated(nonsending) func inviteGuest() async throws(NighError) -> GuestInvitation {
        let invitation = await onGuestTransport(otherwise: nil) { $0.makeInvitation($1) }
        guard let invitation else {
            throw NighError(
                .inviting, .unavailable("no transport that listens here has guests"),
                advice: "add web to the transports; `nigh doctor` says why it does not listen")
        }
        return invitation
    }

    /// The guests that were let in and may come back, those that are here and those that are not.
    public var guests: [Guest] {
        get async { await onGuestTransport(otherwise: []) { $1($0.guests) } }
    }

    /// Ends the conversation with a guest, and lets it in no more. Does nothing if it is not known.
    public func revokeGuest(_ id: PeerID) {
        onLoop { driver in driver.revokeGuest(id) }
    }

    /// Has `handler` called on the loop when a guest has come in with an invitation. It replaces the last handler.
    package func onGuestInvitationUsed(_ handler: @escaping @Sendable () -> Void) {
        onLoop { driver in driver.guestTransport?.onInvitationUsed = handler }
    }

    /// Whether all peers that come over this transport are guests. Nobody else can use its addresses.
    package func hasGuests(over scheme: String) -> Bool {
        driver.transports.contains {
            $0.scheme == scheme && CheckedTransport.transport(inside: $0) is any GuestTransport
        }
    }

    /// Calls the transport for guests, on the loop, and waits for the value that it passes on.
    private nonisolated(nonsending) func onGuestTransport<Value: Sendable>(
        otherwise: Value,
        _ call: @escaping @Sendable (any GuestTransport, @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        await PendingAnswer.wait(otherwise: otherwise) { answer in
            onLoop { driver in
                guard let transport = driver.guestTransport else { return answer.give(otherwise) }
                call(transport) { answer.give($0) }
            }
        }
    }
}

extension SessionDriver {
    /// Ends the conversation first: otherwise it would wait for a guest that cannot come back.
    fileprivate func revokeGuest(_ id: PeerID) {
        guard let guestTransport else { return }
        inTurn { machine.sendGuestAway(id, now: loop.now) }
        guestTransport.revoke(id)
    }

    /// The transport that has guests, if there is one and the session is not closed.
    fileprivate var guestTransport: (any GuestTransport)? {
        guard !isClosed else { return nil }
        return transports.lazy.compactMap { CheckedTransport.transport(inside: $0) as? any GuestTransport }
            .first
    }
}
