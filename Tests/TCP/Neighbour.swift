import NighCore
import NighTCP
import NighTestKit
import NighUV

/// A transport on a loop of its own, with everything that it reported; tests wait for what they expect.
///
/// `@unchecked Sendable`: the monitor guards what was reported; pipes are used on the loop.
final class Neighbour: TransportEvents, PipeHandler, @unchecked Sendable {
    let loop = UVEventLoop()
    let transport: TCPTransport
    let monitor = Monitor()
    private(set) var listening: [TransportAddress] = []
    private(set) var known: [TransportAddress] = []
    private(set) var inbound: [any Pipe] = []
    private(set) var dialled: [any Pipe] = []
    private(set) var failures: [NighError] = []
    private(set) var advertisingFailures: [NighError] = []
    private(set) var conditions: [TransportCondition] = []
    private(set) var received: [UInt8] = []
    private(set) var ended = 0
    private(set) var closed: [NighError?] = []
    private(set) var writable = 0

    init(_ options: TCPOptions = TCPOptions(interface: "lo", discovery: .off)) {
        transport = TCPTransport(options)
        call { $0.transport.start(on: $0.loop, events: $0) }
    }

    deinit { loop.shutdown() }

    /// Runs `body` on the loop and waits for its result.
    @discardableResult
    func call<Result: Sendable>(_ body: @escaping @Sendable (Neighbour) -> Result) -> Result {
        let box = Box<Result>()
        loop.execute { [self] in
            let result = body(self)
            monitor.change { box.value = result }
        }
        guard monitor.wait(within: .seconds(30), until: { box.value != nil }), let value = box.value else {
            fatalError("the loop is blocked")
        }
        return value
    }

    private final class Box<Value>: @unchecked Sendable {
        // Guarded by the monitor.
        var value: Value?
    }

    /// Waits up to 20 s; returns whether the condition became true.
    func wait(_ isTrue: @escaping (Neighbour) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    func advertise() {
        call {
            $0.transport.advertise(
                Advertisement(
                    service: "tests", peer: Identity.ephemeral().peerID, name: DisplayName(fitting: "x")))
        }
    }

    func dial(_ address: String, timeout: Duration = .seconds(10)) {
        call {
            guard let address = TransportAddress(address) else { return }
            $0.transport.dial(address, as: DialID(number: .random(in: 0 ... .max)), timeout: timeout)
        }
    }

    /// Writes to the pipe that was dialled. Must be called on the loop.
    func write(_ bytes: ByteSlice) {
        var queue = ByteQueue()
        queue.append(bytes)
        dialled[0].write(&queue)
    }

    /// Shuts the transport down as a session would, and ends the loop.
    func shutdown() {
        call { $0.transport.shutdown() }
        loop.shutdown()
    }

    // MARK: Events

    func routeFound(_ sighting: Sighting, by transport: any Transport) {}
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {}
    func routeLost(_ address: TransportAddress, by transport: any Transport) {}
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        monitor.change { known.append(address) }
    }
    func browsingFailed(_ error: NighError, by transport: any Transport) {}
    func advertised(as name: DisplayName, by transport: any Transport) {}

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        pipe.start(handler: self)
        monitor.change { if dial == nil { inbound.append(pipe) } else { dialled.append(pipe) } }
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        monitor.change { failures.append(error) }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        monitor.change { advertisingFailures.append(error) }
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        monitor.change { listening = addresses }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        monitor.change { conditions.append(condition) }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) { monitor.change { received += bytes.bytes } }
    func pipeBecameWritable(_ pipe: any Pipe) { monitor.change { writable += 1 } }
    func pipeEnded(_ pipe: any Pipe) { monitor.change { ended += 1 } }
    func pipeDrained(_ pipe: any Pipe) {}
    func pipeClosed(_ pipe: any Pipe, error: NighError?) { monitor.change { closed.append(error) } }
}
