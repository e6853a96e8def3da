import Dispatch
import NighCore

/// Keeps a trust store and its file in step, without blocking the loop. It reads and writes the file on a queue of its
/// own, one operation at a time. A program may block all threads of Swift's concurrency runtime and of Dispatch's
/// global queues, which are the same on Linux.
///
/// It checks the file again and again instead of having the system watch it. A check costs a few microseconds. A watch
/// would cost each session a descriptor, and each event loop a way to wait for it. Besides, the folder with the file
/// may not exist yet, and a network file system does not report the writes of another host.
///
/// Loop only.
final class TrustFileSynchronizer: TrustSynchronizer {
    /// The pause between two checks of the file.
    static let checkInterval = Moment.Span.milliseconds(400)
    /// How long a changed file must stay as it is before it is read.
    static let settlingTime = Moment.Span.milliseconds(100)

    private let store: TrustStore
    private let storage: TrustFileStorage
    private let queue = DispatchQueue(label: "trust store")
    private let loop: any EventLoop
    private let failed: @Sendable (NighError) -> Void
    private let becameIdle: @Sendable () -> Void
    /// Whether a read or a write is under way.
    private(set) var isBusy = false
    private var mustSave = false
    private var mustCheck = false
    /// The stamp of the file at the last check, if the file was changed and may still be written to.
    private var unsettled: ProtectedFile.Stamp?
    private var nextCheck: LoopTimer?
    /// Why the last check failed. The same reason is not reported twice in a row.
    private var lastFailure: NighError?
    private var isFollowing = false

    init(
        _ store: TrustStore, _ storage: TrustFileStorage, loop: any EventLoop,
        failed: @escaping @Sendable (NighError) -> Void, becameIdle: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.storage = storage
        self.loop = loop
        self.failed = failed
        self.becameIdle = becameIdle
    }

    func start() {
        isFollowing = true
        // At once, because the file may have been changed after the store was opened.
        checkFile()
    }

    func stop() {
        isFollowing = false
        if let nextCheck { loop.cancel(nextCheck) }
        nextCheck = nil
        mustCheck = false
    }

    func save() {
        mustSave = true
        startNextOperation()
    }

    private func checkFile() {
        nextCheck = nil
        mustCheck = true
        startNextOperation()
    }

    private func startNextOperation() {
        guard !isBusy, mustSave || mustCheck else { return }
        isBusy = true
        let (saves, checks, earlier) = (mustSave, mustCheck, unsettled)
        (mustSave, mustCheck) = (false, false)
        let synchronizer = LoopBound(self, on: loop)
        queue.async { [store, storage] in
            let saveFailure = saves ? Self.failure { () throws(NighError) in try storage.save(store) } : nil
            var unsettled: ProtectedFile.Stamp?
            let checkFailure =
                checks
                ? Self.failure { () throws(NighError) in
                    unsettled = try storage.reload(store, ifStampIs: earlier)
                } : nil
            synchronizer.execute { [unsettled] synchronizer in
                if let saveFailure { synchronizer.failed(saveFailure) }
                if checks { synchronizer.fileChecked(unsettled, checkFailure) }
                synchronizer.isBusy = false
                synchronizer.startNextOperation()
                if !synchronizer.isBusy { synchronizer.becameIdle() }
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

    private func fileChecked(_ unsettled: ProtectedFile.Stamp?, _ failure: NighError?) {
        guard isFollowing else { return }
        self.unsettled = unsettled
        if let failure, failure != lastFailure { failed(failure) }
        // A file that may still change was not read.
        if unsettled == nil { lastFailure = failure }
        let pause = unsettled == nil ? Self.checkInterval : Self.settlingTime
        nextCheck = loop.schedule(at: loop.now + pause) { [weak self] in self?.checkFile() }
    }
}
