import NighCore

/// Has a transport listen: where that fails it is told once, and tried again from time to time until it works.
///
/// On `shutdown` its transport stops it and lets go of it; nothing is told then. Confined to its loop; hence `@unchecked Sendable`.
public final class RetryingListener<Listener>: @unchecked Sendable {
    /// How long until it is tried again.
    private static var pause: Moment.Span { .seconds(2) }

    private weak var transport: (any Transport)?
    private let events: any TransportEvents
    private let loop: any EventLoop
    private let listen: () throws(NighError) -> Listener
    private let addresses: (Listener) -> [TransportAddress]
    private let close: (Listener) -> Void
    private var timer: LoopTimer?
    private var toldAddresses: [TransportAddress] = []

    /// What listens; nil where nothing does.
    public private(set) var listener: Listener?
    /// Why nothing listens that should.
    public private(set) var error: NighError?

    /// Nothing listens so far.
    ///
    /// - Parameters:
    ///   - transport: in whose name `events` are told, in later turns: `listeningChanged` and `advertisingFailed`.
    ///   - listen: makes what listens.
    ///   - addresses: where that listens.
    ///   - close: ends it.
    public init(
        of transport: any Transport, events: any TransportEvents, on loop: any EventLoop,
        listen: @escaping () throws(NighError) -> Listener,
        addresses: @escaping (Listener) -> [TransportAddress], close: @escaping (Listener) -> Void
    ) {
        self.transport = transport
        self.events = events
        self.loop = loop
        self.listen = listen
        self.addresses = addresses
        self.close = close
    }

    /// Listens at once, unless something does already, and goes on trying where that fails, until `stop`.
    public func begin() {
        guard listener == nil else { return }
        end()
        do throws(NighError) {
            listener = try listen()
            error = nil
            tellAddresses()
        } catch {
            fail(error)
        }
    }

    /// Ends what listens, since it can take nobody in, and tries anew after a pause. `error` is told, unless it is what has been told
    /// since something listened last.
    public func fail(_ error: NighError) {
        end()
        timer = loop.schedule(at: loop.now + Self.pause) { [weak self] in self?.begin() }
        guard self.error != error else { return }
        self.error = error
        loop.execute { [weak self] in
            guard let self, let transport, self.error == error else { return }
            events.advertisingFailed(error, by: transport)
        }
    }

    /// Listens no more, and does not try to.
    public func stop() {
        end()
        error = nil
    }

    /// Tells where it listens, if that is not what was told last. To be called when the addresses may have changed.
    public func tellAddresses() {
        loop.execute { [weak self] in
            guard let self, let transport else { return }
            let now = listener.map(addresses) ?? []
            guard now != toldAddresses else { return }
            toldAddresses = now
            events.listeningChanged(now, by: transport)
        }
    }

    private func end() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let listener else { return }
        close(listener)
        self.listener = nil
        tellAddresses()
    }
}
