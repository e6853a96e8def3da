import NighCore

/// The dials of a transport that are under way: each ends once, with what it opened or an error, within its time, or is cancelled
/// and nothing is told of it.
///
/// To be used on its loop only; hence `@unchecked Sendable`.
public final class Dials<Opened>: @unchecked Sendable {
    private struct Dial {
        var timer: LoopTimer?
        var timedOut: (() -> NighError)?
        var stop: (() -> Void)?
    }

    let scheme: String
    let loop: UVEventLoop
    private let ended: (DialID, Result<Opened, NighError>) -> Void
    private var dials: [DialID: Dial] = [:]

    /// How many are under way.
    public var count: Int { dials.count }

    /// None so far. `ended` is told the outcome of each, on the loop and never from inside a call; a pipe is to be started in the same
    /// turn, as pipes are.
    ///
    /// - Parameter scheme: the transport's, for errors.
    public init(
        scheme: String, on loop: UVEventLoop,
        ended: @escaping (DialID, Result<Opened, NighError>) -> Void
    ) {
        self.scheme = scheme
        self.loop = loop
        self.ended = ended
    }

    deinit { cancelAll() }

    /// Begins a dial, for its transport to `end` in a later turn, or after `timeout`, where there is one.
    public func begin(_ dial: DialID, timeout: Duration? = nil) {
        let timer = timeout.map { timeout in
            loop.schedule(at: loop.now + Moment.Span(timeout)) { [weak self] in self?.ranOutOfTime(dial) }
        }
        dials[dial] = Dial(timer: timer)
    }

    /// Says what is under way for a dial from now on: `stop` gives it up, and is called where the dial fails or is cancelled, before
    /// that is told; `timedOut` is asked for the error where its time runs out. Ignored when the dial is not under way.
    public func follow(
        _ dial: DialID, timedOut: (() -> NighError)? = nil, stop: (() -> Void)? = nil
    ) {
        dials[dial]?.timedOut = timedOut
        dials[dial]?.stop = stop
    }

    /// Has a dial fail that cannot even begin, such as one of an address that is none.
    public func refuse(_ dial: DialID, _ error: NighError) {
        begin(dial)
        loop.execute { [weak self] in self?.end(dial, .failure(error)) }
    }

    /// Whether it has begun, and neither ended nor been cancelled.
    public func isUnderWay(_ dial: DialID) -> Bool { dials[dial] != nil }

    /// Ends a dial and tells its outcome. Ignored when it is not under way.
    public func end(_ dial: DialID, _ outcome: Result<Opened, NighError>) {
        guard let ending = forget(dial) else { return }
        if case .failure = outcome { ending.stop?() }
        ended(dial, outcome)
    }

    /// Gives a dial up, of which nothing is told then. Ignored when it is not under way.
    public func cancel(_ dial: DialID) { forget(dial)?.stop?() }

    /// Gives all up.
    public func cancelAll() { for dial in Array(dials.keys) { cancel(dial) } }

    private func ranOutOfTime(_ dial: DialID) {
        let error = dials[dial]?.timedOut?() ?? NighError(.connecting, .timedOut, transport: scheme)
        end(dial, .failure(error))
    }

    private func forget(_ dial: DialID) -> Dial? {
        let forgotten = dials.removeValue(forKey: dial)
        if let timer = forgotten?.timer { loop.cancel(timer) }
        return forgotten
    }
}
