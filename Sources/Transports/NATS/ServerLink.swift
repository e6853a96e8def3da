import CNATS
import Glibc
import NighCore
import NighSystem
import Synchronization

/// One connection of libnats to one server.
///
/// libnats gets a loop of our own to run on, which is the client's thread: all reading and writing happens there, when
/// the client calls ``read()`` and ``write()``. In the other mode, with threads of the library, libnats 3.4 reads and
/// writes one TLS connection on two threads at once, which OpenSSL does not allow, and a server that takes nothing
/// holds up reading as well.
///
/// This file is long because the connection of the library is private to it.
///
/// `@unchecked Sendable`: confined to the client's thread, except where a comment says otherwise.
final class ServerLink: @unchecked Sendable {
    /// The most bytes to be written that the library may hold. More waits with the client, which can drop it.
    static let bufferTarget = 192 << 10
    /// The library reads this much at once, and has a buffer for writing of the same size.
    private static let bufferSize = 256 << 10
    /// The number of handed-over messages, and of their bytes, at which the older half is destroyed.
    private static let usedMessages = 64
    private static let usedSize = 512 << 10
    /// How long connecting may take, from the first packet to the server's answer.
    static let connectTimeout = Moment.Span.seconds(2)
    /// How long the system tries to reach a server that is gone, before it ends the connection.
    private static let lossTimeout = Moment.Span.seconds(10)

    /// All links that the library may call back, by their numbers. It calls on a thread of its own, where it may be
    /// late.
    private static let links = Guarded<[UInt64: ServerLink]>([:])
    private static let lastNumber = Atomic<UInt64>(0)

    /// The number of this link; never used twice.
    let number = ServerLink.lastNumber.add(1, ordering: .relaxed).newValue
    let server: ServerAddress
    let greeting: ServerGreeting
    let library: UnsafePointer<CNATSFunctions>
    private let inbox: Inbox
    private let credentialsPath: String?
    /// Wakes the client's thread. Callable from any thread.
    private let wake: @Sendable () -> Void
    private let thread: LoopThread
    /// The library's connection; nil before it is made, and after it is released.
    private var connection: OpaquePointer?
    private(set) var socket: Int32 = -1
    /// The subscriptions, in the order in which they were made.
    private var subscriptions: [Subscription] = []
    private var reports: [String: OpaquePointer] = [:]
    /// Messages whose packets were handed over. The library frees them on a thread of its own, so it gets many at once,
    /// but never all: the allocator would give their memory back to the system, and take it anew for the next ones.
    private var used: [OpaquePointer] = []
    private var usedBytes = 0

    /// Whether there is something to write. Set on any thread.
    let wantsToWrite = Atomic<Bool>(false)
    /// Whether the server has said that it is about to end the connection. Set on any thread.
    let isLeaving = Atomic<Bool>(false)
    /// Whether the server has not answered for too long. Set on any thread.
    let isSilent = Atomic<Bool>(false)

    /// A subscription of the library, from which ``read()`` takes the messages. If the library delivered it, a thread
    /// of its own would do so, and waking a thread takes longer than all else that is done with a packet.
    private struct Subscription {
        let pointer: OpaquePointer
        let subject: String
        let hasWildcard: Bool
    }

    /// - Parameter thread: the client's thread, which is the caller's.
    init(
        to server: ServerAddress, _ greeting: ServerGreeting, _ library: UnsafePointer<CNATSFunctions>,
        into inbox: Inbox, credentialsPath: String?, thread: LoopThread, wake: @escaping @Sendable () -> Void
    ) {
        self.server = server
        self.greeting = greeting
        self.library = library
        self.inbox = inbox
        self.credentialsPath = credentialsPath
        self.thread = thread
        self.wake = wake
    }

    // MARK: Connecting

    /// Whether everything that is sent is encrypted: it was asked for, or the server wants it.
    var isEncrypted: Bool { server.isEncrypted || greeting.requiresTLS }

    /// Connects. Blocks, usually for at most ``connectTimeout``.
    func connect(_ credentials: NATSCredentials?, authorities: String?) throws(NighError) {
        if server.isEncrypted, !greeting.requiresTLS {
            throw NATSProblem.unencrypted(server, isOffered: greeting.offersTLS)
        }
        var settings: OpaquePointer?
        try check(library.pointee.Options_Create(&settings))
        defer { library.pointee.Options_Destroy(settings) }
        try check(library.pointee.Options_SetURL(settings, plainURL))
        try check(library.pointee.Options_SetName(settings, "nigh"))
        try check(
            library.pointee.Options_SetTimeout(settings, Self.connectTimeout.nanoseconds / 1_000_000))
        try check(library.pointee.Options_SetAllowReconnect(settings, false))
        try check(library.pointee.Options_SetNoEcho(settings, true))
        // The client asks for answers itself. The library would end the connection on another thread.
        try check(library.pointee.Options_SetPingInterval(settings, 0))
        try check(library.pointee.Options_SetIOBufSize(settings, Int32(Self.bufferSize)))
        // Without a thread that waits a millisecond before it writes.
        try check(library.pointee.Options_SetSendAsap(settings, true))
        // One thread for all subscriptions of the process, instead of one for each.
        try check(library.pointee.Options_UseGlobalMessageDelivery(settings, true))
        let context = UnsafeMutableRawPointer(bitPattern: UInt(number))
        try check(
            library.pointee.Options_SetErrorHandler(
                settings, { _, _, _, context in ServerLink.reported(context) }, context))
        try check(
            library.pointee.Options_SetLameDuckModeCB(
                settings, { _, context in ServerLink.serverLeaves(context) }, context))
        try runHere(settings)
        if isEncrypted { try encrypt(settings, authorities) }
        try identify(settings, credentials)
        Self.links.withLock { $0[number] = self }
        let status = library.pointee.Connection_Connect(&connection, settings)
        guard status != NATS_OK else { return }
        _ = Self.links.withLock { $0.removeValue(forKey: number) }
        throw NATSProblem.refusal(status, lastError, server, credentials: credentialsPath)
    }

    private var plainURL: String {
        let host = server.host.contains(":") ? "[\(server.host)]" : server.host
        return "nats://\(host):\(server.port)"
    }

    /// Has the library leave reading and writing to this object. Writing is also wanted by threads that wait for an
    /// answer.
    private func runHere(_ settings: OpaquePointer?) throws(NighError) {
        try check(
            library.pointee.Options_SetEventLoop(
                settings, Unmanaged.passUnretained(self).toOpaque(),
                { data, loop, _, socket in
                    data?.pointee = loop
                    ServerLink.at(loop)?.attached(socket)
                    return NATS_OK
                }, { _, _ in NATS_OK },
                { data, isWanted in
                    ServerLink.at(data)?.setWriting(isWanted)
                    return NATS_OK
                }, { _ in NATS_OK }))
    }

    private static func at(_ address: UnsafeMutableRawPointer?) -> ServerLink? {
        address.map { Unmanaged<ServerLink>.fromOpaque($0).takeUnretainedValue() }
    }

    private func attached(_ socket: Int32) {
        self.socket = socket
        // A server whose machine is gone must be noticed also while nothing is sent, and while the library waits for
        // the rest of something.
        func set(_ level: Int32, _ option: Int32, _ value: Int64) {
            var value = Int32(clamping: value)
            setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, 5)
        set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, 2)
        set(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Self.lossTimeout.nanoseconds / 1_000_000)
    }

    /// Called on any thread, with the library's lock held.
    private func setWriting(_ isWanted: Bool) {
        wantsToWrite.store(isWanted, ordering: .releasing)
        if isWanted, !thread.isCurrent { wake() }
    }

    private func encrypt(_ settings: OpaquePointer?, _ authorities: String?) throws(NighError) {
        try check(library.pointee.Options_SetSecure(settings, true))
        try check(library.pointee.Options_SetExpectedHostname(settings, server.expectedName))
        guard let authorities else { return }
        guard library.pointee.Options_LoadCATrustedCertificates(settings, authorities) == NATS_OK else {
            throw NATSProblem.authorities(authorities, lastError)
        }
    }

    // MARK: Credentials

    /// Signs the nonce of a server while the library connects.
    private final class Signer {
        let library: UnsafePointer<CNATSFunctions>
        let jwt: SecretBytes?
        let seed: SecretBytes

        init(_ library: UnsafePointer<CNATSFunctions>, jwt: SecretBytes?, seed: SecretBytes) {
            self.library = library
            self.jwt = jwt
            self.seed = seed
        }
    }

    /// The signer, kept for as long as the library may call it.
    private var signer: Signer?

    private func identify(_ settings: OpaquePointer?, _ credentials: NATSCredentials?) throws(NighError) {
        func text(_ bytes: UnsafeMutableRawBufferPointer) -> UnsafePointer<CChar>? {
            UnsafePointer(bytes.bindMemory(to: CChar.self).baseAddress)
        }
        switch credentials {
        case nil: return
        case .token(let token):
            try check(token.withBytes { library.pointee.Options_SetToken(settings, text($0)) })
        case .password(let password, let user):
            try check(
                user.withBytes { user in
                    password.withBytes { password in
                        library.pointee.Options_SetUserInfo(settings, text(user), text(password))
                    }
                })
        case .jwt(let jwt, let seed):
            let context = sign(Signer(library, jwt: jwt, seed: seed))
            try check(
                library.pointee.Options_SetUserCredentialsCallbacks(
                    settings,
                    { jwt, _, context in
                        guard let signer = ServerLink.signer(at: context) else { return NATS_ERR }
                        jwt?.pointee = signer.jwt?.withBytes {
                            $0.baseAddress.flatMap { strdup($0.assumingMemoryBound(to: CChar.self)) }
                        }
                        return NATS_OK
                    }, context, ServerLink.signNonce, context))
        case .nkey(let publicKey, let seed):
            let context = sign(Signer(library, jwt: nil, seed: seed))
            try check(library.pointee.Options_SetNKey(settings, publicKey, ServerLink.signNonce, context))
        }
    }

    private func sign(_ signer: Signer) -> UnsafeMutableRawPointer {
        self.signer = signer
        return Unmanaged.passUnretained(signer).toOpaque()
    }

    private static func signer(at address: UnsafeMutableRawPointer?) -> Signer? {
        address.map { Unmanaged<Signer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let signNonce: natsSignatureHandler = { _, signature, length, nonce, context in
        guard let signer = ServerLink.signer(at: context) else { return NATS_ERR }
        return signer.seed.withBytes {
            signer.library.pointee.Sign($0.bindMemory(to: CChar.self).baseAddress, nonce, signature, length)
        }
    }

    // MARK: Being connected

    /// Whether the connection has ended.
    var isClosed: Bool { connection.map { library.pointee.Connection_IsClosed($0) } ?? true }

    /// The bytes that the library has not written yet.
    var bufferedBytes: Int { connection.map { max(0, Int(library.pointee.Connection_Buffered($0))) } ?? 0 }

    /// The length of the longest packet that the server takes.
    var longestPacket: Int {
        connection.map { Int(clamping: library.pointee.Connection_GetMaxPayload($0)) } ?? 0
    }

    /// The facts that the server has given.
    var facts: ServerFacts {
        ServerFacts(
            generation: number, server: server, version: greeting.version, isEncrypted: isEncrypted,
            longestPacket: longestPacket)
    }

    /// The other servers of the cluster, as this one names them.
    var discoveredServers: [String] {
        guard let connection else { return [] }
        var list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        var count: Int32 = 0
        guard library.pointee.Connection_GetDiscoveredServers(connection, &list, &count) == NATS_OK, let list
        else { return [] }
        defer { free(list) }
        return (0..<Int(count)).compactMap { index in
            guard let text = list[index] else { return nil }
            defer { free(text) }
            return String(cString: text)
        }
    }

    /// Reads once, and hands over the packets, those of the earliest subscription first. Call it when the socket is
    /// readable. Returns the number of bytes in these packets.
    @discardableResult
    func read() -> Int {
        guard let connection else { return 0 }
        library.pointee.Connection_ProcessReadEvent(connection)
        defer { inbox.deliverPackets() }
        return subscriptions.reduce(0) { count, subscription in count + takePackets(of: subscription) }
    }

    private func takePackets(of subscription: Subscription) -> Int {
        var (count, byteCount): (Int32, Int32) = (0, 0)
        guard library.pointee.Subscription_GetPending(subscription.pointer, &count, &byteCount) == NATS_OK
        else { return 0 }
        for _ in 0..<max(0, count) {
            var message: OpaquePointer?
            guard library.pointee.Subscription_NextMsg(&message, subscription.pointer, 0) == NATS_OK,
                let message
            else { continue }
            inbox.addPacket(
                UnsafeRawBufferPointer(
                    start: library.pointee.Msg_GetData(message),
                    count: Int(library.pointee.Msg_GetDataLength(message))),
                // A new string would be an allocation for every packet.
                subject: subscription.hasWildcard
                    ? library.pointee.Msg_GetSubject(message).map { String(cString: $0) } ?? ""
                    : subscription.subject,
                answers: library.pointee.Msg_GetReply(message).map { String(cString: $0) }.map(
                    NobodyReports.answers),
                of: number)
            used.append(message)
            usedBytes += Int(library.pointee.Msg_GetDataLength(message))
        }
        if used.count >= Self.usedMessages || usedBytes >= Self.usedSize { destroyUsed(used.count / 2) }
        return Int(byteCount)
    }

    private func destroyUsed(_ count: Int) {
        for message in used[..<count] {
            usedBytes -= Int(library.pointee.Msg_GetDataLength(message))
            library.pointee.Msg_Destroy(message)
        }
        used.removeFirst(count)
    }

    /// Writes once, as much as fits. Call it when there is something to write.
    func write() { if let connection { library.pointee.Connection_ProcessWriteEvent(connection) } }

    func publish(_ packet: [UInt8], to subject: String, answers: String?) {
        guard let connection else { return }
        if let answers { awaitReports(around: answers) }
        let count = Int32(clamping: packet.count)
        let status = packet.withUnsafeBytes { bytes in
            if let answers {
                library.pointee.Connection_PublishRequest(
                    connection, subject, answers + NobodyReports.suffix, bytes.baseAddress, count)
            } else {
                library.pointee.Connection_Publish(connection, subject, bytes.baseAddress, count)
            }
        }
        switch status {
        case NATS_OK, NATS_CONNECTION_CLOSED: break
        case NATS_MAX_PAYLOAD:
            fail(NATSProblem.tooLong(packet.count, longestPacket, server))
        default: fail(NATSProblem.library("\(statusText(status)), publishing to \(subject)", server))
        }
    }

    func subscribe(to subject: String) {
        guard let connection, !subscriptions.contains(where: { $0.subject == subject }) else { return }
        var pointer: OpaquePointer?
        let status = library.pointee.Connection_SubscribeSync(&pointer, connection, subject)
        guard status == NATS_OK, let pointer else {
            return fail(NATSProblem.library("\(statusText(status)), subscribing to \(subject)", server))
        }
        let hasWildcard = subject.utf8.last.map { $0 == 0x2A || $0 == 0x3E } == true
        subscriptions.append(Subscription(pointer: pointer, subject: subject, hasWildcard: hasWildcard))
        // No more waits there than is read at once.
        _ = library.pointee.Subscription_SetPendingLimits(pointer, -1, -1)
    }

    /// Subscribes to the reports that nobody has subscribed to the subject of a packet with these `answers`.
    private func awaitReports(around answers: String) {
        let subject = NobodyReports.subject(around: answers)
        guard let connection, reports[subject] == nil else { return }
        let target = Unmanaged.passRetained(NobodyReports(into: inbox, of: number, library))
        var subscription: OpaquePointer?
        let status = library.pointee.Connection_Subscribe(
            &subscription, connection, subject,
            { _, _, message, context in
                guard let message, let context else { return }
                Unmanaged<NobodyReports>.fromOpaque(context).takeUnretainedValue().received(message)
            }, target.toOpaque())
        guard status == NATS_OK, let subscription else {
            target.release()
            return fail(NATSProblem.library("\(statusText(status)), subscribing to \(subject)", server))
        }
        reports[subject] = subscription
        // Nothing has come for it yet, because this thread reads.
        _ = library.pointee.Subscription_SetOnCompleteCB(
            subscription, { context in context.map { Unmanaged<NobodyReports>.fromOpaque($0).release() } },
            target.toOpaque())
    }

    func unsubscribe(from subject: String) {
        guard let index = subscriptions.firstIndex(where: { $0.subject == subject }) else { return }
        library.pointee.Subscription_Destroy(subscriptions.remove(at: index).pointer)
    }

    /// Waits until the server has answered a question, for at most `timeout`. Returns nil if the connection has ended
    /// before. Callable from another thread until ``release()`` is called, which must not happen during the call.
    func awaitAnswer(within timeout: Moment.Span) -> Bool? {
        guard let connection else { return nil }
        switch library.pointee.Connection_FlushTimeout(connection, timeout.nanoseconds / 1_000_000) {
        case NATS_OK: return true
        case NATS_TIMEOUT: return false
        default: return nil
        }
    }

    // MARK: The end

    /// Why the connection has ended.
    var endError: NighError {
        guard let connection else {
            return NATSProblem.ended("", NATS_OK, server, credentials: credentialsPath)
        }
        if isSilent.load(ordering: .acquiring) {
            return NATSProblem.silent(server, for: AnswerWaiter.timeout)
        }
        var text: UnsafePointer<CChar>?
        let status = library.pointee.Connection_GetLastError(connection, &text)
        return NATSProblem.ended(
            text.map { String(cString: $0) } ?? "", status, server, credentials: credentialsPath)
    }

    /// Tells the server that nothing more comes, so that it ends the connection once it has read everything.
    func endWriting() { if !isClosed { shutdown(socket, Int32(SHUT_WR)) } }

    /// Ends the connection. Bytes that are not written yet are dropped.
    func close() {
        guard let connection else { return }
        // Closing by the library's own call would wait half a second for an answer that nobody reads.
        if !isClosed { shutdown(socket, Int32(SHUT_RDWR)) }
        for _ in 0..<100 where !isClosed { read() }
        if !isClosed { library.pointee.Connection_Close(connection) }
    }

    /// Releases the connection, which is closed.
    func release() {
        _ = Self.links.withLock { $0.removeValue(forKey: number) }
        for subscription in subscriptions { library.pointee.Subscription_Destroy(subscription.pointer) }
        for subscription in reports.values { library.pointee.Subscription_Destroy(subscription) }
        subscriptions = []
        reports = [:]
        destroyUsed(used.count)
        library.pointee.Connection_Destroy(connection)
        connection = nil
        signer = nil
    }

    // MARK: Reports of the library

    /// Called on a thread of the library.
    private static func reported(_ context: UnsafeMutableRawPointer?) {
        guard let link = links.withLock({ $0[UInt64(UInt(bitPattern: context))] }) else { return }
        if let refusal = NATSProblem.Refusal(link.lastError) {
            link.inbox.add(.refused(refusal), of: link.number)
        }
    }

    /// Called on a thread of the library.
    private static func serverLeaves(_ context: UnsafeMutableRawPointer?) {
        guard let link = links.withLock({ $0[UInt64(UInt(bitPattern: context))] }) else { return }
        link.isLeaving.store(true, ordering: .releasing)
        link.wake()
    }

    private func fail(_ error: NighError) { inbox.add(.failed(error), of: number) }

    private func check(_ status: natsStatus) throws(NighError) {
        if status != NATS_OK { throw NATSProblem.library(statusText(status), server) }
    }

    private func statusText(_ status: natsStatus) -> String {
        library.pointee.Status_GetText(status).map { String(cString: $0) } ?? "\(status.rawValue)"
    }

    /// The library's words for the last failure on this thread.
    private var lastError: String {
        library.pointee.GetLastError(nil).map { String(cString: $0) } ?? ""
    }
}
