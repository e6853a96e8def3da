extension Identity {
    /// Creates a key for one session that acts for this identity beside other sessions of the same service.
    ///
    /// Two sessions of one key and one service would be one peer to everybody else. A session with a delegate is a peer
    /// of its own, and proves to each peer that it acts for this identity: it is trusted as the identity is.
    public func makeDelegate() -> Identity { makeDelegate(withKeyOf: .ephemeral()) }

    /// Creates a delegate with the key of `key`, for tests that need the same one in every run.
    package func makeDelegate(withKeyOf key: Identity) -> Identity {
        guard principalKey == nil else { return self }
        var delegate = key
        delegate.principalKey = keyPair
        delegate.principal = peerID
        return delegate
    }

    /// Whether the key acts for another identity.
    package var isDelegate: Bool { principalKey != nil }

    /// The identity that the key acts for, which is the identity itself unless it is a delegate.
    package var principalIdentity: Identity { principalKey.map(Identity.init) ?? self }

    /// Signs that the session of this key acts for its principal. Nil if the key is no delegate.
    package func delegation(service: ServiceName, incarnation: UInt64) -> Delegation? {
        guard let principalKey else { return nil }
        let principal = Identity(principalKey)
        let statement = Delegation.statement(of: peerID, service: service, incarnation: incarnation)
        return Delegation(publicKey: principal.publicKey, signature: principal.signature(of: statement))
    }
}

extension Delegation {
    /// The bytes that the identity signs. They begin with a label of their own, so that no other signature of the
    /// identity can stand in for this one.
    fileprivate static func statement(of session: PeerID, service: ServiceName, incarnation: UInt64)
        -> [UInt8]
    {
        var fields = FieldWriter()
        fields.write(short: "nigh delegation 1")
        fields.write(raw: session.bytes)
        fields.write(short: service.description)
        fields.write(incarnation)
        return fields.bytes
    }
}

extension Hello {
    /// The identity that the sender acts for: its own PeerID without a delegation. Nil if the delegation is not
    /// genuine. It proves nothing unless the sender has proven its PeerID.
    package var provenIdentity: PeerID? {
        guard let delegation else { return peer }
        let statement = Delegation.statement(of: peer, service: service, incarnation: incarnation)
        guard Signature.isValid(delegation.signature, of: statement, by: delegation.publicKey) else {
            return nil
        }
        return PeerID(publicKey: delegation.publicKey)
    }
}
