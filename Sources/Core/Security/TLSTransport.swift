import COpenSSL
import Glibc

/// One end of a TLS channel as libssl sees it: where it takes bytes of the pipe from and puts them, and what its callbacks
/// have to say.
///
/// libssl has a plain pointer to it (in its `BIO` and its `SSL`), which is sound because the channel that owns it frees
/// the `SSL` first, and because callbacks run inside calls of the channel alone.
///
/// What every record asks is not checked for overlapping access at run time: it is reached on the loop alone, and never
/// across a call into libssl.
final class TLSTransport {
    private let context: TLSContext
    let expected: PeerID?
    /// What a callback found wrong; more precise than what libssl can tell.
    var problem: NighError.Cause?
    /// The newest ticket, an `SSL_SESSION`.
    private var ticket: OpaquePointer?

    /// What was received and libssl has not taken; borrowed for the time of one call.
    @exclusivity(unchecked) private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// How many bytes libssl may still take before the other side must have proven who it is.
    @exclusivity(unchecked) private(set) var handshakeAllowance = TLSContext.handshakeLimit
    @exclusivity(unchecked) var isHandshaking = true

    /// The chunk libssl's bytes go to in this call; from `outputStart` on they are this channel's.
    @exclusivity(unchecked) private var output: Chunk?
    @exclusivity(unchecked) private var outputStart = 0
    /// What did not fit into one chunk, handed out before the rest.
    @exclusivity(unchecked) private var fullOutput = ByteQueue()

    init(_ context: TLSContext, expected: PeerID?) {
        self.context = context
        self.expected = expected
    }

    deinit { SSL_SESSION_free(ticket) }

    // MARK: What libssl calls

    /// Whose callbacks `ssl` runs.
    static func of(_ ssl: OpaquePointer) -> TLSTransport? { SSL_get_ex_data(ssl, 0).map(unmanaged) }

    /// Whose handshake has certificates verified in `store`, an `X509_STORE_CTX`.
    static func of(store: OpaquePointer) -> TLSTransport? {
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).flatMap {
            of(OpaquePointer($0))
        }
    }

    @inline(__always)
    private static func unmanaged(_ pointer: UnsafeMutableRawPointer) -> TLSTransport {
        Unmanaged.fromOpaque(pointer).takeUnretainedValue()
    }

    /// The methods of the `BIO`s: made once a process, never changed or freed.
    private struct Methods: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let methods: Methods = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        let pointer = BIO_meth_new(kind, "nigh")
        BIO_meth_set_read_ex(pointer) { bio, bytes, count, taken in
            guard let bio, let data = BIO_get_data(bio), let bytes, let taken else { return 0 }
            openssl_clear_retry(bio)
            taken.pointee = unmanaged(data).give(UnsafeMutableRawPointer(bytes), count)
            guard taken.pointee == 0 else { return 1 }
            openssl_say_read_would_block(bio)
            return 0
        }
        BIO_meth_set_write_ex(pointer) { bio, bytes, count, taken in
            guard let bio, let data = BIO_get_data(bio), let bytes, let taken else { return 0 }
            openssl_clear_retry(bio)
            unmanaged(data).take(UnsafeRawBufferPointer(start: bytes, count: count))
            taken.pointee = count
            return 1
        }
        // Only flushing means something here, and needs nothing.
        BIO_meth_set_ctrl(pointer) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return Methods(pointer: pointer)
    }()

    /// An `SSL` over this transport, owned by the caller, who frees it before the transport goes.
    func makeSSL() -> OpaquePointer? {
        guard let ssl = SSL_new(context.pointer) else { return nil }
        let own = Unmanaged.passUnretained(self).toOpaque()
        guard let bio = BIO_new(Self.methods.pointer), SSL_set_ex_data(ssl, 0, own) == 1 else {
            SSL_free(ssl)
            return nil
        }
        BIO_set_data(bio, own)
        BIO_set_init(bio, 1)
        SSL_set_bio(ssl, bio, bio)
        return ssl
    }

    private func give(_ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
        var taken = min(count, input.count)
        if isHandshaking {
            taken = min(taken, handshakeAllowance)
            handshakeAllowance &-= taken
        }
        guard taken > 0, let source = input.baseAddress else { return 0 }
        bytes.copyMemory(from: source, byteCount: taken)
        input = UnsafeRawBufferPointer(start: source + taken, count: input.count &- taken)
        return taken
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while let source = rest.baseAddress, rest.count > 0 {
            let chunk = roomyOutput()
            let count = min(chunk.room, rest.count)
            chunk.append(UnsafeRawBufferPointer(start: source, count: count))
            rest = UnsafeRawBufferPointer(start: source + count, count: rest.count &- count)
        }
    }

    private func roomyOutput() -> Chunk {
        if let chunk = output {
            if chunk.room > 0 { return chunk }
            fullOutput.append(chunk.slice(from: outputStart))
        }
        let chunk = context.withMemory { $0.wire.roomy() }
        output = chunk
        outputStart = chunk.filled
        return chunk
    }

    /// Whether the one certificate the other side showed makes it the right peer.
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

    /// Whether both sides have settled on our protocol.
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

    // MARK: What the channel calls

    /// Has libssl find `bytes` on the pipe, for the time of `body`.
    @inline(__always)
    func lend<Failure: Error>(_ bytes: ByteSlice, to body: () throws(Failure) -> Void) throws(Failure) {
        try bytes.withUnsafeBytes { bytes throws(Failure) in
            input = bytes
            defer { input = UnsafeRawBufferPointer(start: nil, count: 0) }
            try body()
        }
    }

    /// Whether libssl has taken all that was lent.
    var isInputTaken: Bool { input.isEmpty }

    /// Hands out what libssl has written since the last call.
    @inline(__always)
    func collect(into wire: inout ByteQueue) {
        if !fullOutput.isEmpty { wire.append(contentsOf: &fullOutput) }
        guard let chunk = output.take() else { return }
        wire.append(chunk.slice(from: outputStart))
    }

    /// The newest ticket, owned by the caller.
    func takeTicket() -> OpaquePointer? { ticket.take() }
}
