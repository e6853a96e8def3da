/// What this user's programs remember about peers' keys: who was met over an encrypted link, and who was paired.
///
/// Questions and changes take a moment of memory only and may come from any thread, a session's loop too. Changes count at
/// once; ``save()`` keeps them in the file, and ``reload()`` takes over those of other programs: both block, so neither
/// belongs on a loop.
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

        /// What the file holds now, with the changes that are not in it on top.
        mutating func takeOver(_ written: TrustBook) {
            let changesInOrder = inOrder(changes)
            book = written
            for (id, change) in changesInOrder { book.apply(change, to: id) }
            makeRoom(sparing: Set(changes.keys))
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
        state = Guarded(State(book: try file?.read() ?? TrustBook()))
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
        state.withLock { note(.pair(name, on: day), about: id, in: &$0) }
    }

    /// `id` is no more to be trusted than anybody else, but stays known.
    public func unpair(_ id: PeerID) { state.withLock { note(.unpair, about: id, in: &$0) } }

    /// Nothing is known about `id` any more.
    public func forget(_ id: PeerID) { state.withLock { note(.forget, about: id, in: &$0) } }

    private func note(_ change: TrustChange, about id: PeerID, in state: inout State) {
        state.book.apply(change, to: id)
        if file != nil { state.changes[id] = state.changes[id]?.followed(by: change) ?? change }
        state.makeRoom(sparing: [id])
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
        try access.withLock { () throws(NighError) in
            guard needsSaving else { return }
            do throws(NighError) {
                let written = try file.update { book in
                    let changes = state.withLock { state in
                        swap(&state.changes, &state.changesBeingSaved)
                        return state.inOrder(state.changesBeingSaved)
                    }
                    for (id, change) in changes { book.apply(change, to: id) }
                    _ = book.makeRoom(sparing: Set(changes.map(\.key)))
                }
                state.withLock { state in
                    state.changesBeingSaved = [:]
                    state.takeOver(written)
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
    }

    /// Takes over what other programs have changed in the file; changes made here and not saved yet stay.
    public func reload() throws(NighError) {
        guard let file else { return }
        try access.withLock { () throws(NighError) in
            let written = try file.read()
            state.withLock { $0.takeOver(written) }
        }
    }
}
