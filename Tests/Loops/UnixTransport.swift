import Glibc
import NighCore
import NighUV

/// The smallest transport over sockets that there can be: pipes to programs of this machine, at names that vanish with them. It finds
/// nobody. What it does about sockets is what a stranger's transport would do, with the public parts of NighUV.
final class UnixTransport: @unchecked Sendable {
    private struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
    }

    private var running: Running?
    private var listener: SocketListener?
    private var dials: [DialID: (connecting: ConnectingSocket, descriptor: Int32)] = [:]
    private var pipes: [ObjectIdentifier: SocketPipe] = [:]
    private let name = "nigh-test-\(UInt64.random(in: .min ... .max))"

    /// The address of a name.
    static func withAddress<Result>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A zero first: a name that is no file.
        let bytes = [0] + Array(name.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafeBytes(of: &address) {
            body(UnsafeRawBufferPointer(rebasing: $0.prefix(MemoryLayout<sa_family_t>.size + bytes.count)))
        }
    }

    /// A new socket, on which `body` is called to bind or connect it.
    static func socket() -> Int32 {
        Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    /// A socket that listens at `name`.
    static func listeningSocket(at name: String, backlog: Int32) -> Int32 {
        let descriptor = socket()
        let status = withAddress(name) {
            bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        precondition(status == 0 && listen(descriptor, backlog) == 0, "cannot listen: \(errno)")
        return descriptor
    }

    private func address(_ name: String) -> TransportAddress { TransportAddress(scheme: scheme, value: name) }

    private func open(_ descriptor: Int32, at remote: TransportAddress?, as dial: DialID?) {
        guard let running else { return }
        do throws(NighError) {
            let pipe = try SocketPipe(
                descriptor: descriptor, scheme: scheme, remoteAddress: remote, on: running.loop)
            pipes[ObjectIdentifier(pipe)] = pipe
            pipe.didFinish = { [weak self] in self?.pipes[ObjectIdentifier($0)] = nil }
            running.events.pipeOpened(pipe, dial: dial, by: self)
        } catch {
            close(descriptor)
            if let dial { running.events.dialFailed(dial, error: error, by: self) }
        }
    }

    private func dialEnded(
        _ id: DialID, _ descriptor: Int32, _ address: TransportAddress, _ outcome: Result<Void, SocketFault>
    ) {
        dials[id] = nil
        switch outcome {
        case .success: open(descriptor, at: address, as: id)
        case .failure(let fault):
            close(descriptor)
            let error = fault.error(.connecting, transport: scheme, peer: address.description)
            running?.events.dialFailed(id, error: error, by: self)
        }
    }
}

extension UnixTransport: Transport {
    var scheme: String { "unix" }

    var capabilities: TransportCapabilities {
        TransportCapabilities(
            datagrams: false, typicalMTU: 65_536, typicalLatency: .microseconds(50),
            expectedConnectTime: .milliseconds(1), priority: 10)
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        running = Running(loop: loop as! UVEventLoop, events: events)
    }

    func advertise(_ advertisement: Advertisement) {
        guard let running, listener == nil else { return }
        do throws(SocketFault) {
            listener = try SocketListener(
                descriptor: Self.listeningSocket(at: name, backlog: 64), on: running.loop
            ) { [weak self] in
                self?.open($0, at: nil, as: nil)
            } failed: { [weak self] fault in
                guard let self else { return }
                running.events.advertisingFailed(
                    fault.error(.advertising, transport: scheme), by: self)
            }
        } catch {
            fatalError("\(error)")
        }
        tellListening([address(name)])
    }

    private func tellListening(_ addresses: [TransportAddress]) {
        running?.loop.execute { [self] in running?.events.listeningChanged(addresses, by: self) }
    }

    func updateAdvertisement(_ advertisement: Advertisement) {}

    func stopAdvertising() {
        guard listener != nil else { return }
        listener?.close()
        listener = nil
        tellListening([])
    }

    func browse(_ service: ServiceName) {}

    func stopBrowsing() {}

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard let running else { return }
        guard address.scheme == scheme else {
            let error = NighError(.connecting, .invalid("address \(address)"), transport: scheme)
            return running.loop.execute { [self] in
                self.running?.events.dialFailed(dial, error: error, by: self)
            }
        }
        let descriptor = Self.socket()
        let connecting = Self.withAddress(address.value) {
            ConnectingSocket(descriptor, to: $0, timeout: timeout, on: running.loop) { [weak self] in
                self?.dialEnded(dial, descriptor, address, $0)
            }
        }
        dials[dial] = (connecting, descriptor)
    }

    func cancelDial(_ dial: DialID) {
        guard let (connecting, descriptor) = dials.removeValue(forKey: dial) else { return }
        connecting.cancel()
        close(descriptor)
    }

    func diagnose() -> [Diagnosis] { [Diagnosis("sockets", .pass, "this machine has them")] }

    func shutdown() {
        for dial in Array(dials.keys) { cancelDial(dial) }
        listener?.close()
        listener = nil
        running = nil
        let open = pipes.values
        pipes = [:]
        for pipe in open { pipe.finish() }
    }
}
