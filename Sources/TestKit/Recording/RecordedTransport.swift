import NighCore

/// A transport on a loop, and what it reports. It is shut down with the last reference, or before.
package final class RecordedTransport: Sendable {
    package let transport: any Transport
    package let recorder: TransportRecorder
    private let loop: any EventLoop
    private let stopLoop: @Sendable () -> Void
    private let dialCount = Guarded<UInt64>(0)
    private let isShutDown = Guarded(false)

    /// Starts `transport` on `loop`, which `stopLoop` stops at the end.
    package init(
        _ transport: any Transport, on loop: any EventLoop, stopLoop: @escaping @Sendable () -> Void = {},
        onPipe: @escaping (PipeRecorder) -> Void = { _ in }
    ) {
        self.transport = transport
        self.loop = loop
        self.stopLoop = stopLoop
        recorder = TransportRecorder(onPipe: onPipe)
        call { [recorder] in $0.start(on: loop, events: recorder) }
    }

    deinit { shutdown() }

    package func shutdown() {
        let isFirst = isShutDown.withLock { isShutDown in
            defer { isShutDown = true }
            return !isShutDown
        }
        guard isFirst else { return }
        call { $0.shutdown() }
        stopLoop()
    }

    /// Calls the transport on its loop.
    @discardableResult
    package func call<Result>(_ body: @escaping (any Transport) -> Result) -> Result {
        loop.call { [transport] in body(transport) }
    }

    package func advertise(_ name: String = "Puma", service: ServiceName = "tests") {
        let peer = PeerID(bytes: Array(repeating: UInt8(name.utf8.count), count: 32))!
        let advertisement = Advertisement(service: service, peer: peer, name: DisplayName(fitting: name))
        call { $0.advertise(advertisement) }
    }

    @discardableResult
    package func dial(_ address: TransportAddress, timeout: Duration = .seconds(5)) -> DialID {
        let dial = DialID(
            number: dialCount.withLock {
                $0 += 1
                return $0
            })
        call { $0.dial(address, as: dial, timeout: timeout) }
        return dial
    }

    /// Waits until `isTrue` returns true, for up to 20 s. Returns whether it became true.
    package func wait(until isTrue: (TransportRecorder) -> Bool) -> Bool { recorder.wait(until: isTrue) }
}
