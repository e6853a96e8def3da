/// What this user's programs remember about peers' keys: who was met over an encrypted link, and who was paired.
///
/// Questions and changes take a moment of memory only and may come from any thread, a session's loop too. Changes count at
/// once; ``save()`` keeps them in the file, and ``reload()`` takes over those of other programs: both block, so neither
/// belongs on a loop. A session that was given the store calls both by itself: it follows the file from its start to its
/// close, and ends a conversation that the store no longer allows, whoever changed it.
///
/// Changes are kept one by one. So two programs that save at once lose nothing of each other, and when one unpairs somebody
/// whom the other only meets again, unpaired it stays. Holds at most 4,096 peers; beyond them the unpaired one that was
/// not seen for longest is forgotten.
public final class TrustStore: Sendable {
    private struct State {
        var book = TrustBook()
        /// Not in the file yet.
        var changes: [PeerID: TrustChange] = [:]
        /// On their way there.
        var changesBeingSaved: [PeerID: TrustChange] = [:]
        /// The stamp of the file when it was last read.
        var stamp: ProtectedFile.Stamp?
        /// Called after a pairing was made or taken back, or a peer was forgotten.
        var observers: [TrustObservation: @Sendable () -> Void] = [:]
        var lastObservation: UInt64 = 0

        /// Counts the peers down to the limit. What was noted about strangers who had to go is not kept either; what a person has
        /// decided is.
        mutating func makeRoom(sparing newest: Set<PeerID> = []) {
            for id in book.makeRoom(sparing: newest) {
                guard let change = changes[id] else { continue }
                changes[id]?.seen = nil
                if !change.forgets, change.pairing == nil { changes[id] = nil }
            }
        }

        /// Those peers first whom the file has or will have first.
        func inOrder(_ changes: [PeerID: TrustChange]) -> [(key: PeerID, value: TrustChange)] {
            changes.sorted { left, right in
                let (leftPlace, rightPlace) = (book[left.key]?.place ?? -1, book[right.key]?.place ?? -1)
                return leftPlace == rightPlace ? left.key < right.key : leftPlace < rightPlace
            }
        }

        /// What the file holds now, with the changes that are not in it on top. Returns the observers to call.
        mutating func takeOver(_ written: TrustBook) -> [@Sendable () -> Void] {
            let changesInOrder = inOrder(changes)
            let before = book
            book = written
            for (id, change) in changesInOrder { book.apply(change, to: id) }
            makeRoom(sparing: Set(changes.keys))
            return book.trustsAll(thatWereTrustedIn: before) ? [] : inOrderOfCalls
        }

        /// All observers.
        var inOrderOfCalls: [@Sendable () -> Void] {
            observers.sorted { $0.key.number < $1.key.number }.map(\.value)
        }
    }

    private let file: TrustFile?
    private let today: @Sendable () -> CalendarDay
    private let state: Guarded<State>
    /// Held while the file is read or written, by callers who may be blocked; never together with a question or a change.
    private let access = Lock()

    init(file: TrustFile?, today: @escaping @Sendable () -> CalendarDay = CalendarDay.today) throws(NighError)
    {
        self.file = file
        self.today = today
        let stamp = file?.stamp
        state = Guarded(State(book: try file?.read() ?? TrustBook(), stamp: stamp))
    }

    /// Reads the store kept in the file at `path`; a relative path counts from the working directory. No file is an empty
    /// store. Fails for a file that cannot be read as one, that others may write, or that somebody else owns.
    public convenience init(path: String) throws(NighError) { try self.init(file: TrustFile(path: path)) }

    /// The user's own store: the file `nigh/peers` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`.
    public static func standard() throws(NighError) -> TrustStore { try TrustStore(file: .ofThisUser()) }

    /// An empty store that is kept nowhere: for one run, for tests.
    public static func ephemeral() -> TrustStore {
        do {
            return try TrustStore(file: nil)
        } catch {
            preconditionFailure("no file was read, and yet: \(error)")
        }
    }

    // MARK: Questions

    /// Everybody: paired ones first, then by name, then by PeerID.
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

    /// What is known about `id`, who calls itself `name`.
    public func trust(in id: PeerID, called name: DisplayName) -> PeerTrust {
        state.withLock { $0.book.trust(in: id, called: name) }
    }

    /// Whether two people have compared the digits with this peer.
    public func isPaired(_ id: PeerID) -> Bool { state.withLock { $0.book.isPaired(id) } }

    // MARK: Changes

    /// `id` was met over an encrypted link and calls itself `name`. Whoever is paired stays so.
    public func remember(_ id: PeerID, name: DisplayName) {
        let day = today()
        state.withLock { state in
            // Most meetings are with the same people on the same day; they are not worth a write to the disk.
            if let known = state.book[id], known.name == name, known.lastSeen >= day { return }
            note(.remember(name, on: day), about: id, in: &state)
        }
    }

    /// Two people have compared the digits with `id`, who calls itself `name`.
    public func pair(_ id: PeerID, name: DisplayName) {
        let day = today()
        decide(.pair(name, on: day), about: id)
    }

    /// `id` is no more to be trusted than anybody else, but stays known. Sessions of paired peers end their conversation with it.
    public func unpair(_ id: PeerID) { decide(.unpair, about: id) }

    /// Nothing is known about `id` any more. Sessions of paired peers end their conversation with it.
    public func forget(_ id: PeerID) { decide(.forget, about: id) }

    private func decide(_ change: TrustChange, about id: PeerID) {
        let observers = state.withLock { state in
            note(change, about: id, in: &state)
            return state.inOrderOfCalls
        }
        for changed in observers { changed() }
    }

    private func note(_ change: TrustChange, about id: PeerID, in state: inout State) {
        state.book.apply(change, to: id)
        if file != nil { state.changes[id] = state.changes[id]?.followed(by: change) ?? change }
        state.makeRoom(sparing: [id])
    }

    // MARK: Observers

    /// Has `changed` called after each change that may end a trust or begin one, here or in the file: on any thread, with no lock
    /// held.
    func observe(_ changed: @escaping @Sendable () -> Void) -> TrustObservation {
        state.withLock { state in
            state.lastObservation += 1
            let observation = TrustObservation(number: state.lastObservation)
            state.observers[observation] = changed
            return observation
        }
    }

    /// Ends what `observe` began. A call that is under way on another thread may still come.
    func end(_ observation: TrustObservation) {
        state.withLock { _ = $0.observers.removeValue(forKey: observation) }
    }

    // MARK: The file

    /// Whether there is a file; what is in memory alone goes with the program.
    public var isKeptInAFile: Bool { file != nil }

    /// Whether there are changes that the file does not have. Never for a store that is kept nowhere.
    public var needsSaving: Bool {
        state.withLock { !$0.changes.isEmpty || !$0.changesBeingSaved.isEmpty }
    }

    /// Puts the changes made here into the file, next to those that other programs have made there meanwhile. Blocks for as
    /// long as the disk takes, and up to 10 s while another program saves.
    ///
    /// If it fails the file is as it was, the changes still count in memory, and the next call tries again.
    public func save() throws(NighError) {
        guard let file else { return }
        let observers = try access.withLock { () throws(NighError) -> [@Sendable () -> Void] in
            guard needsSaving else { return [] }
            do throws(NighError) {
                let written = try file.update { book in
                    let changes = state.withLock { state in
                        swap(&state.changes, &state.changesBeingSaved)
                        return state.inOrder(state.changesBeingSaved)
                    }
                    for (id, change) in changes { book.apply(change, to: id) }
                    _ = book.makeRoom(sparing: Set(changes.map(\.key)))
                }
                return state.withLock { state in
                    state.changesBeingSaved = [:]
                    return state.takeOver(written)
                }
            } catch {
                state.withLock { state in
                    state.changes.merge(state.changesBeingSaved) { later, earlier in
                        earlier.followed(by: later)
                    }
                    state.changesBeingSaved = [:]
                }
                throw error
            }
        }
        for changed in observers { changed() }
    }

    /// Takes over what other programs have changed in the file; changes made here and not saved yet stay.
    public func reload() throws(NighError) {
        guard let file else { return }
        let observers = try access.withLock { () throws(NighError) in try takeOver(file, stamp: file.stamp) }
        for changed in observers { changed() }
    }

    /// Takes over what others have changed in the file, once nobody writes to it any more: its stamp must still be `earlier`, the
    /// result of an earlier look. An editor may remove a file before it writes the new one, or write it piece by piece.
    ///
    /// - Returns: the stamp of a file that was changed and has not been taken over yet.
    func reload(ifStillAt earlier: ProtectedFile.Stamp?) throws(NighError) -> ProtectedFile.Stamp? {
        guard let file else { return nil }
        var unsettled: ProtectedFile.Stamp?
        let observers = try access.withLock { () throws(NighError) -> [@Sendable () -> Void] in
            let stamp = file.stamp
            if stamp == state.withLock({ $0.stamp }) { return [] }
            if stamp == earlier { return try takeOver(file, stamp: stamp) }
            unsettled = stamp
            return []
        }
        for changed in observers { changed() }
        return unsettled
    }

    /// - Parameter stamp: that of the file before it is read, so that no later change goes unnoticed.
    private func takeOver(
        _ file: TrustFile, stamp: ProtectedFile.Stamp
    ) throws(NighError) -> [@Sendable () -> Void] {
        let written = try file.read()
        return state.withLock { state in
            state.stamp = stamp
            return state.takeOver(written)
        }
    }
}

/// Names an observer of a ``TrustStore``.
struct TrustObservation: Hashable {
    fileprivate let number: UInt64
}
