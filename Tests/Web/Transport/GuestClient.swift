import Glibc
import NighTestKit
import NighUV

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// The transports of one rig that listen, so that those that dial get invitations.
///
/// A lock guards all state; hence `@unchecked Sendable`.
final class GuestWire: @unchecked Sendable {
    private struct Listener {
        let transport: WebTransport
        let loop: any EventLoop
    }

    private let lock = Lock()
    private var listeners: [String: Listener] = [:]
    private var usedKeys: Set<[UInt8]> = []

    func note(_ addresses: [TransportAddress], of transport: WebTransport, on loop: any EventLoop) {
        lock.withLock {
            listeners = listeners.filter { $0.value.transport !== transport }
            for address in addresses {
                listeners[address.value] = Listener(transport: transport, loop: loop)
            }
        }
    }

    /// Makes the entry of a guest that is new to the transport at `address`, with a token of it. Calls `completion` on
    /// some loop; with no token if nobody listens there.
    ///
    /// - Parameter key: the key to use in place of a new one. It gets a token the first time.
    func makeEntry(
        for address: TransportAddress, key: [UInt8]? = nil,
        _ completion: @escaping @Sendable ([UInt8]) -> Void
    ) {
        let (listener, isKnown) = lock.withLock {
            (listeners[address.value], key.map { !usedKeys.insert($0).inserted } ?? false)
        }
        let entry = [1] + (key ?? (0..<32).map { _ in UInt8.random(in: .min ... .max) })
        guard let listener, !isKnown else { return completion(entry) }
        listener.loop.execute { completion(entry + listener.transport.makeToken()) }
    }
}

/// A transport that listens for guests as `web` does, and dials as a guest: over TCP, with the upgrade of a browser, an
/// entry with a token, and masked frames. So it shows both ends of a WebSocket to the conformance suite.
///
/// Confined to its loop; hence `@unchecked Sendable`.
final class GuestClient: @unchecked Sendable {
    private let inner: WebTransport
    private let wire: GuestWire
    private var loop: UVEventLoop?
    private var events: (any TransportEvents)?
    private var connecting: SocketDials?
    /// Dials whose TCP connection is made, and those that wait for it.
    private var dials: [DialID: Dial] = [:]
    private var pipes: [ObjectIdentifier: ClientPipe] = [:]

    private struct Dial {
        let address: TransportAddress
        var entry: [UInt8] = []
        var timer: LoopTimer?
        var handshake: ClientPipe?
    }

    /// The key of the one guest that it is; nil if each dial is another guest.
    private let key: [UInt8]?

    /// With a key, it is the transport of a session that is a guest, and does not listen.
    init(on wire: GuestWire, key: [UInt8]? = nil) {
        self.wire = wire
        self.key = key
        var options = WebOptions()
        options.interface = "lo"
        options.port = 0
        inner = WebTransport(options)
    }

    fileprivate func ended(_ pipe: ClientPipe) { pipes[ObjectIdentifier(pipe)] = nil }

    private func socketConnected(_ id: DialID, _ outcome: Result<SocketPipe, NighError>) {
        guard let dial = dials[id], let loop else {
            if case .success(let socket) = outcome { socket.finish() }
            return
        }
        switch outcome {
        case .failure(let error): failed(id, error)
        case .success(let socket):
            let pipe = ClientPipe(socket, to: dial.address, of: self, on: loop)
            pipes[ObjectIdentifier(pipe)] = pipe
            dials[id]?.handshake = pipe
            pipe.begin(dial.entry, sendsFirst: key == nil) { [weak self, weak pipe] error in
                guard let self, let pipe, dials[id] != nil else { return }
                if let error { return failed(id, error) }
                forget(id)
                events?.pipeOpened(pipe, dial: id, by: self)
            }
        }
    }

    private func failed(_ id: DialID, _ error: NighError) {
        forget(id)
        events?.dialFailed(id, error: error, by: self)
    }

    private func forget(_ id: DialID) {
        guard let dial = dials.removeValue(forKey: id) else { return }
        if let timer = dial.timer { loop?.cancel(timer) }
    }

    private func connect(_ id: DialID, _ entry: [UInt8], _ timeout: Duration) {
        dials[id]?.entry = entry
        guard let dial = dials[id], let connecting else { return }
        let parts = dial.address.value.split(separator: ":")
        guard dial.address.scheme == scheme, parts.count == 2, let port = UInt16(parts[1]),
            let address = SocketAddress(numeric: String(parts[0]), port: port)
        else {
            let cause = NighError.Cause.invalid("address \(dial.address)")
            return failed(id, NighError(.connecting, cause, transport: scheme, advice: "dial web://"))
        }
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        address.withSockaddr { pointer, size in
            connecting.dial(
                id, with: descriptor, to: UnsafeRawBufferPointer(start: pointer, count: Int(size)),
                remoteAddress: dial.address, timeout: timeout)
        }
    }
}

extension GuestClient: Transport {
    var scheme: String { WebTransport.schemeName }
    var capabilities: TransportCapabilities { inner.capabilities }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        guard let loop = loop as? UVEventLoop else { preconditionFailure() }
        self.loop = loop
        self.events = events
        connecting = SocketDials(scheme: scheme, on: loop) { [weak self] in self?.socketConnected($0, $1) }
        inner.start(on: loop, events: self)
    }

    func advertise(_ advertisement: Advertisement) { if key == nil { inner.advertise(advertisement) } }
    func updateAdvertisement(_ advertisement: Advertisement) { inner.updateAdvertisement(advertisement) }
    func stopAdvertising() { inner.stopAdvertising() }
    func browse(_ service: ServiceName) { inner.browse(service) }
    func stopBrowsing() { inner.stopBrowsing() }
    func diagnose() -> [Diagnosis] { inner.diagnose() }

    func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        guard let loop else { return }
        dials[id] = Dial(address: address)
        dials[id]?.timer = loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in
            guard let self, dials[id] != nil else { return }
            dials[id]?.timer = nil
            cancelDial(id)
            let error = NighError(.connecting, .timedOut, transport: scheme, advice: "nobody answers there")
            events?.dialFailed(id, error: error, by: self)
        }
        wire.makeEntry(for: address, key: key) { [self] entry in
            loop.execute { [self] in connect(id, entry, timeout) }
        }
    }

    func cancelDial(_ id: DialID) {
        dials[id]?.handshake?.abandon()
        forget(id)
        connecting?.cancel(id)
    }

    func shutdown() {
        inner.shutdown()
        connecting?.cancelAll()
        connecting = nil
        for id in dials.keys { forget(id) }
        for pipe in pipes.values { pipe.abandon() }
        pipes = [:]
        loop = nil
        events = nil
    }
}

extension GuestClient: TransportEventHandler {
    func handle(_ event: TransportEvent, by transport: any Transport) {
        switch event {
        case .pipeOpened(let pipe, let dial):
            events?.pipeOpened(AcceptedPipe(pipe), dial: dial, by: self)
        case .listeningChanged(let addresses):
            // The rig dials the first.
            if let loop { wire.note(addresses, of: inner, on: loop) }
            events?.listeningChanged(addresses, by: self)
        case .advertised, .advertisingFailed: if let events { event.report(to: events, by: self) }
        default: break
        }
    }
}

/// The guest's end of a WebSocket, first in its handshake and then as a pipe. Confined to its loop; hence
/// `@unchecked Sendable`.
final class ClientPipe: @unchecked Sendable {
    private let socket: SocketPipe
    private let address: TransportAddress
    private weak var owner: GuestClient?
    private let loop: any EventLoop
    private var handshake: ((NighError?) -> Void)?
    private var hasUpgraded = false
    private var sendsFirst = true
    private var input: [UInt8] = []
    /// How many bytes of the message under way are still to come.
    private var left = 0
    private var handler: (any PipeHandler)?
    private var isOpen = true
    private var isPaused = false
    private var received = 0
    private var written = 0
    private static let mask: [UInt8] = [0xA1, 0x02, 0xF3, 0x44]

    fileprivate init(
        _ socket: SocketPipe, to address: TransportAddress, of owner: GuestClient, on loop: any EventLoop
    ) {
        self.socket = socket
        self.address = address
        self.owner = owner
        self.loop = loop
        socket.didFinish = { [weak self] _ in
            guard let self else { return }
            self.owner?.ended(self)
        }
    }

    /// Makes the upgrade and enters. Calls `completion` with nil if the guest was let in.
    fileprivate func begin(
        _ entry: [UInt8], sendsFirst: Bool, _ completion: @escaping (NighError?) -> Void
    ) {
        handshake = completion
        self.sendsFirst = sendsFirst
        socket.start(handler: self)
        let request =
            (["GET /nigh HTTP/1.1", "Host: \(address.value)"] + Browser.upgradeHeaders + ["", ""])
            .joined(separator: "\r\n")
        send(Array(request.utf8) + BrowserFrames.binary(entry))
    }

    /// Ends everything, and calls nobody.
    fileprivate func abandon() {
        isOpen = false
        handshake = nil
        handler = nil
        socket.finish()
    }

    private func send(_ bytes: [UInt8]) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        socket.write(&queue)
    }

    private func failed() {
        let completion = handshake
        abandon()
        completion?(NighError(.connecting, .refused, transport: "web", advice: "ask for another code"))
    }

    /// Reads the answer to the upgrade, and to the entry.
    private func readHandshake() {
        if !hasUpgraded {
            let end = Array("\r\n\r\n".utf8)
            guard let place = input.indices.first(where: { input[$0...].starts(with: end) }) else { return }
            guard input.starts(with: Array("HTTP/1.1 101 ".utf8)) else { return failed() }
            input.removeFirst(place + 4)
            hasUpgraded = true
        }
        guard let (operation, count, start) = header, input.count >= start + count else { return }
        guard operation == 2, input[start] == 1 else { return failed() }
        input.removeFirst(start + count)
        // The bytes of the pipe that came along wait for its handler.
        socket.pauseReading()
        let completion = handshake
        handshake = nil
        // The server opens its end when the first bytes come. `AcceptedPipe` takes this one away again.
        if sendsFirst { send(BrowserFrames.binary([AcceptedPipe.first])) }
        completion?(nil)
    }

    /// The header at the beginning of the input, and the place where its payload starts.
    private var header: (operation: UInt8, count: Int, start: Int)? {
        guard input.count >= 2 else { return nil }
        let longer = [126: 2, 127: 8][input[1]] ?? 0
        guard input.count >= 2 + longer else { return nil }
        let count = longer == 0 ? Int(input[1]) : input[2..<2 + longer].reduce(0) { $0 << 8 | Int($1) }
        return (input[0] & 0x0F, count, 2 + longer)
    }

    private func readFrames() {
        while isOpen, !input.isEmpty {
            if left > 0 {
                let bytes = Array(input.prefix(left))
                input.removeFirst(bytes.count)
                left -= bytes.count
                received += bytes.count
                handler?.pipe(self, received: ByteSlice(bytes))
                continue
            }
            guard let (operation, count, start) = header else { return }
            input.removeFirst(start)
            left = count
            guard operation == 8 else { continue }
            let last = handler
            handler = nil
            close(.afterWriting)
            last?.pipeClosed(self, error: nil)
        }
    }
}

extension ClientPipe: Pipe {
    var localAddress: TransportAddress? { nil }
    var remoteAddress: TransportAddress? { address }
    var writableBytes: Int { socket.writableBytes }
    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = received
        counters.bytesWritten = written
        counters.bytesWaiting = min(socket.counters.bytesWaiting, written)
        return counters
    }

    func start(handler: any PipeHandler) {
        self.handler = handler
        loop.execute { [weak self] in
            guard let self, isOpen else { return }
            readFrames()
            if isOpen, !isPaused { socket.resumeReading() }
        }
    }

    func write(_ queue: inout ByteQueue) {
        guard isOpen else { return queue.removeAll() }
        written += queue.byteCount
        while !queue.isEmpty {
            var payload: [UInt8] = []
            while payload.count < 65_536, let slice = queue.popFirst(atMost: 65_536 - payload.count) {
                slice.withUnsafeBytes { payload += $0 }
            }
            let mask = Self.mask
            payload.withUnsafeMutableBufferPointer { bytes in
                for index in bytes.indices { bytes[index] ^= mask[index & 3] }
            }
            send(BrowserFrames.header(2, payload.count, mask: mask) + payload)
        }
    }

    func pauseReading() {
        isPaused = true
        socket.pauseReading()
    }

    func resumeReading() {
        isPaused = false
        if isOpen { socket.resumeReading() }
    }

    func close(_ mode: PipeCloseMode) {
        guard isOpen else { return }
        isOpen = false
        guard mode == .afterWriting else { return abandon() }
        send(BrowserFrames.frame(8, [3, 0xE8]))
        socket.close(.afterWriting)
    }
}

extension ClientPipe: PipeHandler {
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        input += bytes.bytes
        if handshake != nil { readHandshake() } else if handler != nil { readFrames() }
    }
    func pipeBecameWritable(_ pipe: any Pipe) { if isOpen { handler?.pipeBecameWritable(self) } }
    func pipeEnded(_ pipe: any Pipe) { over(nil) }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) { over(error) }
    func pipeDrained(_ pipe: any Pipe) {
        let last = handler
        handler = nil
        last?.pipeDrained(self)
    }

    private func over(_ error: NighError?) {
        if handshake != nil { return failed() }
        let last = isOpen ? handler : nil
        isOpen = false
        handler = nil
        socket.close(.afterWriting)
        last?.pipeClosed(self, error: error)
    }
}

/// The server's end of a pipe whose guest sends one byte first, so that both ends are opened before the suite sends
/// anything. Confined to its loop.
private final class AcceptedPipe: ForwardingPipe {
    static let first: UInt8 = 0xFE

    let inner: any Pipe
    private var hasBegun = false

    init(_ inner: any Pipe) { self.inner = inner }

    var counters: PipeCounters {
        var counters = inner.counters
        if hasBegun { counters.bytesReceived -= 1 }
        return counters
    }

    func deliver(_ bytes: ByteSlice, to handler: any PipeHandler) {
        let rest = hasBegun ? bytes : bytes[1..<bytes.count]
        hasBegun = true
        if !rest.isEmpty { handler.pipe(self, received: rest) }
    }
}
