/// Keeps a trust store and its file in step without anybody's waiting: the file is read and written on other threads, one thing
/// at a time.
///
/// `@unchecked Sendable`: touched on the session's loop only.
final class TrustKeeper: @unchecked Sendable {
    /// The file is read again so much later at the earliest, however often that is asked for.
    static let reloadPause = Moment.Span.seconds(1)

    private let store: TrustStore
    private let loop: any EventLoop
    private let failed: @Sendable (NighError) -> Void
    /// Whether something is being read or written.
    private(set) var isBusy = false
    private var mustSave = false
    private var mustReload = false
    private var nextReload = Moment(nanoseconds: 0)

    /// - Parameter failed: called on the loop with what went wrong.
    init(_ store: TrustStore, loop: any EventLoop, failed: @escaping @Sendable (NighError) -> Void) {
        self.store = store
        self.loop = loop
        self.failed = failed
    }

    /// Puts what has changed into the file.
    func save() {
        mustSave = true
        goOn()
    }

    /// Takes over what other programs have changed there.
    func reload() {
        guard store.isKeptInAFile, loop.now >= nextReload else { return }
        nextReload = loop.now + Self.reloadPause
        mustReload = true
        goOn()
    }

    private func goOn() {
        guard !isBusy, mustSave || mustReload else { return }
        isBusy = true
        let (saves, reloads) = (mustSave, mustReload)
        (mustSave, mustReload) = (false, false)
        Task.detached { [store, loop] in
            var error: NighError?
            do throws(NighError) {
                // Saving takes over as well.
                if saves { try store.save() } else if reloads { try store.reload() }
            } catch let caught {
                error = caught
            }
            loop.execute { [error] in self.finished(error) }
        }
    }

    private func finished(_ error: NighError?) {
        isBusy = false
        if let error { failed(error) }
        goOn()
    }
}
