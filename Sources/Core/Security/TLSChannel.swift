import COpenSSL

/// TLS 1.3 for one link: libssl over memory, with a certificate on both sides, and the accepting side as the server.
///
/// The link machine owns it and calls it on the session's loop. After the first records it does not allocate; libssl
/// allocates and frees two small blocks for each record in each direction.
package final class TLSChannel: SecureChannel {
    private let context: TLSContext
    private let bio: TLSBIO
    private let ssl: OpaquePointer
    package private(set) var provenPeer: PeerID?
    private(set) var wasResumed = false

    private struct State {
        var isEstablished = false
        /// The error after which the channel cannot be used any more.
        var failure: NighError?
        /// Whether this side has ended its direction. In TLS, each direction ends by itself.
        var hasEnded = false
        var peerHasEnded = false
        var isActive = false
        var recordsSealed = 0
    }

    /// Each record uses it, so overlapping access is not checked at run time: it is accessed on the loop only, and no
    /// callback of libssl reaches it.
    @exclusivity(unchecked) private var state = State()

    package var isEstablished: Bool { state.isEstablished }

    /// Creates a channel that has not begun. Ignores a ticket from another peer than `expected`.
    init(_ context: TLSContext, side: LinkSide, expected: PeerID?, ticket: ResumptionTicket?) {
        self.context = context
        bio = TLSBIO(context, expected: expected)
        guard let ssl = bio.makeSSL() else { fatalError("out of memory") }
        self.ssl = ssl
        switch side {
        case .accepting:
            context.rotateTicketKeys()
            SSL_set_accept_state(ssl)
        case .dialling:
            SSL_set_connect_state(ssl)
            guard let ticket, ticket.peer == expected, let session = ticket.take() else { break }
            SSL_set_session(ssl, session)
            SSL_SESSION_free(session)
        }
    }

    /// Creates a channel without a link, for tests and tools.
    package convenience init(_ context: TLSContext, side: LinkSide) {
        self.init(context, side: side, expected: nil, ticket: nil)
    }

    deinit {
        becomeIdle()
        SSL_free(ssl)
        ERR_clear_error()
    }

    package func begin(wire: inout ByteQueue) throws(NighError) {
        becomeActive()
        defer { bio.takeOutput(into: &wire) }
        try continueHandshake()
    }

    package func receive(_ bytes: ByteSlice, plain: inout ByteQueue, wire: inout ByteQueue) throws(NighError)
    {
        if let failure = state.failure { throw failure }
        // Nothing counts after the other side has announced the end of its data (RFC 8446, 6.1).
        guard !state.peerHasEnded else { return }
        becomeActive()
        defer { bio.takeOutput(into: &wire) }
        try bio.provideInput(bytes) { () throws(NighError) in
            if !state.isEstablished { try continueHandshake() }
            if state.isEstablished { try decrypt(into: &plain) }
        }
    }

    private func continueHandshake() throws(NighError) {
        Self.clearErrors()
        let result = SSL_do_handshake(ssl)
        guard result != 1 else { return try finishHandshake() }
        guard SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else { throw failed(after: result) }
        guard bio.handshakeAllowance > 0 else {
            throw fail(.limit("bytes of a handshake", TLSContext.handshakeLimit))
        }
    }

    private func finishHandshake() throws(NighError) {
        bio.endHandshake()
        // A resumed handshake shows no certificate. libssl returns the one of the ticket's
        // handshake, which was verified then.
        guard let certificate = SSL_get0_peer_certificate(ssl), let key = X509_get0_pubkey(certificate),
            let peer = PeerID(key: key)
        else { throw fail(.insecure(.noCertificate)) }
        if let expected = bio.expected, expected != peer {
            throw fail(.wrongPeer(expected: expected, found: peer))
        }
        guard TLSBIO.hasOurProtocol(ssl) else { throw fail(.insecure(.noCommonProtocol)) }
        provenPeer = peer
        wasResumed = SSL_session_reused(ssl) == 1
        state.isEstablished = true
        // Otherwise libssl asks for the header of each record first, and then for its rest.
        SSL_set_read_ahead(ssl, 1)
    }

    private func decrypt(into plain: inout ByteQueue) throws(NighError) {
        Self.clearErrors()
        repeat {
            let chunk = context.withMemory { $0.plain.chunkWithRoom() }
            let start = chunk.filled
            var count = 0
            let result = SSL_read_ex(ssl, chunk.base + start, chunk.room, &count)
            guard result == 1 else {
                switch SSL_get_error(ssl, result) {
                case SSL_ERROR_WANT_READ: return
                case SSL_ERROR_ZERO_RETURN: return state.peerHasEnded = true
                default: throw failed(after: result)
                }
            }
            _ = chunk.claim(count)
            plain.append(chunk.slice(from: start))
        } while !bio.isInputTaken || SSL_has_pending(ssl) == 1
    }

    /// The size from which on sealing bytes in place, in a record that is not full, costs less
    /// than copying bytes together to fill it.
    private static let minimumInPlace = TLSContext.recordSize * 3 / 4

    package func seal(_ plain: inout ByteQueue, into wire: inout ByteQueue) throws(NighError) {
        if let failure = state.failure { throw failure }
        guard state.isEstablished, !state.hasEnded else { throw NighError(.sending, .closed) }
        becomeActive()
        Self.clearErrors()
        defer { bio.takeOutput(into: &wire) }
        while let first = plain.first {
            if first.count >= Self.minimumInPlace {
                // Seals the bytes in place; libssl makes several records at once.
                let rest = first.count % TLSContext.recordSize
                let count = rest >= Self.minimumInPlace ? first.count : first.count &- rest
                try first.withUnsafeBytes { bytes throws(NighError) in
                    try seal(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                }
                plain.drop(count)
            } else if plain.sliceCount == 1 {
                try first.withUnsafeBytes { bytes throws(NighError) in try seal(bytes) }
                plain.removeAll()
            } else {
                let record = context.withMemory { $0.emptyStaging() }
                while record.room > 0, let slice = plain.popFirst(atMost: record.room) {
                    slice.withUnsafeBytes { record.append($0) }
                }
                try seal(UnsafeRawBufferPointer(start: record.base, count: record.filled))
            }
        }
    }

    private func seal(_ bytes: UnsafeRawBufferPointer) throws(NighError) {
        state.recordsSealed &+= (bytes.count &+ TLSContext.recordSize &- 1) / TLSContext.recordSize
        if state.recordsSealed >= context.recordsPerKey {
            state.recordsSealed = 0
            SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
        }
        var count = 0
        let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
        guard result == 1, count == bytes.count else { throw failed(after: result) }
    }

    package func end(wire: inout ByteQueue) {
        guard state.isEstablished, state.failure == nil, !state.hasEnded else { return }
        state.hasEnded = true
        SSL_shutdown(ssl)
        ERR_clear_error()
        bio.takeOutput(into: &wire)
    }

    func keyingMaterial(label: String, context: [UInt8], count: Int) -> SecretBytes? {
        guard state.isEstablished, count > 0 else { return nil }
        let secret = SecretBytes(count: count)
        let done = secret.withBytes { bytes in
            SSL_export_keying_material(
                ssl, bytes.baseAddress, bytes.count, label, label.utf8.count, context, context.count, 1)
        }
        ERR_clear_error()
        return done == 1 ? secret : nil
    }

    var datagramProtection: DatagramProtection {
        switch SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl)) {
        case 0x1302: .aes256
        case 0x1303: .chaCha20
        default: .aes128
        }
    }

    package func sendTicket(wire: inout ByteQueue) {
        guard state.isEstablished, state.failure == nil, !state.hasEnded else { return }
        becomeActive()
        Self.clearErrors()
        defer { bio.takeOutput(into: &wire) }
        // Without a ticket the next handshake is a full one; nothing else changes.
        if SSL_new_session_ticket(ssl) != 1 || SSL_do_handshake(ssl) != 1 { ERR_clear_error() }
    }

    func takeTicket() -> ResumptionTicket? {
        guard let provenPeer, let session = bio.takeTicket() else { return nil }
        return ResumptionTicket(owning: session, peer: provenPeer)
    }

    // MARK: Memory

    package func releaseIdleMemory() {
        // libssl refuses while it holds a part of a record; the rest will follow.
        SSL_free_buffers(ssl)
        becomeIdle()
    }

    package var heldByteCount: Int {
        SSL_pending(ssl) > 0 || SSL_has_pending(ssl) == 1 ? TLSContext.recordSize : 0
    }

    @inline(__always)
    private func becomeActive() {
        guard !state.isActive else { return }
        state.isActive = true
        context.channelBecameActive(self)
    }

    private func becomeIdle() {
        guard state.isActive else { return }
        state.isActive = false
        context.channelBecameIdle(self)
    }

    // MARK: Errors

    /// Clears the thread's queue of errors. libssl judges its own calls by this queue, and other code may have added
    /// errors to it. Peeking first costs far less than clearing an empty queue.
    @inline(__always)
    private static func clearErrors() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    private func fail(_ cause: NighError.Cause) -> NighError {
        let advice: String? = if case .insecure(let fault) = cause { fault.advice } else { nil }
        let error = NighError(state.isEstablished ? .receiving : .securing, cause, advice: advice)
        state.failure = error
        return error
    }

    /// Returns the error that libssl means when it fails with `result`.
    private func failed(after result: Int32) -> NighError {
        defer { ERR_clear_error() }
        if let problem = bio.problem { return fail(problem) }
        if SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN {
            return fail(.insecure(SecurityFault(alert: 0)))
        }
        return fail(.insecure(SecurityFault(libssl: ERR_peek_last_error())))
    }
}
