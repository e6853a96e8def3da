import COpenSSL
import Glibc

/// What all TLS channels of one session share: its certificate, the rules of the handshake, the keys of its tickets and
/// the memory records pass through.
///
/// `@unchecked Sendable`: made on any thread and handed to the session's loop before the first channel is made; from then
/// on it and its channels are used on that loop alone.
package final class TLSContext: @unchecked Sendable {
    /// The only protocol offered and accepted (ALPN, RFC 7301).
    static let applicationProtocol = Array("nigh/1".utf8)
    /// The longest content of a record (RFC 8446, 5.1).
    package static let recordSize = 16_384
    /// How many bytes of a handshake are taken from somebody who has not proven anything yet.
    package static let handshakeLimit = 16_384
    /// The longest list of certificates that is looked at; ours has some 250 bytes.
    static let certificateLimit = 4_096
    /// Seconds a ticket is good for.
    static let ticketLifetime = 3_600
    /// Seconds after which tickets are made with new keys; those made with the old ones count for nothing then.
    static let ticketKeyLifetime = 24 * 3_600
    /// Full records sent with one key at most: half of what RFC 8446, 5.5 allows for AES-GCM.
    static let recordsPerKey = 1 << 23

    /// How many channels have memory of libssl's for traffic at a time, some 34 KiB each: peers that say something now and then
    /// must not cost what a stream costs.
    static let activeChannelLimit = 16

    /// Whose certificate it shows.
    let peerID: PeerID
    /// The `SSL_CTX`.
    let pointer: OpaquePointer
    let recordsPerKey: Int
    /// Where records are sealed to, and where they are opened to.
    @exclusivity(unchecked) private var memory = Memory()
    /// The channels that have memory for traffic, those that got it first at the front. Each takes itself out before it goes, so a
    /// plain pointer will do.
    private var activeChannels: ContiguousArray<Unmanaged<TLSChannel>> = []
    private var ticketKeysMadeAt: time_t

    /// Chunks for the bytes of the pipe and for plain bytes, and the place where small slices become one record.
    struct Memory {
        /// Holds four full records with what TLS adds to each.
        var wire = SharedChunks(chunkSize: 4 * (TLSContext.recordSize + 256))
        var plain = SharedChunks(chunkSize: 4 * TLSContext.recordSize)
        private var staging: Chunk?

        /// An empty chunk for one record, whose content nobody keeps.
        mutating func emptyStaging() -> Chunk {
            let chunk = staging ?? Chunk(capacity: TLSContext.recordSize)
            chunk.rewind()
            staging = chunk
            return chunk
        }
    }

    /// Chunks that one channel after the other goes on filling, so that none needs one of its own.
    struct SharedChunks {
        private var pool: ChunkPool
        private var chunk: Chunk?

        init(chunkSize: Int) { pool = ChunkPool(chunkSize: chunkSize, keepAtMost: 16) }

        /// The chunk to go on with, which has room: from its front if nobody holds any of it, another one where it is full.
        @inline(__always)
        mutating func roomy() -> Chunk {
            if chunk != nil, Chunk.rewindIfUnshared(&chunk!) || chunk!.room > 0 {
                return chunk.unsafelyUnwrapped
            }
            return another()
        }

        @inline(never)
        private mutating func another() -> Chunk {
            if let full = chunk { pool.recycle(full) }
            let next = pool.take()
            chunk = next
            return next
        }
    }

    /// A context that shows a new certificate of `identity`. Fails where libssl lacks what it takes.
    package convenience init(_ identity: Identity) throws(NighError) {
        try self.init(identity, recordsPerKey: Self.recordsPerKey)
    }

    /// As above, with keys renewed after another number of records. Fails where libssl lacks what it takes.
    init(_ identity: Identity, recordsPerKey: Int) throws(NighError) {
        defer { ERR_clear_error() }
        guard let pointer = SSL_CTX_new(TLS_method()) else { throw Self.failure("cannot make a context") }
        let certificate = TLSCertificate.selfSigned(identity.keyPair)
        defer { X509_free(certificate) }
        let isReady =
            Self.allowOnlyTheBest(pointer) && SSL_CTX_use_certificate(pointer, certificate) == 1
            && identity.keyPair.withPointer { SSL_CTX_use_PrivateKey(pointer, $0) } == 1
        guard isReady else {
            SSL_CTX_free(pointer)
            throw Self.failure("has no TLS 1.3 with Ed25519, X25519 and AES-GCM")
        }
        Self.demandCertificates(pointer)
        Self.demandApplicationProtocol(pointer)
        Self.giveTickets(pointer)
        self.pointer = pointer
        self.recordsPerKey = recordsPerKey
        peerID = identity.peerID
        ticketKeysMadeAt = time(nil)
    }

    deinit { SSL_CTX_free(pointer) }

    /// One version, one kind of signature, one group, the three ciphers of RFC 8446. AES-128 goes first: with the
    /// processor's own instructions it is the fastest, and X25519 and Ed25519 are no stronger than it. ChaCha20 is for
    /// processors without such instructions, AES-256 for those who must have it.
    private static func allowOnlyTheBest(_ context: OpaquePointer) -> Bool {
        let ciphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
        let offered = [UInt8(applicationProtocol.count)] + applicationProtocol
        openssl_omit_middlebox_compatibility(context)
        return openssl_allow_only_tls13(context) == 1 && SSL_CTX_set_ciphersuites(context, ciphers) == 1
            && openssl_set_groups(context, "X25519") == 1
            && openssl_set_signature_algorithms(context, "ed25519") == 1
            && SSL_CTX_set_alpn_protos(context, offered, UInt32(offered.count)) == 0
    }

    private static func demandCertificates(_ context: OpaquePointer) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        openssl_set_longest_certificate_list(context, certificateLimit)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, _ in
                guard let store, let transport = TLSTransport.of(store: store) else { return 0 }
                return transport.verify(store) ? 1 : 0
            }, nil)
    }

    private static func demandApplicationProtocol(_ context: OpaquePointer) {
        // libssl asks which protocol to select only where the client offers some, so that none is found out here.
        SSL_CTX_set_client_hello_cb(
            context,
            { ssl, alert, _ in
                guard let ssl, let transport = TLSTransport.of(ssl) else { return SSL_CLIENT_HELLO_ERROR }
                var bytes: UnsafePointer<UInt8>?
                var count = 0
                // A client of before 1.3 is told that, whatever else it lacks.
                let isCurrent = SSL_client_hello_get0_ext(ssl, 43, &bytes, &count) == 1
                guard isCurrent, SSL_client_hello_get0_ext(ssl, 16, &bytes, &count) != 1 else {
                    return SSL_CLIENT_HELLO_SUCCESS
                }
                transport.problem = .insecure(.noCommonProtocol)
                alert?.pointee = SSL_AD_NO_APPLICATION_PROTOCOL
                return SSL_CLIENT_HELLO_ERROR
            }, nil)
        SSL_CTX_set_alpn_select_cb(
            context,
            { ssl, selected, selectedCount, offered, offeredCount, _ in
                let offers = UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                guard let start = TLSContext.indexOfOurs(in: offers) else {
                    ssl.flatMap { TLSTransport.of($0) }?.problem = .insecure(.noCommonProtocol)
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                selected?.pointee = offered.map { $0 + start }
                selectedCount?.pointee = UInt8(TLSContext.applicationProtocol.count)
                return SSL_TLSEXT_ERR_OK
            }, nil)
    }

    /// Where our protocol's name begins in a list of names, each after its length.
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

    /// No ticket by itself: `TLSChannel.giveTicket` makes one. The server forgets it: all it needs lies in the ticket, locked
    /// with keys of this context. Used with a new key exchange each time (psk_dhe_ke), and never for early data.
    private static func giveTickets(_ context: OpaquePointer) {
        SSL_CTX_set_num_tickets(context, 0)
        SSL_CTX_set_max_early_data(context, 0)
        SSL_CTX_set_timeout(context, ticketLifetime)
        SSL_CTX_set_session_id_context(context, applicationProtocol, UInt32(applicationProtocol.count))
        openssl_set_session_cache_mode(context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            // A copy: libssl spoils its own when the link that it came over breaks.
            if let ssl, let transport = TLSTransport.of(ssl), let copy = SSL_SESSION_dup(session) {
                transport.keep(ticket: copy)
            }
            return 0
        }
    }

    /// Makes tickets with new keys from now on, if the present ones are old enough at `now`. Called for each link.
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

    /// Calls `body` with the memory the channels share.
    @inline(__always)
    func withMemory<Result>(_ body: (inout Memory) -> Result) -> Result { body(&memory) }

    /// How many channels have memory for traffic.
    var activeChannelCount: Int { activeChannels.count }

    /// A channel has traffic again. Where too many have memory for that, the one that got it first gives it up.
    func channelBecameActive(_ channel: TLSChannel) {
        if activeChannels.count == Self.activeChannelLimit {
            activeChannels[0].takeUnretainedValue().releaseIdleMemory()
        }
        activeChannels.append(.passUnretained(channel))
    }

    /// A channel has no traffic any more. With the last one the shared memory goes.
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
