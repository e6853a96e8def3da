import NighCore

extension TrustStore {
    /// Reads the store from the file at `path`. A relative path is relative to the working directory. If
    /// there is no file, the store is empty.
    ///
    /// Fails if the file is not a valid trust store, if others may write it, or if somebody else owns it.
    public convenience init(path: String) throws(NighError) { try self.init(file: TrustFile(path: path)) }

    /// Reads the user's own store: the file `nigh/peers` in `$XDG_DATA_HOME`, or in `~/.local/share` if that is unset.
    public static func standard() throws(NighError) -> TrustStore { try TrustStore(file: .ofThisUser()) }

    convenience init(
        file: TrustFile, today: @escaping @Sendable () -> CalendarDay = CalendarDay.today
    ) throws(NighError) {
        let storage = TrustFileStorage(file)
        self.init(try storage.read(), in: storage, today: today)
    }
}

/// The file of a trust store, and which version of it was read last.
final class TrustFileStorage: TrustStorage {
    private let file: TrustFile
    /// The stamp of the file when it was last read. Its lock is held while the file is read or written, by callers that
    /// may block. Queries and changes in memory never take it.
    private let lastStamp = Guarded<ProtectedFile.Stamp?>(nil)

    init(_ file: TrustFile) { self.file = file }

    /// Reads the file.
    func read() throws(NighError) -> TrustBook {
        try lastStamp.withLock { (stamp) throws(NighError) in try read(&stamp) }
    }

    /// Reads the file. The stamp is taken before, so that no later change goes unnoticed.
    private func read(_ stamp: inout ProtectedFile.Stamp?) throws(NighError) -> TrustBook {
        let current = file.stamp
        let content = try file.read()
        stamp = current
        return content
    }

    func save(_ store: TrustStore) throws(NighError) {
        let observers = try lastStamp.withLock { (_) throws(NighError) -> [@Sendable () -> Void] in
            guard store.needsSaving else { return [] }
            do throws(NighError) {
                let written = try file.update { book in
                    let changes = store.willSave()
                    for (id, change) in changes { book.apply(change, to: id) }
                    _ = book.makeRoom(keeping: Set(changes.map(\.key)))
                }
                return store.didSave(as: written)
            } catch {
                store.didNotSave()
                throw error
            }
        }
        for changed in observers { changed() }
    }

    func reload(_ store: TrustStore) throws(NighError) {
        let observers = try lastStamp.withLock { (stamp) throws(NighError) in
            store.didRead(try read(&stamp))
        }
        for changed in observers { changed() }
    }

    /// Reads the file if it has changed and its stamp is still `earlier`, the result of an earlier call.
    ///
    /// So a file is read only after nobody writes to it any more. An editor may remove a file before it writes the
    /// new one, or write it piece by piece.
    ///
    /// - Returns: the stamp of a file that has changed and was not read yet.
    func reload(
        _ store: TrustStore, ifStampIs earlier: ProtectedFile.Stamp?
    ) throws(NighError) -> ProtectedFile.Stamp? {
        var unsettled: ProtectedFile.Stamp?
        let observers = try lastStamp.withLock { (stamp) throws(NighError) -> [@Sendable () -> Void] in
            let current = file.stamp
            if current == stamp { return [] }
            if current == earlier { return store.didRead(try read(&stamp)) }
            unsettled = current
            return []
        }
        for changed in observers { changed() }
        return unsettled
    }

    func makeSynchronizer(
        of store: TrustStore, on loop: any EventLoop, failed: @escaping @Sendable (NighError) -> Void,
        becameIdle: @escaping @Sendable () -> Void
    ) -> any TrustSynchronizer {
        TrustFileSynchronizer(store, self, loop: loop, failed: failed, becameIdle: becameIdle)
    }
}
