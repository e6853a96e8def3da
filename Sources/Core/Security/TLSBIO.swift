import COpenSSL
import Glibc

/// The side of a TLS channel that libssl sees: the memory in which it reads and writes the bytes of the pipe, and the
/// reports of its callbacks.
///
/// libssl has an unmanaged pointer to it (in its `BIO` and its `SSL`). That is safe because the channel that owns it
/// frees the `SSL` first, and because callbacks run only inside calls of the channel.
final class TLSBIO {
    private let context: TLSContext
    let expected: PeerID?
    /// The problem that a callback found. It is more precise than what libssl can report.
    var problem: NighError.Cause?
    /// The newest ticket, an `SSL_SESSION`.
    private var ticket: OpaquePointer?

    private struct Input {
        /// Received bytes that libssl has not read yet. Valid only during one call.
        var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
        /// How many more bytes libssl may read before the other side must have proven who it is.
        var handshakeAllowance = TLSContext.handshakeLimit
        var isHandshaking = true
    }

    private struct Output {
        /// The chunk to which libssl's bytes go in this call. The bytes from `start` on are this channel's.
        var chunk: Chunk?
        var start = 0
        /// Output in chunks that are already full. It is handed out before the rest.
        var full = ByteQueue()
    }

    // Each record uses these, so overlapping access is not checked at run time: they are accessed on the loop only, and
    // no access lasts across a call into libssl.
    @exclusivity(unchecked) private var input = Input()
    @exclusivity(unchecked) private var output = Output()

    /// How many more bytes libssl may read before the other side must have proven who it is.
    var handshakeAllowance: Int { input.handshakeAllowance }

    /// The other side has proven who it is.
    func endHandshake() { input.isHandshaking = false }

    init(_ context: TLSContext, expected: PeerID?) {
        self.context = context
        self.expected = expected
    }

    deinit { SSL_SESSION_free(ticket) }

    // MARK: Calls from libssl

    /// Returns the `TLSBIO` whose callbacks `ssl` runs.
    static func of(_ ssl: OpaquePointer) -> TLSBIO? { SSL_get_ex_data(ssl, 0).map(unmanaged) }

    /// Returns the `TLSBIO` whose handshake verifies certificates in `store`, an `X509_STORE_CTX`.
    static func of(store: OpaquePointer) -> TLSBIO? {
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).flatMap {
            of(OpaquePointer($0))
        }
    }

    @inline(__always)
    private static func unmanaged(_ pointer: UnsafeMutableRawPointer) -> TLSBIO {
        Unmanaged.fromOpaque(pointer).takeUnretainedValue()
    }

    /// The methods of the `BIO`s: created once per process, and never changed or freed.
    private nonisolated(unsafe) static let methods: OpaquePointer? = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        let pointer = BIO_meth_new(kind, "nigh")
        BIO_meth_set_read_ex(pointer) { bio, bytes, count, taken in
            guard let bio, let data = BIO_get_data(bio), let bytes, let taken else { return 0 }
            openssl_clear_retry(bio)
            taken.pointee = unmanaged(data).readInput(into: UnsafeMutableRawPointer(bytes), count: count)
            guard taken.pointee == 0 else { return 1 }
            openssl_say_read_would_block(bio)
            return 0
        }
        BIO_meth_set_write_ex(pointer) { bio, bytes, count, taken in
            guard let bio, let data = BIO_get_data(bio), let bytes, let taken else { return 0 }
            openssl_clear_retry(bio)
            unmanaged(data).writeOutput(UnsafeRawBufferPointer(start: bytes, count: count))
            taken.pointee = count
            return 1
        }
        // Flushing is the only command with a meaning here, and needs no work.
        BIO_meth_set_ctrl(pointer) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return pointer
    }()

    /// Creates an `SSL` over this `BIO`. The caller owns it, and frees it before this object is freed.
    func makeSSL() -> OpaquePointer? {
        guard let ssl = SSL_new(context.pointer) else { return nil }
        let own = Unmanaged.passUnretained(self).toOpaque()
        guard let bio = BIO_new(Self.methods), SSL_set_ex_data(ssl, 0, own) == 1 else {
            SSL_free(ssl)
            return nil
        }
        BIO_set_data(bio, own)
        BIO_set_init(bio, 1)
        SSL_set_bio(ssl, bio, bio)
        return ssl
    }

    private func readInput(into bytes: UnsafeMutableRawPointer, count: Int) -> Int {
        var taken = min(count, input.bytes.count)
        if input.isHandshaking {
            taken = min(taken, input.handshakeAllowance)
            input.handshakeAllowance &-= taken
        }
        guard taken > 0, let source = input.bytes.baseAddress else { return 0 }
        bytes.copyMemory(from: source, byteCount: taken)
        input.bytes = UnsafeRawBufferPointer(start: source + taken, count: input.bytes.count &- taken)
        return taken
    }

    private func writeOutput(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while let source = rest.baseAddress, rest.count > 0 {
            let chunk = outputChunk()
            let count = min(chunk.room, rest.count)
            chunk.append(UnsafeRawBufferPointer(start: source, count: count))
            rest = UnsafeRawBufferPointer(start: source + count, count: rest.count &- count)
        }
    }

    private func outputChunk() -> Chunk {
        if let chunk = output.chunk {
            if chunk.room > 0 { return chunk }
            output.full.append(chunk.slice(from: output.start))
        }
        let chunk = context.withMemory { $0.wire.chunkWithRoom() }
        output.chunk = chunk
        output.start = chunk.filled
        return chunk
    }

    /// Returns whether the certificate that the other side showed belongs to the right peer.
    func verify(_ store: OpaquePointer) -> Bool {
        if let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            SSL_is_server(OpaquePointer(ssl)) == 0, !Self.hasOurProtocol(OpaquePointer(ssl))
        {
            problem = .insecure(.noCommonProtocol)
            X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return false
        }
        do throws(TLSCertificate.Refusal) {
            let chain = X509_STORE_CTX_get0_untrusted(store)
            _ = try TLSCertificate.peer(of: chain, expected: expected, now: time(nil))
            X509_STORE_CTX_set_error(store, X509_V_OK)
            return true
        } catch {
            problem = error.cause
            X509_STORE_CTX_set_error(store, error.code)
            return false
        }
    }

    /// Returns whether both sides have agreed on our protocol.
    static func hasOurProtocol(_ ssl: OpaquePointer) -> Bool {
        var selected: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &selected, &count)
        return UnsafeBufferPointer(start: selected, count: Int(count)).elementsEqual(
            TLSContext.applicationProtocol)
    }

    func keep(ticket session: OpaquePointer) {
        SSL_SESSION_free(ticket)
        ticket = session
    }

    // MARK: Calls from the channel

    /// Lets libssl read `bytes` from the pipe while `body` runs.
    @inline(__always)
    func provideInput<Failure: Error>(_ bytes: ByteSlice, during body: () throws(Failure) -> Void)
        throws(Failure)
    {
        try bytes.withUnsafeBytes { bytes throws(Failure) in
            input.bytes = bytes
            defer { input.bytes = UnsafeRawBufferPointer(start: nil, count: 0) }
            try body()
        }
    }

    /// Whether libssl has read all provided bytes.
    var isInputTaken: Bool { input.bytes.isEmpty }

    /// Appends the bytes that libssl has written since the last call to `wire`.
    @inline(__always)
    func takeOutput(into wire: inout ByteQueue) {
        if !output.full.isEmpty { wire.append(contentsOf: &output.full) }
        guard let chunk = output.chunk.take() else { return }
        wire.append(chunk.slice(from: output.start))
    }

    /// Returns the newest ticket, which the caller then owns.
    func takeTicket() -> OpaquePointer? { ticket.take() }
}
