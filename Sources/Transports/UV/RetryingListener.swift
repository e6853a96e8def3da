import NighCore

/// Makes a transport listen. If that fails, it reports the failure once, and tries again from time to time until it
/// works.
///
/// On `shutdown` its transport stops it and releases it, and nothing is reported then. Used on its loop only.
public final class RetryingListener<Listener> {
    /// How long to wait before trying again.
    private static var retryDelay: Moment.Span { .seconds(2) }

    private weak var transport: (any Transport)?
    private let events: any TransportEvents
    private let loop: any EventLoop
    private let listen: () throws(NighError) -> Listener
    private let addresses: (Listener) -> [TransportAddress]
    private let close: (Listener) -> Void
    private var timer: LoopTimer?
    private var reportedAddresses: [TransportAddress] = []

    /// The listener; nil while nothing listens.
    public private(set) var listener: Listener?
    /// Why there is no listener although there should be one; nil otherwise.
    public private(set) var error: NighError?

    /// Creates it without a listener.
    ///
    /// - Parameters:
    ///   - transport: the transport in whose name `events` are reported, in later turns: `listeningChanged` and
    ///     `advertisingFailed`.
    ///   - listen: makes the listener.
    ///   - addresses: returns the addresses at which the listener listens.
    ///   - close: closes the listener.
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

    /// Listens at once, unless there is a listener already. If that fails, it goes on trying until `stop`.
    public func begin() {
        guard listener == nil else { return }
        end()
        do throws(NighError) {
            listener = try listen()
            error = nil
            reportAddresses()
        } catch {
            fail(error)
        }
    }

    /// Closes the listener because it can accept nobody, and tries again after a pause. Reports `error`, unless it is
    /// the error that was last reported since something listened.
    public func fail(_ error: NighError) {
        end()
        timer = loop.schedule(at: loop.now + Self.retryDelay) { [weak self] in self?.begin() }
        guard self.error != error else { return }
        self.error = error
        loop.later { [weak self] in
            guard let self, let transport, self.error == error else { return }
            events.advertisingFailed(error, by: transport)
        }
    }

    /// Stops listening, and stops trying to.
    public func stop() {
        end()
        error = nil
    }

    /// Reports the addresses at which it listens, unless they are those reported last. Call it when the addresses may
    /// have changed.
    public func reportAddresses() {
        loop.later { [weak self] in
            guard let self, let transport else { return }
            let now = listener.map(addresses) ?? []
            guard now != reportedAddresses else { return }
            reportedAddresses = now
            events.listeningChanged(now, by: transport)
        }
    }

    private func end() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let listener else { return }
        close(listener)
        self.listener = nil
        reportAddresses()
    }
}
