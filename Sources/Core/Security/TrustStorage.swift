/// Keeps the content of a ``TrustStore`` beyond the end of the program. The store itself opens no file.
package protocol TrustStorage: Sendable {
    /// Writes the changes of `store`, and has it take over those that other programs have made. Blocks.
    func save(_ store: TrustStore) throws(NighError)

    /// Has `store` take over the changes that other programs have made. Blocks.
    func reload(_ store: TrustStore) throws(NighError)

    /// Makes an object that saves and reloads `store` for a session, without blocking its loop.
    ///
    /// - Parameters:
    ///   - failed: called on the loop with the error.
    ///   - becameIdle: called on the loop once nothing is being read or written any more.
    func makeSynchronizer(
        of store: TrustStore, on loop: any EventLoop, failed: @escaping @Sendable (NighError) -> Void,
        becameIdle: @escaping @Sendable () -> Void
    ) -> any TrustSynchronizer
}

/// Keeps a trust store and its storage in step for one session. All calls come on the session's loop and do not wait.
package protocol TrustSynchronizer: AnyObject {
    /// Whether a read or a write is under way.
    var isBusy: Bool { get }

    /// Starts to follow the storage, until `stop`.
    func start()

    /// Ends what `start` began. What is being saved is still saved.
    func stop()

    /// Writes the store's changes.
    func save()
}
