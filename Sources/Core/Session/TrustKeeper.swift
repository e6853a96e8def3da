/// Keeps a trust store and its file in step, without blocking the loop: the file is read and written on other threads, one
/// operation at a time.
///
/// The file is looked at again and again instead of being watched by the system. A look costs a few microseconds; a watch
/// would cost each session a descriptor and each event loop a way to wait for it, the folder with the file may not exist yet, and
/// on a network file system nothing is reported of what another host writes.
///
/// `@unchecked Sendable`: touched on the session's loop only.
final class TrustKeeper: @unchecked Sendable {
    /// From one look at the file to the next.
    static let lookPause = Moment.Span.milliseconds(400)
    /// For how long a changed file must stay as it is before it is read.
    static let settlingPause = Moment.Span.milliseconds(100)

    private let store: TrustStore
    private let loop: any EventLoop
    private let changed: @Sendable () -> Void
    private let failed: @Sendable (NighError) -> Void
    private let becameIdle: @Sendable () -> Void
    /// Whether something is being read or written.
    private(set) var isBusy = false
    private var mustSave = false
    private var mustLook = false
    /// What the last look found, if the file was changed and may still be written to.
    private var unsettled: ProtectedFile.Stamp?
    private var nextLook: LoopTimer?
    /// Why the last look failed. The same reason is not reported twice in a row.
    private var lastFailure: NighError?
    private var observation: TrustObservation?

    /// - Parameters:
    ///   - changed: called on the loop after a pairing was made or taken back, or a peer was forgotten, by whomever.
    ///   - failed: called on the loop with what went wrong.
    ///   - becameIdle: called on the loop once nothing is being read or written any more.
    init(
        _ store: TrustStore, loop: any EventLoop, changed: @escaping @Sendable () -> Void,
        failed: @escaping @Sendable (NighError) -> Void, becameIdle: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.loop = loop
        self.changed = changed
        self.failed = failed
        self.becameIdle = becameIdle
    }

    /// Starts to follow the store and its file, until `stop`.
    func start() {
        observation = store.observe { [loop, changed] in loop.execute(changed) }
        // At once, since the file may have been changed after the store was opened.
        look()
    }

    /// Ends what `start` began. What is being saved is still saved.
    func stop() {
        if let observation { store.end(observation) }
        observation = nil
        if let nextLook { loop.cancel(nextLook) }
        nextLook = nil
        mustLook = false
    }

    /// Puts what has changed into the file.
    func save() {
        mustSave = true
        goOn()
    }

    private func look() {
        guard store.isKeptInAFile else { return }
        nextLook = nil
        mustLook = true
        goOn()
    }

    private func goOn() {
        guard !isBusy, mustSave || mustLook else { return }
        isBusy = true
        let (saves, looks, earlier) = (mustSave, mustLook, unsettled)
        (mustSave, mustLook) = (false, false)
        Task.detached { [store, loop] in
            let saveFailure = saves ? Self.failure { () throws(NighError) in try store.save() } : nil
            var unsettled: ProtectedFile.Stamp?
            let lookFailure =
                looks
                ? Self.failure { () throws(NighError) in
                    unsettled = try store.reload(ifStillAt: earlier)
                } : nil
            loop.execute { [unsettled] in
                if let saveFailure { self.failed(saveFailure) }
                if looks { self.looked(unsettled, lookFailure) }
                self.isBusy = false
                self.goOn()
                if !self.isBusy { self.becameIdle() }
            }
        }
    }

    private static func failure(of work: () throws(NighError) -> Void) -> NighError? {
        do throws(NighError) {
            try work()
            return nil
        } catch {
            return error
        }
    }

    private func looked(_ unsettled: ProtectedFile.Stamp?, _ failure: NighError?) {
        guard observation != nil else { return }
        self.unsettled = unsettled
        if let failure, failure != lastFailure { failed(failure) }
        // A file that is not settled was not read.
        if unsettled == nil { lastFailure = failure }
        let pause = unsettled == nil ? Self.lookPause : Self.settlingPause
        nextLook = loop.schedule(at: loop.now + pause) { [weak self] in self?.look() }
    }
}
