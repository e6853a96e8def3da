import COpenSSL
import Glibc

/// The state that all TLS channels of one session share: the certificate, the rules of the handshake, the ticket keys,
/// and the memory that records pass through.
///
/// `@unchecked Sendable`: created on any thread and passed to the session's loop before the first channel is created.
/// From then on, the context and its channels are used on that loop only.
package final class TLSContext: @unchecked Sendable {
    /// The only protocol that is offered and accepted (ALPN, RFC 7301).
    static let applicationProtocol = Array("nigh/1".utf8)
    /// The longest content of a record (RFC 8446, 5.1).
    package static let recordSize = 16_384
    /// The maximum number of handshake bytes accepted from a side that has not proven who it is.
    package static let handshakeLimit = 16_384
    /// The longest certificate list that is read. Ours has about 250 bytes.
    static let certificateLimit = 4_096
    /// The number of seconds for which a ticket is valid.
    static let ticketLifetime = 3_600
    /// The number of seconds after which new ticket keys are used. Tickets made with the old keys are then invalid.
    static let ticketKeyLifetime = 24 * 3_600
    /// The maximum number of full records sent with one key: half of the number that RFC 8446, 5.5 allows for AES-GCM.
    static let recordsPerKey = 1 << 23

    /// The maximum number of channels that have traffic buffers of libssl at the same time, about 34 KiB each.
    ///
    /// The limit exists because a peer that sends something now and then must not cost as much as a stream.
    static let activeChannelLimit = 16

    /// The peer to which the shown certificate belongs.
    let peerID: PeerID
    /// The `SSL_CTX`.
    let pointer: OpaquePointer
    let recordsPerKey: Int
    /// The chunks into which records are sealed and opened. Only `withMemory` accesses them, so a run-time check for
    /// exclusive access would find nothing.
    @exclusivity(unchecked) private var memory = Memory()
    /// The channels with traffic buffers, in the order in which they got them. Unmanaged references are enough, because
    /// each channel removes itself before it is freed.
    private var activeChannels: ContiguousArray<Unmanaged<TLSChannel>> = []
    private var ticketKeysMadeAt: time_t

    /// Chunks for the bytes of the pipe and for plain bytes, and one chunk in which
    /// small slices are combined into a record.
    struct Memory {
        /// Each chunk holds four full records with the bytes that TLS adds to each.
        var wire = SharedChunks(chunkSize: 4 * (TLSContext.recordSize + 256))
        var plain = SharedChunks(chunkSize: 4 * TLSContext.recordSize)
        private var staging: Chunk?

        /// Returns an empty chunk for one record. Nobody keeps its content.
        mutating func emptyStaging() -> Chunk {
            let chunk = staging ?? Chunk(capacity: TLSContext.recordSize)
            chunk.rewind()
            staging = chunk
            return chunk
        }
    }

    /// Chunks that the channels fill in turn, so that no channel needs its own.
    struct SharedChunks {
        private var pool: ChunkPool
        private var chunk: Chunk?

        init(chunkSize: Int) { pool = ChunkPool(chunkSize: chunkSize, keepAtMost: 16) }

        /// Returns the current chunk if it has room, or another one. A current chunk to which nobody else has a
        /// reference is filled from its front again.
        @inline(__always)
        mutating func chunkWithRoom() -> Chunk {
            if chunk != nil, Chunk.rewindIfUnshared(&chunk!) || chunk!.room > 0 {
                return chunk.unsafelyUnwrapped
            }
            return nextChunk()
        }

        @inline(never)
        private mutating func nextChunk() -> Chunk {
            if let full = chunk { pool.recycle(full) }
            let next = pool.take()
            chunk = next
            return next
        }
    }

    /// Creates a context with a new certificate of `identity`. Fails if libssl lacks something that is needed.
    package convenience init(_ identity: Identity) throws(NighError) {
        try self.init(identity, recordsPerKey: Self.recordsPerKey)
    }

    /// Creates a context that renews its keys after another number of records. Fails if
    /// libssl lacks something that is needed.
    init(_ identity: Identity, recordsPerKey: Int) throws(NighError) {
        defer { ERR_clear_error() }
        guard let pointer = SSL_CTX_new(TLS_method()) else { throw Self.failure("cannot make a context") }
        let certificate = TLSCertificate.selfSigned(identity.keyPair)
        defer { X509_free(certificate) }
        let isReady =
            Self.restrictAlgorithms(pointer) && SSL_CTX_use_certificate(pointer, certificate) == 1
            && identity.keyPair.withPointer { SSL_CTX_use_PrivateKey(pointer, $0) } == 1
        guard isReady else {
            SSL_CTX_free(pointer)
            throw Self.failure("has no TLS 1.3 with Ed25519, X25519 and AES-GCM")
        }
        Self.requireCertificates(pointer)
        Self.requireApplicationProtocol(pointer)
        Self.configureTickets(pointer)
        self.pointer = pointer
        self.recordsPerKey = recordsPerKey
        peerID = identity.peerID
        ticketKeysMadeAt = time(nil)
    }

    deinit { SSL_CTX_free(pointer) }

    /// Allows one version, one kind of signature, one group, and the three ciphers of RFC 8446.
    ///
    /// AES-128 is first: with the processor's own instructions it is the fastest, and X25519 and
    /// Ed25519 are no stronger than it. ChaCha20 is for processors without such instructions, and
    /// AES-256 for users who are required to have it.
    private static func restrictAlgorithms(_ context: OpaquePointer) -> Bool {
        let ciphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
        let offered = [UInt8(applicationProtocol.count)] + applicationProtocol
        openssl_omit_middlebox_compatibility(context)
        return openssl_allow_only_tls13(context) == 1 && SSL_CTX_set_ciphersuites(context, ciphers) == 1
            && openssl_set_groups(context, "X25519") == 1
            && openssl_set_signature_algorithms(context, "ed25519") == 1
            && SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count)) == 0
    }

    private static func requireCertificates(_ context: OpaquePointer) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        openssl_set_longest_certificate_list(context, certificateLimit)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, _ in
                guard let store, let bio = TLSBIO.of(store: store) else { return 0 }
                return bio.verify(store) ? 1 : 0
            }, nil)
    }

    private static func requireApplicationProtocol(_ context: OpaquePointer) {
        // libssl calls the ALPN callback below only if the client offers a protocol. A
        // client that offers none is detected here.
        SSL_CTX_set_client_hello_cb(
            context,
            { ssl, alert, _ in
                guard let ssl, let bio = TLSBIO.of(ssl) else { return SSL_CLIENT_HELLO_ERROR }
                var bytes: UnsafePointer<UInt8>?
                var count = 0
                // A client older than TLS 1.3 gets the alert for its version, whatever else it lacks.
                let isCurrent = SSL_client_hello_get0_ext(ssl, 43, &bytes, &count) == 1
                guard isCurrent, SSL_client_hello_get0_ext(ssl, 16, &bytes, &count) != 1 else {
                    return SSL_CLIENT_HELLO_SUCCESS
                }
                bio.problem = .insecure(.noCommonProtocol)
                alert?.pointee = SSL_AD_NO_APPLICATION_PROTOCOL
                return SSL_CLIENT_HELLO_ERROR
            }, nil)
        SSL_CTX_set_alpn_select_cb(
            context,
            { ssl, selected, selectedCount, offered, offeredCount, _ in
                let offers = UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                guard let start = TLSContext.indexOfOurs(in: offers) else {
                    ssl.flatMap { TLSBIO.of($0) }?.problem = .insecure(.noCommonProtocol)
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                selected?.pointee = offered.map { $0 + start }
                selectedCount?.pointee = UInt8(TLSContext.applicationProtocol.count)
                return SSL_TLSEXT_ERR_OK
            }, nil)
    }

    /// Returns the index of our protocol's name in a list of names, each with its length in front.
    private static func indexOfOurs(in offers: UnsafeBufferPointer<UInt8>) -> Int? {
        var index = 0
        while index < offers.count {
            let end = index + 1 + Int(offers[index])
            guard end <= offers.count else { return nil }
            if offers[(index + 1)..<end].elementsEqual(applicationProtocol) { return index + 1 }
            index = end
        }
        return nil
    }

    /// Configures session tickets.
    ///
    /// libssl sends none by itself; `TLSChannel.sendTicket` creates them. The server does not store them: all it needs
    /// is in the ticket, encrypted with keys of this context. A ticket is used with a new key exchange each time
    /// (psk_dhe_ke), and never for early data.
    private static func configureTickets(_ context: OpaquePointer) {
        SSL_CTX_set_num_tickets(context, 0)
        SSL_CTX_set_max_early_data(context, 0)
        SSL_CTX_set_timeout(context, ticketLifetime)
        SSL_CTX_set_session_id_context(context, applicationProtocol, UInt32(applicationProtocol.count))
        openssl_set_session_cache_mode(context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            // A copy, because libssl invalidates its own session when the link on which the ticket came breaks.
            if let ssl, let bio = TLSBIO.of(ssl), let copy = SSL_SESSION_dup(session) {
                bio.keep(ticket: copy)
            }
            return 0
        }
    }

    /// Changes the ticket keys if the present ones are old enough at `now`. Called for each link.
    func rotateTicketKeys(now: time_t = time(nil)) {
        guard now < ticketKeysMadeAt || now - ticketKeysMadeAt >= Self.ticketKeyLifetime else { return }
        let keys = SecretBytes(count: Int(openssl_set_ticket_keys(pointer, nil, 0)))
        keys.withBytes { bytes in
            guard RAND_priv_bytes(bytes.baseAddress, Int32(bytes.count)) == 1 else { return }
            if openssl_set_ticket_keys(pointer, bytes.baseAddress, bytes.count) == 1 {
                ticketKeysMadeAt = now
            }
        }
    }

    /// Calls `body` with the memory that the channels share.
    @inline(__always)
    func withMemory<Result>(_ body: (inout Memory) -> Result) -> Result { body(&memory) }

    /// The number of channels with traffic buffers.
    var activeChannelCount: Int { activeChannels.count }

    /// Notes that a channel has traffic again. If too many channels have traffic buffers, the
    /// one that got them first releases them.
    func channelBecameActive(_ channel: TLSChannel) {
        if activeChannels.count == Self.activeChannelLimit {
            activeChannels[0].takeUnretainedValue().releaseIdleMemory()
        }
        activeChannels.append(.passUnretained(channel))
    }

    /// Notes that a channel has no traffic any more. When the last channel is idle, the shared memory is released.
    func channelBecameIdle(_ channel: TLSChannel) {
        let own = Unmanaged.passUnretained(channel).toOpaque()
        activeChannels.removeAll { $0.toOpaque() == own }
        if activeChannels.isEmpty { memory = Memory() }
    }

    static func failure(_ what: String) -> NighError {
        NighError(
            .securing, .unavailable("libssl \(what)"),
            advice: "check that `openssl version` says 3.0 or later")
    }
}
