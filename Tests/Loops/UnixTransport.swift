import Glibc
import NighCore
import NighUV

/// A minimal transport over sockets: pipes to programs of this machine, at abstract names, which vanish with their
/// sockets. It has no discovery. It uses the public parts of NighUV as a transport in a plugin would.
final class UnixTransport: @unchecked Sendable {
    private struct Running {
        let loop: UVEventLoop
        let events: any TransportEvents
        let dials: SocketDials
        let listening: RetryingListener<SocketListener>
    }

    private var running: Running?
    private var pipes: [ObjectIdentifier: SocketPipe] = [:]
    private let name = "nigh-test-\(UInt64.random(in: .min ... .max))"

    /// Calls `body` with the socket address for `name`.
    static func withAddress<Result, Failure: Error>(
        _ name: String, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A leading zero makes the name abstract: no file has it.
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: [0] + Array(name.utf8)) }
        return try withUnsafeBytes(of: &address) { (bytes) throws(Failure) in
            try body(
                UnsafeRawBufferPointer(
                    rebasing: bytes.prefix(MemoryLayout<sa_family_t>.size + name.utf8.count + 1)))
        }
    }

    /// Creates a socket that the caller binds or connects.
    static func socket() -> Int32 {
        Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    /// Creates a socket that listens at `name`.
    static func listeningSocket(at name: String, backlog: Int32) -> Int32 {
        let descriptor = socket()
        let status = withAddress(name) {
            bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        precondition(status == 0 && listen(descriptor, backlog) == 0, "cannot listen: \(errno)")
        return descriptor
    }

    private func opened(_ pipe: SocketPipe, by dial: DialID?) {
        pipes[ObjectIdentifier(pipe)] = pipe
        pipe.didFinish = { [weak self] in self?.pipes[ObjectIdentifier($0)] = nil }
        running?.events.pipeOpened(pipe, dial: dial, by: self)
    }

    private func dialEnded(_ dial: DialID, _ outcome: Result<SocketPipe, NighError>) {
        switch outcome {
        case .success(let pipe): opened(pipe, by: dial)
        case .failure(let error): running?.events.dialFailed(dial, error: error, by: self)
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
        let loop = loop as! UVEventLoop
        let name = name
        let address = TransportAddress(scheme: scheme, value: name)
        running = Running(
            loop: loop, events: events,
            dials: SocketDials(scheme: scheme, on: loop) { [weak self] in self?.dialEnded($0, $1) },
            listening: RetryingListener(of: self, events: events, on: loop) {
                [weak self] () throws(NighError) in
                try Self.withAddress(name) { bytes throws(NighError) in
                    try SocketListener(
                        binding: Self.socket(), to: bytes, scheme: address.scheme, on: loop,
                        opened: { self?.opened($0, by: nil) },
                        failed: { self?.running?.listening.fail($0) })
                }
            } addresses: { _ in
                [address]
            } close: {
                $0.close()
            })
    }

    func advertise(_ advertisement: Advertisement) { running?.listening.begin() }

    func updateAdvertisement(_ advertisement: Advertisement) {}

    func stopAdvertising() { running?.listening.stop() }

    func browse(_ service: ServiceName) {}

    func stopBrowsing() {}

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard address.scheme == scheme else {
            running?.dials.refuse(
                dial, NighError(.connecting, .invalid("address \(address)"), transport: scheme))
            return
        }
        Self.withAddress(address.value) {
            running?.dials.dial(dial, with: Self.socket(), to: $0, remoteAddress: address, timeout: timeout)
        }
    }

    func cancelDial(_ dial: DialID) { running?.dials.cancel(dial) }

    func diagnose() -> [Diagnosis] { [Diagnosis("sockets", .pass, "this machine has them")] }

    func shutdown() {
        running?.dials.cancelAll()
        running?.listening.stop()
        running = nil
        let open = pipes.values
        pipes = [:]
        for pipe in open { pipe.finish() }
    }
}
