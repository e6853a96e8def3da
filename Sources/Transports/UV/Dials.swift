import NighCore

/// The dials of a transport that are in progress. Each ends once and within its time, with an opened pipe or an error;
/// or it is cancelled, and nothing is reported.
///
/// Used on its loop only.
public final class Dials<Opened> {
    let scheme: String
    let loop: UVEventLoop
    private let ended: (DialID, Result<Opened, NighError>) -> Void
    private var dials: [DialID: DialInProgress] = [:]

    /// How many dials are in progress.
    public var count: Int { dials.count }

    /// Creates an empty set of dials. `ended` is called with the outcome of each dial, on the loop and never from
    /// inside a call. Like any pipe, one that was opened has to be started in the same turn.
    ///
    /// - Parameter scheme: the transport's scheme, for errors.
    public init(
        scheme: String, on loop: UVEventLoop,
        ended: @escaping (DialID, Result<Opened, NighError>) -> Void
    ) {
        self.scheme = scheme
        self.loop = loop
        self.ended = ended
    }

    deinit { cancelAll() }

    /// Begins a dial. The transport calls `end` for it in a later turn. If there is a `timeout`, the dial fails after
    /// it.
    public func begin(_ dial: DialID, timeout: Duration? = nil) {
        let timer = timeout.map { timeout in
            loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in self?.ranOutOfTime(dial) }
        }
        dials[dial] = DialInProgress(timer: timer)
    }

    /// Sets how a dial in progress is ended from now on. `stop` gives it up, and is called if the dial fails or is
    /// cancelled, before that is reported. `timedOut` makes the error if the time runs out. Ignored if the dial is not
    /// in progress.
    public func follow(
        _ dial: DialID, timedOut: (() -> NighError)? = nil, stop: (() -> Void)? = nil
    ) {
        guard let index = dials.index(forKey: dial) else { return }
        // Releasing the closures may run any code, so they are released after the access.
        let replaced = dials.values[index]
        dials.values[index] = DialInProgress(timer: replaced.timer, timedOut: timedOut, stop: stop)
        withExtendedLifetime(replaced) {}
    }

    /// Fails a dial that cannot even begin, for example because its address is invalid.
    public func refuse(_ dial: DialID, _ error: NighError) {
        begin(dial)
        loop.later { [weak self] in self?.end(dial, .failure(error)) }
    }

    /// Returns whether the dial has begun, and has neither ended nor been cancelled.
    public func isInProgress(_ dial: DialID) -> Bool { dials[dial] != nil }

    /// Ends a dial and reports its outcome. Ignored if the dial is not in progress.
    public func end(_ dial: DialID, _ outcome: Result<Opened, NighError>) {
        guard let ending = forget(dial) else { return }
        if case .failure = outcome { ending.stop?() }
        ended(dial, outcome)
    }

    /// Cancels a dial. Nothing is reported for it afterwards. Ignored if the dial is not in progress.
    public func cancel(_ dial: DialID) { forget(dial)?.stop?() }

    /// Cancels all dials.
    public func cancelAll() { for dial in Array(dials.keys) { cancel(dial) } }

    private func ranOutOfTime(_ dial: DialID) {
        let error = dials[dial]?.timedOut?() ?? NighError(.connecting, .timedOut, transport: scheme)
        end(dial, .failure(error))
    }

    private func forget(_ dial: DialID) -> DialInProgress? {
        let forgotten = dials.removeValue(forKey: dial)
        if let timer = forgotten?.timer { loop.cancel(timer) }
        return forgotten
    }
}

/// How a dial in progress ends. Not a part of the generic class, so that the dictionary of dials is specialized for it.
private struct DialInProgress {
    var timer: LoopTimer?
    var timedOut: (() -> NighError)?
    var stop: (() -> Void)?
}
