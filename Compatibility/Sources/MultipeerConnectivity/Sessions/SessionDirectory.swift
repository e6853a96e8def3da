import Synchronization

/// The sessions of this program by the numbers that peers address them with.
enum SessionDirectory {
    private struct Entry {
        weak var session: SessionCore?
    }

    private static let sessions = Mutex<[UInt64: Entry]>([:])

    /// Gives a session a number that no other session in this program has.
    static func add(_ session: SessionCore) -> UInt64 {
        sessions.withLock { sessions in
            var number = UInt64.random(in: 1 ... .max)
            while sessions[number] != nil { number = .random(in: 1 ... .max) }
            sessions[number] = Entry(session: session)
            return number
        }
    }

    static func remove(_ number: UInt64) { sessions.withLock { _ = $0.removeValue(forKey: number) } }

    static func session(_ number: UInt64) -> SessionCore? { sessions.withLock { $0[number]?.session } }
}
