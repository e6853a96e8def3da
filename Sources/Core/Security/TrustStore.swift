/// Remembers the keys of paired peers and of peers that were met over an encrypted link.
///
/// Queries and changes use memory only, and any thread may make them, including a session's loop. Changes take effect
/// at once. ``save()`` writes them to the file, and ``reload()`` reads the changes of other programs. Both block, so do
/// not call them on a loop. A session with a store calls both by itself: it follows the file from its start to its
/// close, and ends a conversation that the store no longer allows, no matter which program made the change.
///
/// Changes are saved one by one. So two programs that save at the same time lose no change. If one of them unpairs a
/// peer that the other one merely meets again, the peer stays unpaired. The store holds up to 4,096 peers. Beyond that,
/// it forgets the unpaired peer that was seen longest ago.
public final class TrustStore: Sendable {
    private struct State {
        var book = TrustBook()
        /// Changes that are not in the file yet.
        var changes: [PeerID: TrustChange] = [:]
        /// Changes that are being written to the file.
        var changesBeingSaved: [PeerID: TrustChange] = [:]
        /// Called after a pairing was made or revoked, or a peer was forgotten.
        var observers: [TrustObservation: @Sendable () -> Void] = [:]
        var lastObservation: UInt64 = 0

        /// Forgets unpaired peers until the limit is met.
        ///
        /// For these peers, unsaved notes about meetings are dropped too. Unsaved decisions of a person are kept.
        mutating func makeRoom(keeping newest: Set<PeerID> = []) {
            for id in book.makeRoom(keeping: newest) {
                guard let change = changes[id] else { continue }
                changes[id]?.seen = nil
                if !change.forgets, change.pairing == nil { changes[id] = nil }
            }
        }

        /// Returns the changes sorted by the positions of their peers in the file, existing or future.
        func sortedByPlace(_ changes: [PeerID: TrustChange]) -> [(key: PeerID, value: TrustChange)] {
            changes.sorted { left, right in
                let (leftPlace, rightPlace) = (book[left.key]?.place ?? -1, book[right.key]?.place ?? -1)
                return leftPlace == rightPlace ? left.key < right.key : leftPlace < rightPlace
            }
        }

        /// Replaces the book with the file's content, and applies the changes that are not in it. Returns the observers
        /// to call.
        mutating func rebase(onto written: TrustBook) -> [@Sendable () -> Void] {
            let changesInOrder = sortedByPlace(changes)
            let before = book
            book = written
            for (id, change) in changesInOrder { book.apply(change, to: id) }
            makeRoom(keeping: Set(changes.keys))
            return book.hasSameTrust(as: before) ? [] : observersInOrder
        }

        /// All observers, in the order in which they are called.
        var observersInOrder: [@Sendable () -> Void] {
            observers.sorted { $0.key.number < $1.key.number }.map(\.value)
        }
    }

    /// Keeps the store's content; nil if it ends with the program.
    package let storage: (any TrustStorage)?
    private let today: @Sendable () -> CalendarDay
    private let state: Guarded<State>

    /// Creates a store with `content`, which is what `storage` has now.
    package init(
        _ content: TrustBook = TrustBook(), in storage: (any TrustStorage)? = nil,
        today: @escaping @Sendable () -> CalendarDay = CalendarDay.today
    ) {
        self.storage = storage
        self.today = today
        state = Guarded(State(book: content))
    }

    /// Creates an empty store without a file, for a single run or for tests.
    public static func ephemeral() -> TrustStore { TrustStore() }

    // MARK: Queries

    /// All peers: paired peers first, then by name, then by PeerID.
    public var peers: [TrustedPeer] {
        let entries = state.withLock { $0.book.entries }
        return
            entries
            .map { id, entry in
                TrustedPeer(
                    id: id, name: entry.name, isPaired: entry.isPaired, since: entry.since,
                    lastSeen: entry.lastSeen)
            }
            .sorted { left, right in
                if left.isPaired != right.isPaired { return left.isPaired }
                if left.name != right.name { return left.name.description < right.name.description }
                return left.id < right.id
            }
    }

    /// Returns the trust in `id`, a peer that calls itself `name`.
    public func trust(in id: PeerID, called name: DisplayName) -> PeerTrust {
        state.withLock { $0.book.trust(in: id, called: name) }
    }

    /// Returns whether anything is known about `id`.
    func knows(_ id: PeerID) -> Bool { state.withLock { $0.book[id] != nil } }

    /// Returns whether two people have compared the digits with this peer.
    public func isPaired(_ id: PeerID) -> Bool { state.withLock { $0.book.isPaired(id) } }

    // MARK: Changes

    /// Notes that `id` was met over an encrypted link and calls itself `name`. A paired peer stays paired.
    public func remember(_ id: PeerID, name: DisplayName) {
        let day = today()
        state.withLock { state in
            // Most meetings are with the same peers on the same day, and are not worth a write to the disk.
            if let known = state.book[id], known.name == name, known.lastSeen >= day { return }
            apply(.remember(name, on: day), to: id, in: &state)
        }
    }

    /// Notes that two people have compared the digits with `id`, which calls itself `name`.
    public func pair(_ id: PeerID, name: DisplayName) {
        let day = today()
        applyAndNotify(.pair(name, on: day), to: id)
    }

    /// Revokes the pairing with `id`, which stays known. Sessions that accept only paired
    /// peers end their conversation with it.
    public func unpair(_ id: PeerID) { applyAndNotify(.unpair, to: id) }

    /// Forgets everything about `id`. Sessions that accept only paired peers end their conversation with it.
    public func forget(_ id: PeerID) { applyAndNotify(.forget, to: id) }

    private func applyAndNotify(_ change: TrustChange, to id: PeerID) {
        let observers = state.withLock { state in
            apply(change, to: id, in: &state)
            return state.observersInOrder
        }
        for changed in observers { changed() }
    }

    private func apply(_ change: TrustChange, to id: PeerID, in state: inout State) {
        state.book.apply(change, to: id)
        if storage != nil { state.changes[id] = state.changes[id]?.followed(by: change) ?? change }
        state.makeRoom(keeping: [id])
    }

    // MARK: Observers

    /// Calls `changed` after each change that may end or begin trust in a peer, here or in the file. It is
    /// called on any thread, with no lock held.
    package func addObserver(_ changed: @escaping @Sendable () -> Void) -> TrustObservation {
        state.withLock { state in
            state.lastObservation += 1
            let observation = TrustObservation(number: state.lastObservation)
            state.observers[observation] = changed
            return observation
        }
    }

    /// Ends an observation that `addObserver` began. A call that is already in progress on another thread may still
    /// come.
    package func removeObserver(_ observation: TrustObservation) {
        state.withLock { _ = $0.observers.removeValue(forKey: observation) }
    }

    // MARK: The file

    /// Whether the store has a file. Without a file, its content ends with the program.
    public var hasFile: Bool { storage != nil }

    /// Whether there are changes that are not in the file. Always false for a store without a file.
    public var needsSaving: Bool {
        state.withLock { !$0.changes.isEmpty || !$0.changesBeingSaved.isEmpty }
    }

    /// Writes the changes made here to the file, and keeps the changes that other programs have made there. Blocks for
    /// as long as the disk takes, and up to 10 s while another program saves.
    ///
    /// If it fails, the file stays as it was, the changes stay in memory, and the next call tries again.
    public func save() throws(NighError) { try storage?.save(self) }

    /// Reads the changes that other programs have made in the file. Changes made here and not saved yet stay.
    public func reload() throws(NighError) { try storage?.reload(self) }

    // MARK: For the storage

    /// Returns the changes to save, in the order of their peers in the file. Each call is followed by ``didSave(as:)``
    /// or ``didNotSave()``; only one caller at a time may be between the two.
    package func willSave() -> [(key: PeerID, value: TrustChange)] {
        state.withLock { state in
            swap(&state.changes, &state.changesBeingSaved)
            return state.sortedByPlace(state.changesBeingSaved)
        }
    }

    /// Notes that the changes were saved, and that the file now contains `written`. Returns the observers, which the
    /// caller calls with no lock held.
    package func didSave(as written: TrustBook) -> [@Sendable () -> Void] {
        state.withLock { state in
            state.changesBeingSaved = [:]
            return state.rebase(onto: written)
        }
    }

    /// Notes that the changes could not be saved. They are part of the next attempt.
    package func didNotSave() {
        state.withLock { state in
            state.changes.merge(state.changesBeingSaved) { later, earlier in earlier.followed(by: later) }
            state.changesBeingSaved = [:]
        }
    }

    /// Notes that the file contains `written`. Returns the observers, which the caller calls with no lock held.
    package func didRead(_ written: TrustBook) -> [@Sendable () -> Void] {
        state.withLock { $0.rebase(onto: written) }
    }
}

/// Identifies an observer of a ``TrustStore``.
package struct TrustObservation: Hashable {
    fileprivate let number: UInt64
}
